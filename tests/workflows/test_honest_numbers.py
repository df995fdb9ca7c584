"""What adapt says of awkward tables: skewed responses, tiny and wild sources, a far target."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from helpers.saved import edit
from helpers.towns import write
from vntransfer import adapt, load
from vntransfer.cli import app
from vntransfer.errors import ArgumentError, DataError
from vntransfer.workflows.adapt_page import make_page
from vntransfer.workflows.prediction_intervals import Calibration, Disagreement
from vntransfer.workflows.response_transform import ResponseTransform, shape_hint

ROLES: dict[str, Any] = {"domain": "town", "response": "price", "target": "new", "compare": ()}
PLACES = ("north", "south", "east", "west", "new")


def table(
    rows: dict[str, int] | None = None, shift: float = 0.0, *, logs: bool = False, seed: int = 0
) -> tuple[dict[str, Any], np.ndarray]:
    """Give prices of houses, none in "new", whose sizes are shifted; and the prices there."""
    rng = np.random.default_rng(seed)
    rows = {**dict.fromkeys(PLACES, 60), **(rows or {})}
    town = np.repeat(list(rows), list(rows.values()))
    a, b = rng.normal(size=(2, len(town))) + shift * (town == "new")
    price = 100 + 10 * a + 5 * b + rng.normal(0, 2, len(town))
    if logs:
        price = np.exp(1.0 * a + 0.5 * b + rng.normal(0, 0.2, len(town)))
        price[rng.choice(len(town), 4, replace=False)] *= 50  # outliers
    own = town == "new"
    return {"town": town, "a": a, "b": b, "price": np.where(own, np.nan, price)}, price[own]


def test_a_lognormal_response_is_learned_on_a_log_scale() -> None:
    data, truth = table(logs=True)
    found = {how: adapt(data, method="ridge", transform=how, **ROLES) for how in ("auto", "none")}
    model = found["auto"]
    scale = model.outcomes["new"].transform
    assert scale.kind == "log"
    assert "price is skewed" in model.summary()
    assert "log scale" in model.summary()
    rows = {name: data[name][data["town"] == "new"] for name in ("a", "b")}
    errors = {how: np.abs(own.predict(rows).value - truth).mean() for how, own in found.items()}
    assert errors["auto"] < errors["none"]
    assert model.outcomes["new"].expected()[0] < found["none"].outcomes["new"].expected()[0]
    answer = model.predict(rows)
    assert (answer.low > 0).all()
    assert (answer.low < answer.value).all()
    np.testing.assert_allclose(answer.high / answer.value, answer.value / answer.low)
    assert "a factor of" in model.summary()
    assert answer.value.max() <= np.nanmax(data["price"])


def test_the_scale_is_saved_and_checked(tmp_path: Path) -> None:
    data, _ = table(logs=True)
    model = adapt(data, method="ridge", transform="log", **ROLES)
    model.save(tmp_path / "m")
    rows = {"a": [0.0, 9.0], "b": [0.0, 9.0]}
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(rows).high, model.predict(rows).high)
    assert again.summary() == model.summary()
    edit(tmp_path / "m", lambda own: own["record"]["outcomes"][0]["transform"].update(kind="cube"))
    with pytest.raises(DataError, match="transform"):
        load(tmp_path / "m")


def test_scales_that_cannot_be() -> None:
    data, _ = table()
    with pytest.raises(ArgumentError, match="transform: expected one of auto, log, none"):
        adapt(data, transform="cube", **ROLES)  # type: ignore[arg-type]
    data["price"] = data["price"] - 100
    with pytest.raises(ArgumentError, match=r"^transform: .*positive"):
        adapt(data, method="ridge", transform="log", **ROLES)


@given(st.lists(st.floats(1e-3, 1e6), min_size=2, max_size=30), st.floats(0, 5))
def test_the_scale_comes_back_in_the_users_units(values: list[float], half: float) -> None:
    y = np.array(values)
    scale = ResponseTransform.fitted("log", y)
    np.testing.assert_allclose(scale.undo(scale.apply(y)), y, rtol=1e-9)
    low, high = scale.shifted(scale.apply(y), -half), scale.shifted(scale.apply(y), half)
    assert (low <= y * (1 + 1e-9)).all()
    assert (high >= y * (1 - 1e-9)).all()
    assert np.isnan(scale.undo(np.array([np.nan]))).all()


def test_plain_responses_get_no_hint() -> None:
    rng = np.random.default_rng(0)
    for y in (rng.normal(size=500), rng.uniform(size=500), np.repeat([0.0, 1.0], 50)):
        assert shape_hint(y, "y") == ""
    spiked = np.concatenate((rng.normal(size=500), [1e4]))
    assert "heavy-tailed" in shape_hint(spiked, "y")


def test_a_tiny_source_beside_a_large_one() -> None:
    data, _ = table({"north": 3, "south": 5000})
    wild = data["town"] == "north"
    data["price"] = np.where(wild, 5000.0, data["price"])
    outcome = adapt(data, method="ridge", **ROLES).outcomes["new"]
    assert outcome.evidence.counts()["north"] < 0.1
    assert outcome.expected()[0] < 10
    assert outcome.evidence.bounds()[1] > 1000
    assert any("north" in sentence for sentence in outcome.warnings)
    assert not any("constant" in sentence for sentence in outcome.warnings)


def test_one_wild_source_does_not_spoil_the_answer() -> None:
    data, _ = table()
    wild = data["town"] == "west"
    data["a"] = data["a"] + 20 * wild  # so that trees keep it apart
    data["price"] = np.where(wild, 5000.0 * data["b"], data["price"])
    outcome = adapt(data, method="boosting", **ROLES).outcomes["new"]
    errors = sorted(outcome.errors["boosting"].values())
    assert errors[-1] > 10 * errors[-2]
    assert errors[0] <= outcome.expected()[0] <= errors[-2] < np.mean(errors)
    assert "west" in " ".join(outcome.warnings)


def test_a_target_that_resembles_no_source_is_said_first(tmp_path: Path) -> None:
    data, _ = table(shift=12.0)
    model = adapt(data, method="ridge", **ROLES)
    first, second, *more = model.summary().splitlines()
    assert first.startswith("The target resembles no source")
    assert "100 % of its rows" in first
    assert second.startswith("Mean absolute error on held-out sources")
    assert second.endswith("at new it may be much larger.")
    assert more[0].startswith("90 % interval around a prediction: ± ")
    assert any("optimistic" in line for line in more)
    page = make_page(model)
    assert page.lead.startswith("The target resembles no source")
    assert "<dt>error on held-out sources<" in page.html()
    assert "<dt>expected error<" not in page.html()
    path = write(tmp_path / "a.csv", {k: np.asarray(v).tolist() for k, v in data.items()})
    options = ["--domain", "town", "--response", "price", "--target", "new", "--no-compare"]
    done = CliRunner().invoke(app, ["adapt", str(path), *options, "--method", "ridge"])
    said = done.output[done.output.index("Target new") :].splitlines()
    assert said[1].startswith("The target resembles no source")
    assert np.isfinite(model.predict(data, target="new").value).all()
    near, _ = table()
    assert adapt(near, method="ridge", **ROLES).outcomes["new"].warnings == ()


def test_what_does_not_carry_over_is_said_first() -> None:
    rng = np.random.default_rng(1)
    data, _ = table()
    data["price"] = np.where(data["town"] == "new", np.nan, rng.normal(size=len(data["a"])))
    first = adapt(data, method="boosting", **ROLES).summary().splitlines()[0]
    assert first.startswith("A constant predicts held-out sources")


@given(st.integers(0, 2**32 - 1), st.floats(0.5, 0.95), st.floats(0.1, 3))
def test_intervals_cover_a_target_that_is_like_the_sources(
    seed: int, level: float, scale: float
) -> None:
    rng = np.random.default_rng(seed)
    d = {str(i): rng.exponential(size=400) for i in range(4)}
    gaps = {name: own * rng.normal(size=400) for name, own in d.items()}  # errors grow with d
    here = scale * rng.exponential(size=2000)
    truth = np.abs(here * rng.normal(size=2000))
    weights = dict.fromkeys(gaps, 0.25)
    plain = Calibration.from_errors(gaps, weights).half_width(level)
    found = Calibration.from_errors(gaps, weights, factors=Disagreement(d, here).factors())
    covered, before = (np.mean(truth <= half) for half in (found.half_width(level), plain))
    if abs(scale - 1) < 0.2:
        assert abs(covered - level) < 0.08
    assert abs(covered - level) <= abs(before - level) + 0.04  # a shift of d is followed
