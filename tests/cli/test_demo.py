"""``vnt demo`` as a newcomer runs it."""

import re
from pathlib import Path
from typing import Literal

import pytest
from typer.testing import CliRunner

from vntransfer import example_table, load
from vntransfer.cli import app


def test_demo_relates_adapts_predicts_and_learns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fewer_houses(name: Literal["houses", "answers"] = "houses") -> Path:
        """Give every third row: `make demo` runs the whole."""
        head, *rows = example_table(name).read_text("utf-8").splitlines(keepends=True)
        path = tmp_path / f"few_{name}.csv"
        path.write_text("".join((head, *rows[::3])), encoding="utf-8")
        return path

    monkeypatch.setattr("vntransfer.tables.example.example_table", fewer_houses)
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path), "--seed", "3"])
    assert result.exit_code == 0, result.output
    for step in ("1. Relate", "2. Adapt", "3. Predict", "4. Learn"):
        assert step in result.output
    found = re.search(
        r"Expected error (\d+\.\d) ± [\d.]+ thousand; actual (\d+\.\d)", result.output
    )
    assert found is not None
    expected, actual = map(float, found.groups())
    assert 0.5 < expected / actual < 2
    pages = [tmp_path / f"{name}.html" for name in ("relate", "adapt", "learn")]
    assert result.output.strip().splitlines()[-3:] == [str(page.resolve()) for page in pages]
    assert all("<svg" in page.read_text("utf-8") for page in pages)
    assert (tmp_path / "predicted.csv").is_file()
    assert load(tmp_path / "model").targets == ["Saltby"]
