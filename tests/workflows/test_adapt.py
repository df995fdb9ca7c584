"""Models of tables: what they learn, what they say to expect, folders, intervals, new tables."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.saved import contents, edit
from helpers.towns import towns, write
from vntransfer import TableModel, adapt, load
from vntransfer.display import plus_minus
from vntransfer.errors import ArgumentError, DataError, DomainError
from vntransfer.workflows import predict
from vntransfer.workflows.adapt_page import make_page
from vntransfer.workflows.load import load_predictor
from vntransfer.workflows.predict import WriteOptions, predict_file
from vntransfer.workflows.prediction_intervals import Calibration

ROLES: dict[str, Any] = {"domain": "town", "response": "price"}
QUICK: dict[str, Any] = {**ROLES, "target": "new", "method": "ridge", "compare": ()}


@pytest.fixture(scope="module")
def model() -> TableModel:
    return adapt(towns(), **QUICK)


def test_columns_and_places_can_be_numbers() -> None:
    rng = np.random.default_rng(0)
    site, x = np.repeat([1, 2, 3, 4], 40), rng.normal(size=160)
    table = {0: site, 1: x, 2: np.where(site == 4, np.nan, 2 * x)}
    model = adapt(table, domain="0", response="2", target=4, method="ridge", compare=())
    assert model.targets == ["4"]
    again = adapt(table, domain="0", response="2", target=np.int64(4), method="ridge", compare=())
    assert again.targets == ["4"]
    np.testing.assert_allclose(model.predict({1: [1.0, 2.0]}).value, [2, 4], atol=0.01)


def test_prediction_and_expectation(model: TableModel) -> None:
    found = model.predict({"size": [50.0, 100.0], "garden": [True, False], "kind": ["flat", ""]})
    np.testing.assert_allclose(found.value, [170, 300], atol=5)
    outcome = model.outcomes["new"]
    assert set(outcome.source_weights) == {"north", "south", "east", "west"}
    mean, spread = outcome.expected()
    assert 1 < mean < 4  # the noise has standard deviation 2
    assert spread < 1
    assert outcome.expected("constant")[0] > 20
    half = model.calibrations["new"].half_width(0.9)
    np.testing.assert_allclose(found.high - found.value, half)
    assert outcome.warnings == ()


def test_responses_of_the_target_are_not_read_unless_asked() -> None:
    table = towns()
    known = [3 * s for s in table["size"]]
    few = {
        **table,
        "price": [
            k if p is None and i % 2 else p
            for i, (p, k) in enumerate(zip(table["price"], known, strict=True))
        ],
    }
    plain, hidden = adapt(table, **QUICK), adapt(few, **QUICK)
    np.testing.assert_array_equal(plain.predict(table).value, hidden.predict(table).value)
    assert "12 rows of targets" in hidden.notes[0]
    used = adapt(few, use_target_labels=True, **QUICK)
    assert "new (labeled)" in used.outcomes["new"].source_weights
    assert used.outcomes["new"].rows == 13
    assert "one more source" in used.outcomes["new"].labels_used()
    assert plain.outcomes["new"].labels_used() == "No labels from the target were used."
    every = {**table, "price": known}
    with pytest.raises(DomainError, match="none are left to predict"):
        adapt(every, use_target_labels=True, **QUICK)


def test_rows_without_response_and_places_without_any_are_told() -> None:
    table = towns()
    price = [
        None if t == "west" or (t == "north" and i == 0) else p
        for i, (t, p) in enumerate(zip(table["town"], table["price"], strict=True))
    ]
    found = adapt({**table, "price": price}, **QUICK)
    assert found.notes == (
        "1 of 25 rows of 'north' have no response: ignored",
        "25 of 25 rows of 'west' have no response (not a target): ignored",
    )
    assert set(found.outcomes["new"].source_weights) == {"north", "south", "east"}


def test_several_targets_have_models_of_their_own(tmp_path: Path) -> None:
    table = towns()
    both = adapt(table, **{**QUICK, "target": ["new", "east"], "method": "weighted"})
    assert both.targets == ["new", "east"]
    assert set(both.outcomes["east"].source_weights) == {"north", "south", "west"}
    with pytest.raises(DataError, match=r"row 2.*'town'.*'north'"):
        both.predict(table)
    without = {name: values for name, values in table.items() if name != "town"}
    with pytest.raises(DataError, match=r"2 targets.*no column 'town'"):
        both.predict(without)
    at_east = both.predict(without, target="east").value
    assert np.isfinite(at_east).all()
    both.save(tmp_path / "m")
    rows = [i for i, t in enumerate(table["town"]) if t in both.targets]
    some = {name: [values[i] for i in rows] for name, values in table.items()}
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(some).value, both.predict(some).value)


def test_warnings_are_plain() -> None:
    rng = np.random.default_rng(0)
    town = np.repeat(["a", "b", "c", "new"], 40)
    x = rng.normal(size=160)
    y = np.where(town == "b", -3 * x, 3 * x)  # what holds at a and c is wrong at b
    noise = {"town": town, "x": x, "y": np.where(town == "new", np.nan, y)}
    roles: dict[str, Any] = {"domain": "town", "response": "y", "target": "new", "compare": ()}
    told = adapt(noise, method="ridge", **roles).outcomes["new"].warnings
    assert any("constant" in sentence for sentence in told)
    one = {k: np.asarray(v)[np.isin(town, ["a", "new"])] for k, v in noise.items()}
    alone = adapt(one, method="ridge", **roles)
    assert "needs at least two sources" in alone.outcomes["new"].warnings[0]
    assert np.isnan(alone.predict(one).low).all()


def test_auto_compares_what_it_chose_from() -> None:
    chosen = adapt(towns(), **{**QUICK, "method": "auto", "candidates": ["boosting", "ridge"]})
    outcome = chosen.outcomes["new"]
    assert outcome.shares["ridge"] > 0.5
    assert set(outcome.errors) == {"auto", "boosting", "ridge", "constant"}


def test_saved_models_come_back_whole(model: TableModel, tmp_path: Path) -> None:
    place = tmp_path / "m"
    model.save(place)
    files = contents(place)
    model.save(place)  # an older model is replaced
    assert contents(place) == files
    again = load(place)
    np.testing.assert_array_equal(again.predict(towns()).high, model.predict(towns()).high)
    assert again.outcomes == model.outcomes
    assert again.encoder == model.encoder
    assert again.provenance == model.provenance
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


@pytest.mark.parametrize(
    "change",
    [
        {"schema": []},
        {"schema": [{"kind": "os.system"}]},
        {"provenance": None},
        {"outcomes": []},
        {"outcomes": [{"target": "new"}]},
        {"names": ["town"]},
    ],
)
def test_values_that_do_not_fit_are_refused(
    change: dict[str, Any], model: TableModel, tmp_path: Path
) -> None:
    model.save(tmp_path / "m")
    edit(tmp_path / "m", lambda content: content["record"].update(change))
    with pytest.raises(DataError, match=rf"model\.json: .*{next(iter(change))}"):
        load(tmp_path / "m")


def test_only_models_of_tables_predict_tables(model: TableModel, tmp_path: Path) -> None:
    model.estimators["new"].save(tmp_path / "m")
    with pytest.raises(DataError, match=r"holds a PooledRegressor.*`vnt adapt --save`"):
        load_predictor(tmp_path / "m")
    model.save(tmp_path / "m")
    with pytest.raises(ArgumentError, match="device: only for estimators"):
        load(tmp_path / "m", device="cpu")


def test_new_tables_are_compared_with_the_old_one(model: TableModel) -> None:
    table = {"kind": ["barn", ""], "size": ["50", ""], "garden": ["no", "yes"], "extra": ["1", "2"]}
    assert model.check(list(table), None) == [
        "columns not used: 'extra'",
        "columns are in another order; they are matched by name",
    ]
    found = model.predict(table).findings
    assert "never seen in training ('barn')" in found.lines()[0]
    with pytest.raises(DataError, match=r"missing columns.*: 'garden', 'kind'"):
        model.predict({"size": [1.0]})
    with pytest.raises(DataError, match=r"row 2.*'size'.*'big'"):
        model.predict({**table, "size": ["big", "1"]})
    with pytest.raises(ArgumentError, match="target: expected one of"):
        model.predict(table, target="north")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_pieces_of_a_file_are_predicted_as_the_whole(
    model: TableModel, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predict, "CHUNK", 7)
    pandas = pytest.importorskip("pandas")
    table = {**towns(), "note": ["=HYPERLINK(1)", "-3", "+x", "@y", "plain"] * 25}
    table["town"] = ["new"] * 125  # nothing is compared with what was learned
    path, out = write(tmp_path / "a.csv", table), tmp_path / f"out.{kind}"
    done = predict_file(model, path, out, write_options=WriteOptions(escape_formulas=True))
    assert (done.rows, done.labeled, done.learned) == (125, 100, 0)
    read = pandas.read_csv(out) if kind == "csv" else pandas.read_parquet(out)
    assert read.columns[-3:].tolist() == ["price predicted", "price low", "price high"]
    whole = model.predict(path)
    np.testing.assert_allclose(read["price predicted"], whole.value, rtol=1e-9)
    truth = np.array(table["price"][:100])
    assert done.error == pytest.approx(np.abs(truth - whole.value[:100]).mean())
    inside = (whole.low <= np.nan_to_num(np.array(table["price"], float), nan=1e9)) & (
        np.nan_to_num(np.array(table["price"], float), nan=1e9) <= whole.high
    )
    assert done.covered == pytest.approx(inside[:100].mean())
    if kind == "csv":
        assert read["note"].tolist()[:5] == ["'=HYPERLINK(1)", "-3", "'+x", "'@y", "plain"]
        plain = tmp_path / "plain.csv"
        predict_file(model, path, plain)
        assert "\n2,new" in plain.read_text()
        assert ",=HYPERLINK(1)," in plain.read_text()


def test_nothing_is_left_of_a_file_that_fails_half_way(
    model: TableModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predict, "CHUNK", 10)
    table = towns()
    table["size"][-1] = "big"
    path = write(tmp_path / "a.csv", table)
    for out in (tmp_path / "out.csv", tmp_path / "out.parquet"):
        with pytest.raises(DataError, match="row 126, column 'size'"):
            predict_file(model, path, out)
    assert [file.name for file in tmp_path.iterdir()] == ["a.csv"]
    with pytest.raises(ArgumentError, match=r"ends in \.csv or \.parquet, got .*out\.xlsx"):
        predict_file(model, path, tmp_path / "out.xlsx")


def test_half_width_is_the_weighted_quantile() -> None:
    rng = np.random.default_rng(0)
    errors = {"a": rng.exponential(size=5000), "b": 5 + rng.exponential(size=100)}
    found = Calibration.from_errors(errors, {"a": 0.75, "b": 0.25})
    size, w = found.errors, found.weights
    assert w.sum() == pytest.approx(1)
    for level in (0.5, 0.75, 0.9):
        half = found.half_width(level)
        assert w[size <= half].sum() >= level - 1e-9
        assert w[size < half].sum() < level
    assert found.half_width(0.9) > 5
    assert Calibration.from_errors(errors, {"a": 1.0, "b": 0.0}).half_width(0.9) < 3
    for level in (0.0, 1.0, 1.5):
        with pytest.raises(ArgumentError, match="level"):
            found.half_width(level)


def test_page_shows_and_escapes(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    table = towns()
    table["town"] = [evil if t == "north" else t for t in table["town"]]
    found = adapt({**table, evil: ["a", "b", "c", "d", "e"] * 25}, **QUICK)
    text = make_page(found).html()
    assert evil not in text
    assert "&lt;script&gt;alert(1)" in text
    for part in ("no source is preferred", "Error on each held-out source", "Column handling"):
        assert part in text


@pytest.fixture(scope="module")
def both() -> TableModel:
    return adapt(towns(), **{**QUICK, "target": ("new", "east"), "method": "ridge"})


def rows_of(*names: str) -> dict[str, list[Any]]:
    table = towns()
    rows = [i for i, town in enumerate(table["town"]) if town in names]
    return {name: [values[i] for i in rows] for name, values in table.items()}


def test_several_targets_split_the_rows(both: TableModel) -> None:
    some = rows_of("new", "east")
    asked = both.predict(some, target=["east", "new"])
    np.testing.assert_array_equal(asked.value, both.predict(some).value)
    np.testing.assert_array_equal(asked.low, both.predict(some, target=np.array(both.targets)).low)
    one = both.predict(some, target=["east"])  # all rows are of it
    np.testing.assert_array_equal(one.value, both.predict(some, target="east").value)
    assert both.made_for(["east"]) == "east"
    assert both.made_for(["east", "new"]) is None


def test_targets_that_cannot_be_are_named(both: TableModel, model: TableModel) -> None:
    three = adapt(towns(), **{**QUICK, "target": ["new", "east", "west"]})
    with pytest.raises(DataError, match=r"'west' is none of the given targets \['new', 'east'\]"):
        three.predict(rows_of("new", "east", "west"), target=["new", "east"])
    known = "target: expected one of new, east, got 'old'"
    for bad in ("old", ["old"], ["new", "old"]):
        with pytest.raises(ArgumentError, match=known):
            both.predict(rows_of("new"), target=bad)
    without = {name: values for name, values in rows_of("new").items() if name != "town"}
    with pytest.raises(DataError, match=r"target: names 2 targets.*no column 'town'"):
        both.predict(without, target=["new", "east"])
    with pytest.raises(ArgumentError, match="target: empty"):
        both.predict(rows_of("new"), target=[])
    np.testing.assert_array_equal(
        model.predict(without, target=["new"]).value, model.predict(without).value
    )


def test_targets_of_adapt(both: TableModel) -> None:
    for targets in (["new", "east"], np.array(["new", "east"]), ["new", "east", "new"]):
        assert adapt(towns(), **{**QUICK, "target": targets}).targets == both.targets
    with pytest.raises(ArgumentError, match="target: empty"):
        adapt(towns(), **{**QUICK, "target": []})
    with pytest.raises(ArgumentError, match=r"^target: .*None"):
        adapt(towns(), **{**QUICK, "target": None})
    with pytest.raises(DomainError, match=r"'xyz'.*north, south, east"):
        adapt(towns(), **{**QUICK, "target": ["new", "xyz"]})


def test_a_model_says_what_to_expect(model: TableModel) -> None:
    mean, spread = model.outcomes["new"].expected()
    said = f"<TableModel for new: expected error {plus_minus(mean, spread)} price>"
    assert repr(model) == said
    first, second, *more = model.summary().splitlines()
    assert first.startswith("Expected error at new: ")
    assert second.startswith("90 % interval around a prediction: ± ")
    assert "No labels from the target were used." in more


def test_large_sources_are_sampled_and_a_note_says_so() -> None:
    rng = np.random.default_rng(0)
    n = {"A": 300, "B": 40, "C": 200, "new": 250}
    town, size = np.repeat(list(n), list(n.values())), rng.normal(size=790)
    price = np.where(town == "new", np.nan, 3 * size + rng.normal(size=790))
    roles: dict[str, Any] = {"domain": "town", "response": "price", "target": "new"}
    options: dict[str, Any] = {**roles, "method": "ridge", "compare": ()}
    table = {"town": town, "size": size, "price": price}
    model = adapt(table, **options, max_rows=100)
    outcome = model.outcomes["new"]
    assert outcome.evidence.source_rows == {"A": 100, "B": 40, "C": 100}
    assert outcome.rows == 250
    (said,) = [note for note in model.notes if "--max-rows" in note]
    assert {"100", "300"} <= {word.strip(";") for word in said.split()}
    again, other = adapt(table, **options, max_rows=100), adapt(table, **options, max_rows=99)
    assert again.outcomes["new"].errors == outcome.errors != other.outcomes["new"].errors
    assert not any("--max-rows" in note for note in adapt(table, **options).notes)
    with pytest.raises(ArgumentError, match="max_rows"):
        adapt(table, **options, max_rows=3)


@pytest.mark.parametrize("targets", [["new"], ["new", "east"]])
def test_the_number_of_processes_changes_nothing(targets: list[str]) -> None:
    options = {**QUICK, "target": targets, "compare": ("boosting",)}
    seen: list[tuple[str, int, int | None]] = []
    one = adapt(towns(), **options)
    two = adapt(towns(), **options, n_jobs=2, progress=lambda *step: seen.append(step))
    for name in targets:
        assert one.outcomes[name] == two.outcomes[name]
        rows = {"size": [50.0, 100.0], "garden": [True, False], "kind": ["flat", ""]}
        found = [model.predict(rows, target=name) for model in (one, two)]
        np.testing.assert_array_equal(found[0].value, found[1].value)
        np.testing.assert_array_equal(found[0].high, found[1].high)
    if len(targets) > 1:
        assert seen == [("targets", 1, 2), ("targets", 2, 2)]
    with pytest.raises(ArgumentError, match="n_jobs"):
        adapt(towns(), **QUICK, n_jobs=0)
