"""What a program has imported by the time it ends."""

import subprocess
import sys

HEAVY = {"torch", "matplotlib", "pandas", "pyarrow", "dask", "pooch", "sklearn", "scipy"}
HEAVY |= {"lightgbm", "joblib"}


def loaded_after(code: str) -> set[str]:
    program = f"import sys\n{code}\nprint(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


def loaded_by_command(*arguments: str) -> set[str]:
    """What `vnt` has imported after a command that succeeds."""
    code = (
        "from vntransfer.cli import app\n"
        f"try:\n    app({list(arguments)!r})\nexcept SystemExit as stop:\n    assert not stop.code"
    )
    return loaded_after(code)
