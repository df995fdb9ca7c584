"""What a release states about itself agrees, and the check of its files finds what is wrong."""

import re
import tomllib

import pytest

import vntransfer
import vntransfer_lab._version
from lab_helpers.docs_code import ROOT, load_tool

CHECK = load_tool("check_dist")
VERSION = vntransfer.__version__


def test_one_version_everywhere() -> None:
    cited = re.findall(r"^version: (\S+)", (ROOT / "CITATION.cff").read_text("utf-8"), re.M)
    logged = re.findall(r"^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert (vntransfer_lab._version.__version__, cited, logged[0]) == (VERSION, [VERSION], VERSION)
    laboratory = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text("utf-8"))
    (needed,) = (d for d in laboratory["project"]["dependencies"] if d.startswith("vntransfer"))
    assert f">={VERSION.rpartition('.')[0]}." in needed


def test_both_distributions_have_the_license() -> None:
    assert (ROOT / "lab" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


@pytest.mark.parametrize("name", CHECK.FOLDERS)
def test_incomplete_files_are_found(name: str) -> None:
    info = f"{name}-{VERSION}.dist-info"
    project = tomllib.loads((CHECK.FOLDERS[name] / "pyproject.toml").read_text("utf-8"))["project"]
    head = (
        f"Name: {project['name']}\nVersion: {VERSION}\nLicense-Expression: BSD-3-Clause\n"
        "Requires-Python: >=3.11\nDescription-Content-Type: text/markdown\n"
    )
    entries = "vnt = a\nbench = a\ndata = a\n"
    whole = CHECK.sources(name) | {f"{info}/licenses/LICENSE"}
    assert CHECK.wheel_complaints(name, whole, head, entries) == []
    typed, extra = f"{name}/py.typed", f"{name}/data.csv"
    assert CHECK.wheel_complaints(name, whole - {typed}, head, entries) == [f"lacks {typed}"]
    assert CHECK.wheel_complaints(name, whole | {extra}, head, entries) == [f"holds {extra}"]
    assert CHECK.wheel_complaints(name, whole, head, "") != []
    (wrong,) = CHECK.wheel_complaints(name, whole, head.replace(VERSION, "9"), entries)
    assert wrong == f"Version is '9', expected {VERSION!r}"
    files = {f"src/{path}" for path in CHECK.sources(name)} | CHECK.BESIDE[name]
    files |= CHECK.linked(name)
    assert CHECK.sdist_complaints(name, files) == ["lacks pyproject.toml"]
    complete = {*files, "pyproject.toml", "results/table3/run.json"}
    assert CHECK.sdist_complaints(name, complete) == ["holds results/table3/run.json"]
