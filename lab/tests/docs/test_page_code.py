"""Pages whose code is checked for more than that it runs."""

import re
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import vntransfer
from lab_helpers.docs_code import ROOT, blocks, code_of, load_tool, run
from vntransfer import example_table
from vntransfer.cli import app


def vnt(*arguments: Any) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_example_is_what_its_generator_makes() -> None:
    made = load_tool("make_example").files()
    assert made["houses.csv"] == example_table().read_text(encoding="utf-8")
    assert made["houses_saltby.csv"] == example_table("answers").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["adapt.md", "tutorial.md"])
def test_python_of_the_pages_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    quick = partial(vntransfer.adapt, compare=())  # networks take their time
    monkeypatch.setattr(vntransfer, "adapt", quick)
    names: dict[str, Any] = {}
    for kind, code in code_of(ROOT / "docs" / page):
        if kind == "python":
            exec(compile(code, page, "exec"), names)
    mean, spread = names["model"].outcomes["Saltby"].expected()
    assert mean < 25
    assert spread < 3


def test_the_page_on_tasks_says_what_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (_, commands), (_, printed), (_, code), (_, update), (_, predict) = code_of(
        ROOT / "docs" / "continual-tables.md"
    )
    for line in commands.splitlines():
        done = vnt(*line.split()[1:])
        assert done.exit_code == 0, (done.output, done.stderr)
    first, second, _, *lines = filter(None, printed.splitlines())
    assert first in done.output
    assert second in done.output
    summary = done.output.split("After all tasks")[1]
    for line in lines:  # the last digits are those of one machine
        method, *expected = line.split()
        (found,) = re.findall(rf"│ {method} +│(.*)│\n", summary)
        numbers = [float(cell) for cell in found.split("│")]
        np.testing.assert_allclose(numbers, list(map(float, expected)), rtol=0.05, atol=1)
    assert Path("page.html").exists()
    done = vnt(*update.split()[1:])
    assert done.exit_code == 0, (done.output, done.stderr)
    shutil.copy("houses.csv", "new.csv")
    done = vnt(*predict.split()[1:])
    assert "1,020 rows have a response" in done.output
    names: dict[str, Any] = {}
    shutil.rmtree("network")
    exec(compile(code, "continual-tables.md", "exec"), names)
    assert names["model"].matrix.shape == (6, 6)


def test_tasks_of_the_gallery_print_what_the_page_says(
    real: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VNT_DATA", str(real))
    page = blocks((ROOT / "docs" / "gallery.md").read_text(encoding="utf-8"))
    tasks = [block for block in page if block.kind == "python"]
    assert len(tasks) == len(load_tool("make_gallery").DRAWN) == 10
    run(page, {}, ("python",))
