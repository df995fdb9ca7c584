"""Install the library's wheel alone and run the README's first commands (`make test-wheel`).

The environment is new and empty, so that a dependency which only the laboratory or the tools
declare is missed here, not by a user.
"""

import re
import shlex
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def commands() -> list[list[str]]:
    """Give the commands of the README's first shell block."""
    readme = (ROOT / "README.md").read_text("utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", readme, re.S)
    found = next(block for block in blocks if "vnt adapt" in block)
    return [shlex.split(line, comments=True) for line in found.splitlines() if line.strip()]


def run(*words: str, cwd: Path, code: int = 0) -> str:
    """Run a command, show it, and end the check if it does not end as it should."""
    print("+", shlex.join(words), flush=True)
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True)
    if done.returncode != code:
        sys.exit(f"exit code {done.returncode}, expected {code}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def main() -> None:
    """Build, install, run."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", name, str(ROOT)]
        run(*pip, cwd=place)
        (wheel,) = place.glob("vntransfer-*.whl")
        venv.create(place / "venv", with_pip=True)
        python = str(place / "venv" / "bin" / "python")
        pinned = ("-c", str(ROOT / "constraints.txt"))
        run(python, "-m", "pip", "install", "--quiet", *pinned, f"{wheel}[all]", cwd=place)
        vnt = str(place / "venv" / "bin" / "vnt")
        for words in commands():
            assert words[0] == "vnt", words
            run(vnt, *words[1:], cwd=place)
        said = run(vnt, "bench", "list", cwd=place, code=2)
        assert "pip install ./lab" in said, said
        absent = "import importlib.util as u; assert u.find_spec('vntransfer_lab') is None"
        run(python, "-c", absent, cwd=place)
        assert (place / "predictions.csv").is_file()
    print("the wheel works without the laboratory")


if __name__ == "__main__":
    main()
