"""Columns that cannot be used at the target, leaks, ids, and rows that repeat others."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vntransfer.errors import DataError
from vntransfer.repeats import FEWEST, repeated, row_keys, split_rows
from vntransfer.storage.record import from_record
from vntransfer.tables.determines import NEARLY, held_out_ratio, sample
from vntransfer.tables.notes import Note, grouped, overview
from vntransfer.tables.problem import Problem, TableColumns, read_problem

PLACES = ["A", "B", "C", "new"]
rng = np.random.default_rng(0)
TOWN = np.repeat(PLACES, 40)
NEW = TOWN == "new"
SIZE = rng.normal(100, 20, 160)
PRICE = np.where(NEW, np.nan, 3 * SIZE + rng.normal(0, 30, 160))
KIND = rng.choice(["flat", "house"], 160)


def table(**columns: Any) -> dict[str, Any]:
    return {"town": TOWN, "size": SIZE, "kind": KIND, "price": PRICE, **columns}


def problem(
    columns: Mapping[str, Any], targets: tuple[str, ...] = ("new",), **options: Any
) -> Problem:
    return read_problem(columns, TableColumns("town", "price", **options), targets=targets)


def at_new(sources: Any, new: Any) -> Any:
    return np.where(NEW, new, sources)


def note_on(found: Problem, column: str) -> Note:
    own = [note for note in found.notes if note.column == column]
    assert len(own) == 1, own
    return own[0]


DAYS = np.datetime64("2020-01-01") + np.arange(160) % 40 * 18

UNUSABLE: dict[str, tuple[str, Any]] = {
    "all cells empty": ("empty", at_new(1.08 * PRICE, np.nan)),
    "nearly all cells empty": ("empty", np.where(NEW & (np.arange(160) != 130), np.nan, SIZE**2)),
    "marks for nothing": ("empty", np.where(NEW, "n/a", np.round(SIZE, 1).astype(str))),
    "one value no source has": ("constant", at_new(1.08 * PRICE, 0.0)),
    "one value in range": ("constant", at_new(rng.normal(size=160), 0.123)),
    "other categories": ("unseen", np.where(NEW, "x", rng.choice(["a", "b"], 160))),
    "texts for numbers": ("type", np.where(NEW, "many", np.round(SIZE, 1).astype(str))),
    "dates for numbers": ("type", np.where(NEW, "2020-01-01", np.round(SIZE, 1).astype(str))),
    "empty at the sources": ("empty", np.where(NEW, "2020-01-01", "")),
    "later years alone": (
        "dates",
        np.where(
            NEW,
            np.datetime64("2021-06-01") + np.arange(160) % 3 * 7,
            np.datetime64("2020-01-01") + np.arange(160) % 5 * 7,
        ),
    ),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_columns_that_cannot_be_used_at_the_target_are_dropped(name: str) -> None:
    kind, cells = UNUSABLE[name]
    found = problem(table(odd=cells))
    note = note_on(found, "odd")
    assert (note.kind, note.done) == (kind, "dropped")
    assert note.warning
    assert "empty in all 120 labeled rows" in note.text or "at target 'new'" in note.text
    assert found.encoder.needed == ["size", "kind"]
    assert np.isfinite(found.X).all()
    assert not [own for own in problem(table()).notes if own.column]


USABLE: dict[str, Any] = {
    "a measurement": rng.normal(size=160),
    "outside of the sources' range": at_new(rng.uniform(0, 1, 160), rng.uniform(2, 3, 160)),
    "a value that sources have": np.where(NEW, "no", rng.choice(["yes", "no"], 160)),
    "half empty": np.where(np.arange(160) % 2, np.nan, SIZE + rng.normal(0, 20, 160)),
    "some new categories": np.where(NEW & (np.arange(160) % 2 == 0), "z", KIND),
    "one value for each place": np.repeat([1.0, 3.0, 5.0, 2.5], 40),
    "whole numbers": rng.integers(0, 100, 160),
    "sizes rounded": (SIZE * 1000).round(),
    "the years of all": DAYS,
    "one value, or none": np.where(np.arange(160) % 3, np.nan, 7.0),
}


@pytest.mark.parametrize("name", USABLE)
def test_columns_that_can_be_used_stay(name: str) -> None:
    found = problem(table(fine=USABLE[name]))
    assert "fine" in found.encoder.needed
    assert not any(note.warning for note in found.notes), found.notes


def test_dates_outside_of_the_sources_lose_what_cannot_help() -> None:
    later = np.where(NEW, DAYS + np.timedelta64(3 * 365, "D"), DAYS)
    found = problem(table(day=later))
    assert "day: years" not in found.encoder.names
    assert {"day: season sin", "day: weekday cos"} <= set(found.encoder.names)
    assert note_on(found, "day").kind == "dates"
    assert note_on(found, "day").warning
    assert "does not include changes of the response over time" in note_on(found, "day").text
    named = [note.kind for note in found.notes if "'day'" in note.text]
    assert named == ["dates"]  # its years are not used, so that they cannot be out of range
    both = np.where(TOWN == "C", later.max(), later)
    names = problem(table(day=both), ("new", "C")).encoder.names
    assert "day: years" not in names
    winter = np.datetime64("2020-01-01") + np.arange(160) % 40
    summer = np.where(NEW, winter + np.timedelta64(180, "D"), winter)
    names = problem(table(day=summer)).encoder.names
    assert [own for own in names if own.startswith("day")] == [
        "day: weekday sin",
        "day: weekday cos",
    ]


def test_numbers_that_may_be_codes_of_the_target_alone_are_named() -> None:
    zone = at_new(rng.choice([1, 3, 5], 160), rng.choice([2, 4], 160))
    note = note_on(problem(table(zone=zone)), "zone")
    assert (note.kind, note.done, note.share) == ("unseen", "kept", 1.0)
    assert "--category" in note.text
    dropped = note_on(problem(table(zone=zone), category=["zone"]), "zone")
    assert (dropped.kind, dropped.done) == ("unseen", "dropped")


def test_named_features_stay_unless_they_are_empty() -> None:
    other = UNUSABLE["other categories"][1]
    kept = problem(table(odd=other), features=["size", "odd"])
    assert kept.encoder.needed == ["size", "odd"]
    assert note_on(kept, "odd").done == "kept"
    for name in ("all cells empty", "nearly all cells empty", "marks for nothing"):
        with pytest.raises(DataError, match=r"features: column 'odd' is empty .*--features"):
            problem(table(odd=UNUSABLE[name][1]), features=["size", "odd"])
    with pytest.raises(DataError, match=r"'odd'.* 120 labeled rows"):
        problem(table(odd=UNUSABLE["empty at the sources"][1]), features=["size", "odd"])
    with pytest.raises(DataError, match="'many' is not a number"):
        problem(table(odd=UNUSABLE["texts for numbers"][1]), features=["size", "odd"])


def test_a_single_cell_of_another_type_is_still_an_error() -> None:
    cells = np.round(SIZE, 1).astype("U10")
    cells[150] = "many"
    with pytest.raises(DataError, match=r"row 152.*'odd'.*'many'"):
        problem(table(odd=cells))


def test_a_column_must_be_usable_at_every_target() -> None:
    odd = np.where(TOWN == "C", np.nan, SIZE**2)
    found = problem(table(odd=odd), ("new", "C"))
    assert "odd" not in found.encoder.needed
    assert "at target 'C'" in note_on(found, "odd").text
    assert "odd" in problem(table(odd=odd)).encoder.needed  # a source may lack it


def test_what_determines_the_response_stays_with_a_warning_if_the_target_has_it() -> None:
    full = np.where(NEW, 3 * SIZE, PRICE)
    for leak in (1.08 * full, np.log(full), -(full**3), np.round(full, 1)):
        found = problem(table(leak=leak))
        note = note_on(found, "leak")
        assert (note.kind, note.done, note.warning) == ("determines", "kept", True)
        assert "--drop" in note.text
        assert "leak" in found.encoder.needed
    some = np.where(NEW & (np.arange(160) % 5 == 0), np.nan, full)
    note = note_on(problem(table(leak=some)), "leak")
    assert (note.kind, note.done) == ("determines", "dropped")
    assert "20 %" in note.text
    classes = np.where(NEW, np.nan, (SIZE > 100).astype(float))
    told = {**table(price=classes), "label": np.where(SIZE > 100, "dear", "cheap")}
    assert note_on(problem(told), "label").kind == "determines"


def test_a_noisy_leak_is_named() -> None:
    full = np.where(NEW, 3 * SIZE, PRICE)
    leak = full + np.random.default_rng(8).normal(0, 6, 160)
    note = note_on(problem(table(leak=leak)), "leak")
    assert (note.kind, note.done, note.warning) == ("close", "kept", False)
    assert "--drop leak" in note.text


def test_a_column_with_more_gaps_at_the_target_is_named() -> None:
    gaps = np.where(NEW & (np.arange(160) % 2 == 0), np.nan, SIZE + rng.normal(0, 20, 160))
    few = np.where(np.arange(160) % 10 == 0, np.nan, SIZE + rng.normal(0, 20, 160))
    texts = np.where(NEW & (np.arange(160) % 2 == 0), "", KIND)
    for cells in (gaps, texts):
        found = problem(table(odd=cells))
        note = note_on(found, "odd")
        assert (note.kind, note.done, note.share, note.warning) == ("gaps", "kept", 0.5, True)
        assert "odd" in found.encoder.needed
        assert note_on(problem(table(odd=cells), features=["size", "odd"]), "odd").kind == "gaps"
    assert not [own for own in problem(table(odd=few)).notes if own.column]


@pytest.mark.parametrize("mark", [-999, 9999.0, -99])
def test_numbers_that_may_mark_missing_values_are_named(mark: float) -> None:
    at = np.arange(160) % 20 == 0
    odd = np.where(at, mark, rng.uniform(0, 20, 160))
    note = note_on(problem(table(odd=odd)), "odd")
    assert (note.kind, note.share, note.warning) == ("marker", 0.05, True)
    assert f"is {mark:g} in 8 of 160 rows" in note.text
    response = np.where(NEW, np.nan, np.where(at, mark, rng.uniform(0, 20, 160)))
    assert note_on(problem(table(price=response)), "price").kind == "marker"
    near = np.where(at, -99, rng.uniform(0, 400, 160))
    assert note_on(problem(table(odd=near)), "odd").kind == "marker"
    honest = np.where(at, 99.0, rng.uniform(0, 98, 160))
    assert not [own for own in problem(table(odd=honest)).notes if own.column]


def test_categories_that_most_rows_of_the_target_have_alone_are_a_warning() -> None:
    for share in (0.75, 0.5, 0.25):
        new = NEW & (np.arange(160) % 4 >= 4 * (1 - share))
        cells = np.where(new, "pump", rng.choice(["gas", "oil"], 160))
        (note,) = [own for own in problem(table(odd=cells)).notes if "'pump'" in own.text]
        assert (note.share, note.warning) == (share, share > 0.5)


def test_sources_whose_response_does_not_vary_are_named() -> None:
    note = note_on(problem(table(price=np.where(TOWN == "B", 7.0, PRICE))), "price")
    assert (note.kind, note.share, note.warning) == ("flat", 1 / 3, True)
    assert "B (7)" in note.text


def test_cells_of_another_format_are_quoted_with_a_remedy() -> None:
    for cell, remedy in (("1,200", "--thousands"), ("12 kg", "--unit 'kg'")):
        cells = np.where(NEW, cell, np.round(SIZE, 1).astype(str))
        note = note_on(problem(table(odd=cells)), "odd")
        assert note.kind == "type"
        assert repr(cell) in note.text
        assert remedy in note.text
    prices = ["" if np.isnan(own) else f"{own:.0f} EUR" for own in PRICE]
    with pytest.raises(DataError, match=r"'\d+ EUR' is not .*declare its unit with --unit 'EUR'"):
        problem(table(price=prices))


def test_good_honest_predictors_do_not_determine_the_response() -> None:
    places = np.arange(600) % 4
    x = rng.normal(size=600)
    for noise, heavy in ((0.05, False), (0.1, True), (1.0, False)):
        y = np.exp(x) if heavy else x
        assert held_out_ratio(x, y + noise * rng.standard_normal(600), places) > NEARLY
    outliers = np.exp(2 * x)
    outliers[:5] *= 1e4
    assert held_out_ratio(1.08 * outliers, outliers, places) < 1e-6
    assert held_out_ratio(np.log(outliers), outliers, places) < NEARLY
    assert held_out_ratio(rng.normal(size=600), outliers, places) == np.inf


def test_a_large_source_does_not_hide_a_leak_of_small_ones() -> None:
    places = np.concatenate((np.zeros(50_000, np.intp), np.repeat([1, 2], 3), np.repeat([3], 60)))
    rows = sample(places)
    assert len(rows) <= 4000
    assert set(places[rows]) == {0, 1, 2, 3}
    y = np.random.default_rng(1).lognormal(size=len(places))
    assert held_out_ratio(1.08 * y[rows], y[rows], places[rows]) < 1e-9


IDS: dict[str, Any] = {
    "shuffled": np.random.default_rng(2).permutation(160) + 1000,
    "restarts in each place": np.concatenate(
        [np.random.default_rng(k).permutation(40) for k in range(4)]
    ),
    "row numbers that restart": np.tile(np.arange(40), 4),
    "customer_id": np.random.default_rng(3).integers(10**7, 10**8, 160),
    "texts": [f"c{i:05}" for i in range(160)],
}


@pytest.mark.parametrize("name", IDS)
def test_ids_are_dropped(name: str) -> None:
    found = problem({**table(), name: IDS[name]})
    assert name not in found.encoder.needed
    assert note_on(found, name).kind == "id"
    assert name in problem({**table(), name: IDS[name]}, features=["size", name]).encoder.needed


@pytest.mark.parametrize("made", [np.asarray, lambda ids: np.array([f"c{i}" for i in ids])])
@pytest.mark.parametrize("fresh", [False, True])
def test_ids_of_repeated_rows_are_dropped_and_the_rows_counted(made: Any, fresh: bool) -> None:
    ids = np.random.default_rng(4).permutation(160)
    rows = {name: np.repeat(cells, 3) for name, cells in table(id=made(ids)).items()}
    if fresh:
        rows["id"] = made(np.random.default_rng(5).permutation(480))
    found = problem(rows)
    assert "id" not in found.encoder.needed
    (note,) = [own for own in found.notes if own.kind == "repeats"]
    assert note.text.startswith("240 of 360 rows of sources repeat another row")
    assert note.warning


def test_row_numbers_that_restart_at_many_places_are_dropped() -> None:
    town = np.repeat([f"t{i}" for i in range(20)], 30)
    random = np.random.default_rng(6)
    size, price = random.normal(size=(2, 600))
    numbers, doors = np.tile(np.arange(30), 20), random.integers(1, 31, 600)
    for repeat in (1, 3):
        columns = {"town": town, "size": size, "nr": numbers, "door": doors, "price": price}
        found = problem({k: np.repeat(v, repeat) for k, v in columns.items()}, ("t0",))
        assert found.encoder.needed == ["size", "door"]
        assert note_on(found, "nr").kind == "id"


def test_rows_that_several_places_have_are_named() -> None:
    rows = {name: np.concatenate((cells, cells[:40])) for name, cells in table().items()}
    both = problem({**rows, "town": np.concatenate((TOWN, ["B"] * 40))})
    texts = [note.text for note in both.notes if note.kind == "repeats"]
    assert any("33 % of the different rows occur at two or more sources" in text for text in texts)
    assert any("too optimistic" in text for text in texts)
    for some, said in ((3, ["2 % of the different rows occur at two or more sources"]), (0, [])):
        one = {name: np.concatenate((cells, cells[:some])) for name, cells in table().items()}
        chance = problem({**one, "town": np.concatenate((TOWN, ["B"] * some))})
        assert [note.text for note in chance.notes if note.kind == "repeats"] == said
    copied = problem({**rows, "town": np.concatenate((TOWN, ["new"] * 40))})
    texts = [note.text for note in copied.notes if note.kind == "repeats"]
    assert any("40 of 80 rows of targets equal a source's row" in text for text in texts)
    few = {"town": TOWN, "garden": KIND, "price": PRICE}  # equal rows by nature
    assert not [note for note in problem(few).notes if note.kind == "repeats"]


def test_notes_are_grouped() -> None:
    found = problem(
        table(a=UNUSABLE["all cells empty"][1], b=UNUSABLE["other categories"][1], nr=IDS["texts"])
    )
    groups = grouped(found.notes)
    assert [len(groups["dropped"]), groups["dropped"][0].column] == [3, "a"]
    assert overview(found.notes).startswith(f"{len(found.notes)} notes: 3 columns dropped")
    for note in found.notes:
        assert from_record(Note, "note", asdict(note)) == note
    for broken in ({"kind": "odd"}, {"text": 3}, {"share": "1"}, {"done": "no"}):
        with pytest.raises(DataError, match="note"):
            from_record(Note, "note", {**asdict(found.notes[0]), **broken})


@given(st.lists(st.integers(0, 40), min_size=1, max_size=60), st.integers(0, 60))
@settings(deadline=None)
def test_equal_rows_are_on_one_side_of_a_split(values: list[int], n: int) -> None:
    rows, keys = np.arange(len(values)), row_keys(np.array(values))
    n = min(n, len(rows) - 1)
    first, others = split_rows(rows, keys, n)
    assert sorted([*first, *others]) == rows.tolist()
    if len(set(values)) >= FEWEST:
        assert not set(keys[first]) & set(keys[others])
        assert bool(len(first)) == bool(n)
        assert len(others)
    if not repeated(keys).any():
        assert first.tolist() == rows[:n].tolist()


@given(st.lists(st.lists(st.sampled_from([0.0, -0.0, 1.0, 2.0, 0.5]), min_size=3, max_size=3)))
def test_keys_are_equal_where_rows_are(values: list[list[float]]) -> None:
    import scipy.sparse

    X = np.array(values).reshape(-1, 3)
    keys = row_keys(X)
    same = (X[:, None] == X[None]).all(2)
    np.testing.assert_array_equal(keys[:, None] == keys[None], same)
    np.testing.assert_array_equal(row_keys(scipy.sparse.csr_array(X)), keys)
