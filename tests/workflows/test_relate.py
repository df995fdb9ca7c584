"""`relate` and its result: what is asked of it, and what it says of places without responses."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.relation_worlds import domain, towns
from vntransfer import Relation, relate
from vntransfer.divergences import DIVERGENCES, pairwise
from vntransfer.errors import ArgumentError, DataError, DomainError, NumericalWarning, VnError

FAST = {"n_resamples": 199, "n_bootstrap": 20}


@pytest.fixture(scope="module")
def found() -> Relation:
    """Two alike (one with wider inputs), one different, one without responses."""
    places = {
        "a": domain(0),
        "b": domain(1, scale=1.5),
        "c": domain(2, slope=-2.0),
        "new": (domain(3)[0], None),
    }
    return relate(places, **FAST)


def test_divergences_are_those_of_standardised_rows(found: Relation) -> None:
    rows = [domain(0), domain(1, scale=1.5), domain(2, slope=-2.0)]
    X = np.vstack([x for x, _ in rows] + [domain(3)[0]])
    y = np.concatenate([y for _, y in rows])
    scaled = [(x / X.std(0, ddof=1), r / y.std(ddof=1)) for x, r in rows]
    expected = pairwise(scaled, ridge=1e-3)
    np.testing.assert_allclose(found.divergences[:3, :3], expected, rtol=1e-8, atol=1e-10)
    alone = pairwise([(x / X.std(0, ddof=1), None) for x, _ in rows], divergence="jeffreys",
                     n_response=0, ridge=1e-3)  # fmt: skip
    np.testing.assert_allclose(found.features_alone[:3, :3], alone, rtol=1e-8, atol=1e-10)


def test_who_is_different(found: Relation) -> None:
    assert found.different() == [("a", "c"), ("b", "c")]
    assert (found.mark("a", "b"), found.mark("a", "c"), found.mark("a", "new")) == ("·", "≠", "?")
    assert found.groups(2) == [["a", "b"], ["c"]] or found.groups(2) == [["c"], ["a", "b"]]
    assert sorted(found.order) == ["a", "b", "c", "new"]
    assert found.order[-1] == "new"
    assert abs(found.order.index("a") - found.order.index("b")) == 1


def test_ranking_and_places_without_responses(found: Relation) -> None:
    assert [near.name for near in found.ranking("a")] == ["b", "c"]
    nearest = found.ranking("a")[0]
    assert nearest.low <= nearest.divergence <= nearest.high
    new = found.ranking("new")
    assert sorted(near.name for near in new) == ["a", "b", "c"]
    assert new[-1].name == "b"  # wider inputs
    assert all(np.isnan(near.divergence) for near in new)
    assert any("'new': without responses" in note for note in found.notes)
    with pytest.raises(DomainError, match="no place 'nowhere'"):
        found.ranking("nowhere")


def test_tables_are_symmetric_and_complete(found: Relation) -> None:
    for table in (found.divergences, found.p_values, found.features_alone, found.intervals.low):
        np.testing.assert_array_equal(table, table.T)
    assert len(found.table()) == 6
    assert np.isfinite(found.features_alone).all()


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_every_divergence_of_the_registry(divergence: str) -> None:
    made = relate([domain(0), domain(1, slope=-2.0)], divergence=divergence, **FAST)
    assert made.divergences[0, 1] > 0
    assert made.different() == [("0", "1")]
    assert DIVERGENCES[divergence].conditional or "joint distribution" in made.notes[-1]


def test_frames_and_mappings_of_columns(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    options = {"domain": "town", "response": "price", **FAST}
    plain, frame = relate(towns(), **options), relate(pandas.DataFrame(towns()), **options)
    np.testing.assert_allclose(frame.divergences, plain.divergences)
    assert plain.different() == [("Lyon", "Oslo")]
    assert [kind for _, kind, _ in plain.treatment] == ["number", "category"]
    chosen = relate(towns(), features=["area"], **options)
    assert chosen.settings["columns"] == 1


def test_sorted_tables_give_the_same_intervals() -> None:
    x, y = domain(0, rows=3000)
    order = np.argsort(y)
    other = domain(1, rows=3000)
    widths = []
    for first in ((x, y), (x[order], y[order])):
        made = relate([first, other], n_resamples=99, n_bootstrap=100)
        widths.append(made.intervals.high[0, 1] - made.intervals.low[0, 1])
    assert 0.5 < widths[0] / widths[1] < 2


def test_whole_numbers_of_numpy_are_taken(found: Relation) -> None:
    assert found.groups(np.int64(2)) == found.groups(2)
    plain = {"n_bootstrap": 20, "n_resamples": 19, "random_state": 3}
    made = [
        relate([domain(0), domain(1)], **{name: kind(value) for name, value in plain.items()})
        for kind in (int, np.int64)
    ]
    assert made[0].settings == made[1].settings
    np.testing.assert_array_equal(made[0].intervals.low, made[1].intervals.low)
    np.testing.assert_array_equal(made[0].p_values, made[1].p_values)


def test_places_too_small_to_be_tested_are_still_compared() -> None:
    made = relate([domain(0), domain(1), domain(2, rows=6)], **FAST)
    assert np.isnan(made.p_values[0, 2])
    assert np.isfinite(made.divergences[0, 2])
    assert any("too few for the test" in note for note in made.notes)


def test_partly_known_responses_count_for_the_features() -> None:
    x, y = domain(0)
    made = relate([(x, np.where(np.arange(200) < 50, np.nan, y)), domain(1)], **FAST)
    assert made.rows["0"] == (150, 50)
    assert any("'0': 50 rows have no response" in note for note in made.notes)


def column(**changes):
    table = towns(60)
    return {**table, **changes}


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ([], {}, "data: .*at least two domains"),
        ("table.csv", {}, "data: .*got str; .*domain= and response="),
        ({"a": domain(0)}, {}, "data: .*at least two domains"),
        ({"a": domain(0), "b": (domain(1)[0], None)}, {}, "is known in 1 place"),
        ({"a": domain(0), "b": (domain(1)[0][:1], [1.0])}, {}, "'b': has one row"),
        (
            {"a": domain(0), "b": (np.zeros((3, 5)), np.arange(3.0))},
            {},
            "numbers of columns differ",
        ),
        ({"a": domain(0), "b": ([["x", "y"]], [1.0])}, {}, "must be numbers"),
        (towns(60), {"domain": "town"}, "a table needs both"),
        (towns(60), {"domain": "town", "response": "prise"}, "did you mean 'price'"),
        (towns(60), {"domain": "town", "response": "kind"}, "is not a finite number"),
        (towns(60), {"domain": "town", "response": "town"}, "is also the domain"),
        (
            column(price=[1.0] * 60),
            {"domain": "town", "response": "price"},
            "a response that varies",
        ),
        (column(price=[None] * 60), {"domain": "town", "response": "price"}, "known in no place"),
        (column(town=["a"] * 60), {"domain": "town", "response": "price"}, "has one place, 'a'"),
        (column(area=[None] * 60), {"domain": "town", "response": "price"}, "'area': empty in all"),
        (
            column(town=[""] * 60),
            {"domain": "town", "response": "price"},
            "enter the place of the row",
        ),
        ([domain(0), domain(1)], {"level": 0.2}, "level: expected .*got 0.2"),
        ([domain(0), domain(1)], {"n_bootstrap": 2}, "n_bootstrap: expected"),
        ([], {"divergence": "equal"}, "divergence: expected one of"),  # before the data are read
        ([], {"n_resamples": 0}, "n_resamples: expected"),
        ([], {"n_resamples": -3}, "n_resamples: expected"),
        ([], {"random_state": None}, "random_state: expected"),
        ([domain(0), domain(1)], {"divergence": "x"}, "divergence: .*got 'x'"),
        (towns(60), {"domain": "town", "response": "price", "engine": "ray"}, "engine: expected"),
    ],
)
def test_mistakes_are_named(data, options: dict, message: str) -> None:
    with pytest.raises((ArgumentError, DataError, DomainError), match=message):
        relate(data, **{**FAST, **options})


CELL = st.one_of(
    st.none(), st.floats(allow_nan=True, allow_infinity=False, width=32), st.booleans(),
    st.text(max_size=4), st.integers(-5, 5),
)  # fmt: skip


@given(
    st.integers(1, 30).flatmap(
        lambda n: st.fixed_dictionaries(
            {
                "place": st.lists(st.sampled_from("abc"), min_size=n, max_size=n),
                "x": st.lists(CELL, min_size=n, max_size=n),
                "z": st.lists(st.floats(-1e6, 1e6), min_size=n, max_size=n),
                "y": st.lists(st.one_of(st.none(), st.floats(-1e3, 1e3)), min_size=n, max_size=n),
            }
        )
    )
)
def test_any_table_is_related_or_refused_with_a_sentence(table: dict) -> None:
    try:
        made = relate(table, domain="place", response="y", n_resamples=99, n_bootstrap=20)
    except VnError as error:
        assert len(str(error)) > 20  # noqa: PT017 the sentence is what is tested
    else:
        known = [made.at(name) for name in made.labeled]
        assert np.isfinite(made.divergences[np.ix_(known, known)]).all()
        assert made.order


def test_too_many_pairs_for_the_resamples_are_told() -> None:
    places = {f"p{i}": domain(i, rows=20, slope=5.0 if i % 2 else -5.0) for i in range(4)}
    with pytest.warns(NumericalWarning, match="at least 119 are needed"):
        found = relate(places, n_resamples=99, n_bootstrap=20)
    assert any(
        "no pair can be found different; use at least 119 resamples" in n for n in found.notes
    )
    assert not np.nanmin(found.p_values) <= 0.05
    enough = relate(places, n_resamples=199, n_bootstrap=20)
    assert not any("resamples" in note for note in enough.notes)
    assert np.nanmin(enough.p_values) <= 0.05


def test_a_ranking_is_of_one_place(found: Relation) -> None:
    with pytest.raises(DomainError, match=r"^target: .*a, b, c, new"):
        found.ranking(["a", "new"])  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"^target: .*None"):
        found.ranking(None)  # type: ignore[arg-type]


def test_places_without_names_are_found_by_number() -> None:
    numbered = relate([domain(0), domain(1)], n_resamples=19, n_bootstrap=20)
    assert numbered.ranking(0)[0].name == "1"
    assert numbered.ranking(np.int64(1))[0].name == "0"
    assert numbered.at(1) == 1


def test_the_answer_comes_first(found: Relation) -> None:
    tested = int(np.isfinite(found.p_values[np.triu_indices(len(found.names), 1)]).sum())
    differ = f"{len(found.different())} of {tested} tested pairs differ"
    assert repr(found) == f"<Relation of {len(found.names)} places: {differ}>"
    first, *more = found.summary().splitlines()
    assert f"in {len(found.different())} of {tested} tested pairs" in first.lower()
    assert any(line.startswith("Closest to new by features alone") for line in more)


def test_rankings_and_groups_agree_with_the_test(tmp_path: Path) -> None:
    # Wider inputs move the divergence of north and east beyond that of north and south.
    rng = np.random.default_rng(0)
    places = {}
    for name, spread, slope in (("north", 1.0, 2.0), ("east", 1.5, 2.0), ("south", 1.0, 1.0)):
        x = spread * rng.standard_normal((300, 2))
        places[name] = (x, slope * x[:, 0] - x[:, 1] + rng.standard_normal(300))
    found = relate(places, **FAST)
    assert ("north", "south") in found.different()
    assert found.divergences[0, 1] > found.divergences[0, 2]
    assert [near.name for near in found.ranking("north")] == ["east", "south"]
    assert [near.different for near in found.ranking("north")] == [False, True]
    assert sorted(map(sorted, found.groups(2))) == [["east", "north"], ["south"]]
    assert "south (" in found.summary()
    assert ", different)" in found.summary()
    page = found.to_page(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "south ≠" in page


def test_a_group_joins_no_pair_above_its_height() -> None:
    """A chain of slopes: places between two that differ do not join them."""
    places = {f"p{k}": domain(k, rows=60, slope=0.5 * k) for k in range(7)}
    found = relate(places, n_resamples=419, n_bootstrap=20)
    heights = found.linkage()[:, 2]
    for n in range(1, 8):
        groups = found.groups(n)
        assert len(groups) == n
        within = max(
            (
                found.statistics[found.at(a), found.at(b)]
                for own in groups
                for a in own
                for b in own
            ),
            default=0.0,
        )
        assert within <= (heights[-n] if n < 7 else 0.0) + 1e-12


def test_many_places_are_tested_within_a_budget(tmp_path: Path) -> None:
    places = {f"p{k}": domain(k, rows=12, slope=4.0 if k % 2 else -4.0) for k in range(52)}
    with pytest.warns(NumericalWarning, match="n_resamples"):
        found = relate(places, n_bootstrap=20, n_resamples=19)
    upper = found.p_values[np.triu_indices(52, 1)]
    assert np.isfinite(upper).sum() == 200
    assert np.isfinite(found.statistics).all()
    assert any("200 of 1,326 pairs are tested" in note for note in found.notes)
    assert "of 200 tested pairs" in repr(found)
    assert "?" in {found.mark("p0", name) for name in found.names[1:]}
    wrong = [
        own
        for group in found.groups(2)
        for own in group
        if int(own[1:]) % 2 != int(group[0][1:]) % 2
    ]
    assert not wrong
    assert found.to_page(tmp_path / "page.html").stat().st_size < 1e6


def wide(rows: int, columns: int, seed: int = 0) -> dict[str, list]:
    """Columns driven by three hidden factors; at place c the response turns one of them around."""
    rng = np.random.default_rng(seed)
    place = np.array(list("abc"))[np.arange(rows) % 3]
    hidden = rng.standard_normal((rows, 3))
    X = hidden @ rng.standard_normal((3, columns)) + 0.3 * rng.standard_normal((rows, columns))
    y = np.where(place == "c", -1, 1) * hidden[:, 0] + 0.3 * rng.standard_normal(rows)
    table = {f"x{j}": X[:, j].tolist() for j in range(columns)}
    return {"place": place.tolist(), "y": y.tolist(), **table}


def test_many_columns_are_compared_by_their_components(tmp_path: Path) -> None:
    pq, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    options = {"domain": "place", "response": "y", **FAST}
    table = wide(300, 600)
    table["x7"] = [1.0] * 300
    found = relate(table, **options)
    assert sorted(found.different()) == [("a", "c"), ("b", "c")]
    assert found.settings["columns"] == 599  # the encoder drops the constant one
    assert found.settings["components"] <= 50
    assert "% of the variance" in found.notes[0]
    pq.write_table(pa.table(table), tmp_path / "wide.parquet", row_group_size=100)
    read = relate(tmp_path / "wide.parquet", **options)
    np.testing.assert_allclose(read.divergences, found.divergences, rtol=1e-6)
    X = np.array([column for name, column in table.items() if name[0] == "x"]).T
    at = np.array(table["place"])
    arrays = {name: (X[at == name], np.array(table["y"])[at == name]) for name in "abc"}
    given = relate(arrays, **FAST)
    np.testing.assert_allclose(given.divergences, found.divergences, rtol=1e-6)
    assert any("1 constant column ignored" in note for note in given.notes)


def test_columns_that_fit_are_used_as_they_are() -> None:
    found = relate(wide(200, 120), domain="place", response="y", **FAST)
    assert "components" not in found.settings
    with pytest.raises(DataError, match=r"features: at most 5,000 columns .* 6,000 .* GB"):
        relate({name: (np.zeros((3, 6000)), np.arange(3.0)) for name in "ab"}, **FAST)
