"""Cells: the key changes with everything that determines the result, and with nothing else."""

from dataclasses import replace

from vntransfer_lab.runner.cells import Cell, expand
from vntransfer_lab.runner.preset import check, override, read_preset

RAW = read_preset("smoke")[1]


def cells(**changes: object) -> list[Cell]:
    return expand(check(override(RAW, **changes), "smoke"))  # type: ignore[arg-type]


def test_every_field_but_the_condition_changes_the_key() -> None:
    cell = cells()[0]
    others = [
        replace(cell, experiment="other"),
        replace(cell, version="1.2"),
        replace(cell, data="other"),
        replace(cell, data_hash="0"),
        replace(cell, target="s9"),
        replace(cell, method="ridge"),
        replace(cell, hyper={"alpha": 1.0}),
        replace(cell, seed=9),
        replace(cell, selection="oracle"),
        replace(cell, settings={**cell.settings, "n_samples": 9}),
    ]
    assert len({cell.key, *(other.key for other in others)}) == 11
    assert replace(cell, condition=("n_samples",)).key == cell.key


def test_equal_presets_give_equal_keys_and_order() -> None:
    assert [c.key for c in cells()] == [c.key for c in cells()]
    assert cells()[0].key == cells(seeds=1)[0].key


def test_data_is_part_of_the_key() -> None:
    small, large = cells(settings={"n_samples": 50})[0], cells(settings={"n_samples": 60})[0]
    assert small.data_hash != large.data_hash


def test_grids_multiply_and_repeated_cells_are_dropped() -> None:
    assert len(cells(seeds=1, targets=["s1"])) == 1 + 3 + 1
    twice = cells(seeds=1, targets=["s1"], settings={"grid.n_samples": [50, 60, 50]})
    assert len(twice) == 2 * 5
    assert {cell.label for cell in twice if cell.method == "constant"} == {
        "synthetic s1 n_samples=50 constant seed 0",
        "synthetic s1 n_samples=60 constant seed 0",
    }
