"""Install the library's wheel alone and run the README's first commands (`make test-wheel`).

The environment is new and empty, so that a dependency which only the laboratory or the tools
declare is missed here, not by a user. What the library brings is counted.
"""

import json
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST = 19  # distributions that the library may bring besides those of torch


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


def plain_name(requirement: str) -> str:
    """Give the normalized name of a distribution without versions, extras and markers."""
    found = re.match(r"[\w.-]+", requirement)
    assert found is not None, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def declared(project: Path) -> set[str]:
    """Give the names that a project depends on."""
    text = (project / "pyproject.toml").read_text("utf-8")
    return {plain_name(needed) for needed in tomllib.loads(text)["project"]["dependencies"]}


def count_distributions(python: str, place: Path) -> None:
    """Print what the library alone has brought, and end the check if that is too much."""
    text = run(python, "-m", "pip", "inspect", cwd=place)
    found = [one["metadata"] for one in json.JSONDecoder().raw_decode(text)[0]["installed"]]
    needs = {
        plain_name(one["name"]): {
            plain_name(needed)
            for needed in one.get("requires_dist", ())
            if "extra ==" not in needed
        }
        for one in found
    }
    torch, waiting = set[str](), {"torch"}
    while waiting:
        torch |= waiting
        waiting = {needed for name in waiting for needed in needs.get(name, ())} - torch
    brought = sorted(needs.keys() - torch - {"pip", "vntransfer"})
    print(f"{len(brought)} distributions besides torch's own: {', '.join(brought)}")
    if len(brought) > MOST:
        sys.exit(f"more than {MOST} distributions besides torch's own")
    if foreign := sorted((declared(ROOT / "lab") - declared(ROOT)) & set(brought)):
        sys.exit(f"dependencies of the laboratory alone: {', '.join(foreign)}")


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
        install = (python, "-m", "pip", "install", "--quiet", *pinned)
        run(*install, str(wheel), cwd=place)
        count_distributions(python, place)
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
