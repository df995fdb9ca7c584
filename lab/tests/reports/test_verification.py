"""Numbers of a run are checked by computing them again, and a wrong one is found."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from vntransfer.cli import app
from vntransfer.errors import ArgumentError
from vntransfer.storage.files import file_hash
from vntransfer_lab import pack, run, verify
from vntransfer_lab.errors import PresetError, StoreError
from vntransfer_lab.reports.verification import TOLERANCE
from vntransfer_lab.runner.packed import CELLS_NAME, RUN_NAME


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("verify")
    run("smoke", methods=["constant", "ridge"], targets=["s1", "s2"], seeds=2, out=place / "run")
    pack(place / "run", place / "packed")
    return place / "packed"


def rewritten(packed: Path, out: Path, change: Callable[[int, dict[str, Any]], Any]) -> Path:
    """Packed results with changed rows and matching digests."""
    table = pq.read_table(packed / CELLS_NAME)
    rows = [{**row, **change(i, row)} for i, row in enumerate(table.to_pylist())]
    out.mkdir()
    pq.write_table(type(table).from_pylist(rows, table.schema), out / CELLS_NAME)
    described = json.loads((packed / RUN_NAME).read_text("utf-8"))
    described["sha256"] = file_hash(out / CELLS_NAME)
    del described["digest"]  # results of before have none
    (out / RUN_NAME).write_text(json.dumps(described), "utf-8")
    return out


def off(i: int, row: dict[str, Any]) -> dict[str, Any]:
    """Metrics of seed 1, a quarter too large."""
    factor = 1.25 if row["seed"] == 1 else 1.0
    return {"metrics": [{**one, "value": factor * one["value"]} for one in row["metrics"]]}


def test_the_same_cells_come_out_equal_and_the_folder_stays_as_it_is(packed: Path) -> None:
    before = {path: path.read_bytes() for path in packed.iterdir()}
    found = verify(packed, cells=5, jobs=1)
    assert len({(one.label, one.before) for one in found}) == 5
    assert all(one.gap == 0 and one.equal == one.numbers > 0 for one in found)
    assert {path: path.read_bytes() for path in packed.iterdir()} == before


def test_cells_are_drawn_by_the_seed_among_those_that_are_named(packed: Path) -> None:
    draws = [[one.label for one in verify(packed, cells=2, seed=s, jobs=1)] for s in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]
    some = verify(packed, cells=50, methods=["constant"], targets=["s2"], jobs=1)
    assert [one.label for one in sorted(some, key=lambda one: one.label)] == [
        "synthetic s2 constant seed 0",
        "synthetic s2 constant seed 1",
    ]


def test_a_wrong_number_is_found(packed: Path, tmp_path: Path) -> None:
    wrong = rewritten(packed, tmp_path / "wrong", off)
    found = verify(wrong, cells=50, methods=["constant"], jobs=1)
    for one in found:
        late = one.label.endswith("seed 1")
        assert one.gap == pytest.approx(0.2 * one.before if late else 0)
        assert (one.equal == one.numbers) == (not late)
        assert one.spread > 0  # the wrong seed is among those that it is taken over
        assert replace(one, spread=0.0).differs() == late
        assert not replace(one, spread=one.gap).differs()  # seeds are as far apart
        assert not replace(one, spread=0.0).differs(0.25)
        assert replace(one, now=None).differs()


def test_the_command_ends_with_3_where_something_differs(packed: Path, tmp_path: Path) -> None:
    wrong = rewritten(packed, tmp_path / "wrong", lambda i, row: off(i, {**row, "seed": 1}))
    more = ("--cells", "2", "-j", "1")
    for folder, options, code, text in (
        (
            packed,
            more,
            0,
            "2 of 2 cells agree, 2 of them to the last digit; 0 differ by more than 3 %",
        ),
        (
            wrong,
            more,
            3,
            "0 of 2 cells agree, 0 of them to the last digit; 2 differ by more than 3 %",
        ),
        (wrong, (*more, "--tolerance", "0.3"), 0, "0 differ by more than 30 %"),
    ):
        told = CliRunner().invoke(app, ["bench", "verify", str(folder), *options])
        assert told.exit_code == code
        assert text in told.output


def test_the_help_names_the_tolerance() -> None:
    told = CliRunner().invoke(app, ["bench", "verify", "--help"], env={"COLUMNS": "200"})
    assert f"Default: {TOLERANCE:g}." in " ".join(told.output.split())


def test_what_cannot_be_computed_is_said(packed: Path, tmp_path: Path) -> None:
    with pytest.raises(PresetError, match="did you mean 'ridge'"):
        verify(packed, methods=["rige"])
    with pytest.raises(ArgumentError, match=r"cells: .* 1 on, got 0"):
        verify(packed, cells=0)
    changed = {"settings": '{"n_samples": 299, "validation": 0.2}'}
    other = rewritten(packed, tmp_path / "other", lambda i, row: changed)
    with pytest.raises(StoreError, match=r"none of the 3 cells"):
        verify(other, jobs=1)
    half = rewritten(packed, tmp_path / "half", lambda i, row: changed if row["seed"] else {})
    for one in verify(half, cells=50, methods=["constant"], jobs=1):
        late = one.label.endswith("seed 1")
        assert (one.now is None, "have changed" in one.problem, one.differs()) == (late,) * 3


def test_superseded_cells_are_marked_and_not_drawn(packed: Path, tmp_path: Path) -> None:
    def old(i: int, row: dict[str, Any]) -> dict[str, Any]:
        return {"version": "0.0"} if row["method"] == "constant" else {}

    half = rewritten(packed, tmp_path / "half", old)
    found = verify(half, cells=50, jobs=1)
    assert found
    assert all("ridge" in one.label and one.equal == one.numbers for one in found)
    told = CliRunner().invoke(app, ["bench", "verify", str(half), "--cells", "1", "-j", "1"])
    assert told.exit_code == 0
    assert "not drawn: superseded: 4 cells of constant" in told.output
    with pytest.raises(StoreError, match="all 4 cells are superseded"):
        verify(half, methods=["constant"], jobs=1)


def test_other_files_of_the_data_are_used_and_told(packed: Path, tmp_path: Path) -> None:
    def archived(i: int, row: dict[str, Any]) -> dict[str, Any]:
        return {"data_hash": "t10k-images.gz:0123", "key": f"{i:032d}"} if row["seed"] else {}

    other = rewritten(packed, tmp_path / "other", archived)
    for one in verify(other, cells=50, methods=["constant"], jobs=1):
        assert one.equal == one.numbers > 0
        assert ("of the run t10k-images.gz:0123" in one.remark) == one.label.endswith("seed 1")
    command = ["bench", "verify", str(other), "--cells", "50", "--methods", "constant", "-j", "1"]
    told = CliRunner().invoke(app, command)
    assert told.exit_code == 0
    assert told.output.count("the data here have the hash") == 2
