"""Cells that other folders have finished are taken from there, and nothing else is."""

from pathlib import Path

import pytest

from lab_helpers.runs import TINY_STREAM, changed, finished
from vntransfer_lab import RunOptions, pack, read_provenance, run
from vntransfer_lab.errors import StoreError
from vntransfer_lab.runner.cells import expand
from vntransfer_lab.runner.records import CellOutcome
from vntransfer_lab.runner.store import Store, read_records

SMALL = {"targets": ["s1"], "seeds": 2}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("first")
    run("smoke", methods=["constant", "ridge"], jobs=1, out=folder, **SMALL)
    return folder


@pytest.mark.parametrize("packed", [False, True])
def test_equal_cells_are_taken_over_and_others_computed(
    packed: bool, first: Path, tmp_path: Path
) -> None:
    source = first
    if packed:
        source = tmp_path / "packed"
        pack(first, source)
    folder = tmp_path / "second"
    reuse = RunOptions(reuse=[source])
    summary = run("smoke", methods=["ridge"], jobs=1, out=folder, options=reuse, targets=["s1"])
    conditions = 3
    assert summary.computed == summary.done - 2 * conditions
    whole = tmp_path / "whole"
    run("smoke", methods=["ridge"], jobs=1, out=whole, targets=["s1"])
    one, two = (read_records(f)[1] for f in (folder, whole))
    assert [(r.key, r.metrics, r.warnings) for r in one] == [
        (r.key, r.metrics, r.warnings) for r in two
    ]
    assert [r.key for r in one if r.cost] == [r.key for r in two if r.cost]
    (told,) = read_provenance(folder)["invocations"]
    name = f"{source.parent.name}/{source.name}"  # nothing of where this machine has it
    assert told["reused"] == {name: 2 * conditions}
    assert told["command"].endswith(f"--reuse {name}")


def test_failed_and_foreign_cells_are_left(first: Path, tmp_path: Path) -> None:
    with Store(first) as store:
        key = store.records()[0].key
    broken = tmp_path / "broken"
    preset = changed("smoke", methods=["constant", "ridge"], **SMALL)
    with Store(broken, write=True) as store:
        store.plan(preset, expand(preset))
        store.finish(key, CellOutcome(error="no"))
    folder = tmp_path / "next"
    computed = [
        run(
            "smoke",
            methods=["constant"],
            jobs=1,
            out=folder,
            options=RunOptions(reuse=[source]),
            **SMALL,
        ).computed
        for source in (broken, first)
    ]
    assert computed == [2, 0]
    assert read_provenance(folder)["invocations"][-1]["reused"] == {
        f"{first.parent.name}/{first.name}": 0
    }


def test_trials_of_a_search_are_taken_as_well_and_not_made_for_finished_cells(
    tmp_path: Path,
) -> None:
    lists = {"methods.l2.lr": [0.01], "methods.l2.strength": [0.1, 1.0], "data": "digitsP"}
    settings = TINY_STREAM | lists
    source = finished(tmp_path / "a", changed("mnistP", methods=["l2"], seeds=1, settings=settings))
    packed = tmp_path / "packed"
    pack(source, packed)  # it holds no trials

    def again(name: str, reuse: Path, seeds: int) -> tuple[int, int]:
        size = {"methods": ["l2"], "seeds": seeds, "settings": settings, "jobs": 1}
        summary = run("mnistP", out=tmp_path / name, options=RunOptions(reuse=[reuse]), **size)
        return summary.done, summary.computed

    assert again("b", source, 1) == (3, 0)
    assert again("c", packed, 1) == (1, 0)
    assert again("d", packed, 2) == (4, 3)  # the second seed and its two trials


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"reuse: .* is neither a run folder nor packed"):
        run("smoke", jobs=1, out=tmp_path / "run", options=RunOptions(reuse=[tmp_path]))
    assert not (tmp_path / "run").exists()
