"""Build sdist and wheel of both distributions and check their contents (`make dist`).

Each wheel is built from its unpacked sdist, as an installer does. Nothing is downloaded, and the
files are left in a temporary folder, or in the folder that is named on the command line.
"""

import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {"vntransfer": ROOT, "vntransfer_lab": ROOT / "lab"}
BESIDE = {
    "vntransfer": {"LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "tests/helpers"},
    "vntransfer_lab": {"LICENSE", "README.md", "tests/helpers", "conftest.py"},
}
"""What an sdist holds besides the package."""

LARGEST = 2_000_000
"""Bytes that a file to upload may have: data and results do not belong into it."""


def build(folder: Path, target: str, out: Path) -> Path:
    """Build one file and return its path."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)]
    before = set(out.iterdir())
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{folder}: the {target} could not be built\n{done.stdout}{done.stderr}")
    (made,) = set(out.iterdir()) - before
    return made


def sources(name: str) -> set[str]:
    """Return the files of a package, relative to the folder that holds it."""
    top = FOLDERS[name] / "src"
    return {
        path.relative_to(top).as_posix()
        for path in (top / name).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def linked(name: str) -> set[str]:
    """Return the files that the README of a distribution links to or shows."""
    readme = (FOLDERS[name] / "README.md").read_text("utf-8")
    return set(re.findall(r"\]\((?!https?:)([^)#]+)", readme))


def version(name: str) -> str:
    """Return the version of a package without importing it."""
    names: dict[str, str] = {}
    exec((FOLDERS[name] / "src" / name / "_version.py").read_text("utf-8"), names)
    return names["__version__"]


def sdist_complaints(name: str, files: set[str]) -> list[str]:
    """Return what is wrong with the files of an sdist, named from its top folder."""
    wanted = {f"src/{path}" for path in sources(name)} | BESIDE[name] | {"pyproject.toml"}
    wanted |= linked(name)
    folders = {parent.as_posix() for path in files for parent in PurePosixPath(path).parents}
    wrong = [f"lacks {path}" for path in sorted(wanted - files - folders)]
    return wrong + [f"holds {path}" for path in sorted(files) if path.startswith("results/")]


def wheel_complaints(name: str, files: set[str], metadata: str, entries: str) -> list[str]:
    """Return what is wrong with the files and the metadata of a wheel."""
    info = f"{name}-{version(name)}.dist-info"
    own = {path for path in files if not path.startswith(f"{info}/")}
    wrong = [f"lacks {path}" for path in sorted(sources(name) - own)]
    wrong += [f"holds {path}" for path in sorted(own - sources(name))]
    if f"{info}/licenses/LICENSE" not in files:
        wrong.append("lacks the license")
    head = Parser().parsestr(metadata)
    project = tomllib.loads((FOLDERS[name] / "pyproject.toml").read_text("utf-8"))["project"]
    expected = {
        "Name": project["name"],
        "Version": version(name),
        "License-Expression": project["license"],
        "Requires-Python": project["requires-python"],
        "Description-Content-Type": "text/markdown",
    }
    wrong += [
        f"{key} is {head[key]!r}, expected {value!r}"
        for key, value in expected.items()
        if head[key] != value
    ]
    groups = project.get("scripts", {}) | project.get("entry-points", {}).get(
        "vntransfer.commands", {}
    )
    wrong += [f"lacks the command {key}" for key in groups if f"{key} = " not in entries]
    return wrong


def check(name: str, out: Path) -> list[str]:
    """Build both files of a distribution and return what is wrong with them."""
    sdist = build(FOLDERS[name], "sdist", out)
    with tempfile.TemporaryDirectory() as place, tarfile.open(sdist) as archive:
        files = {path.partition("/")[2] for path in archive.getnames()}
        archive.extractall(place, filter="data")
        (unpacked,) = Path(place).iterdir()
        wheel = build(unpacked, "wheel", out)
    wrong = [f"{sdist.name} {complaint}" for complaint in sdist_complaints(name, files)]
    with zipfile.ZipFile(wheel) as archive_:
        info = f"{name}-{version(name)}.dist-info"
        texts = [
            archive_.read(f"{info}/{part}").decode() for part in ("METADATA", "entry_points.txt")
        ]
        found = wheel_complaints(name, set(archive_.namelist()), *texts)
    wrong += [f"{wheel.name}: {complaint}" for complaint in found]
    for path in (sdist, wheel):
        if path.stat().st_size > LARGEST:
            wrong.append(f"{path.name} has {path.stat().st_size:,} bytes")
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")
    return wrong


def main(out: Path) -> None:
    """Build and check both distributions, and fail if anything is wrong."""
    wrong = [complaint for name in FOLDERS for complaint in check(name, out)]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    if wrong:
        sys.exit(f"{len(wrong)} complaints about the distributions")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder))
