"""Cells: the key changes with everything that determines the result, and with nothing else."""

from dataclasses import replace

import pytest

from lab_helpers.docs_code import ROOT
from vntransfer_lab.runner.cells import Cell, expand
from vntransfer_lab.runner.kinds import CellMethod
from vntransfer_lab.runner.packed import read_packed
from vntransfer_lab.runner.preset import check, load_preset, override, read_preset

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


def test_options_that_came_later_do_not_change_the_key_at_the_old_value() -> None:
    late = CellMethod(late={"scale": False})
    assert late.named({"alpha": 1.0, "scale": False}) == {"alpha": 1.0}
    assert late.named({"alpha": 1.0, "scale": True}) == {"alpha": 1.0, "scale": True}


@pytest.mark.parametrize("name", ["synthetic", "synthetic-paper"])
def test_archived_cells_keep_their_keys(name: str) -> None:
    """The data of these is made, not read: their hash is here, too."""
    archived = {record.key for record in read_packed(ROOT / "lab" / "results" / name)[1]}
    assert archived == {cell.key for cell in expand(load_preset(name))}


def test_archived_streams_are_what_their_presets_say_today() -> None:
    """Their data is read: what is compared is all of a key but the hash of the files."""
    names = []
    for folder in sorted((ROOT / "lab" / "results").iterdir()):
        archived = read_packed(folder)[0]
        if archived.experiment == "continual":
            names.append(archived.name)
            today = load_preset(archived.name, settings={"selection": archived.selection})
            for part in ("methods", "seeds", "settings", "grid", "data"):
                assert getattr(archived, part) == getattr(today, part), f"{folder.name}: {part}"
    assert {"streams", "protocol-streams", "table3", "covp-long", "omniglot"} <= set(names)


def test_methods_can_have_settings_of_their_own_on_a_data_set() -> None:
    raw = {**RAW, "per_data": {"synthetic": {"ridge": {"alpha": 3.0}}}}
    preset = check(override(raw, methods=["constant", "ridge"]), "smoke")
    assert preset.grids["ridge"]  # of the preset's: a grid is before all else
    kept = check(override(raw, methods=["constant"]), "smoke")
    assert kept.per_data == {}
    raw["methods"] = {"ridge": {}, "constant": {}}
    raw["selection"] = "last_epoch"
    found = {c.method: c.hyper for c in expand(check(raw, "smoke"))}
    assert found == {"constant": {}, "ridge": {"alpha": 3.0}}
    assert cells(settings={"data": ["synthetic"]})
