"""What a program has imported by the time it ends."""

import subprocess
import sys

HEAVY = {"torch", "matplotlib", "pandas", "pyarrow", "dask", "pooch", "sklearn", "scipy"}


def loaded_after(code: str) -> set[str]:
    program = f"import sys\n{code}\nprint(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())
