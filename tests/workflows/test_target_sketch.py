"""Rows that the page draws: a bounded sample of the right rows, saved with the model."""

from pathlib import Path

import numpy as np
import pytest

from vntransfer import adapt, load
from vntransfer.domains import Groups
from vntransfer.errors import DataError
from vntransfer.workflows.target_sketch import HELD_OUT, PER_SOURCE, TargetSketch


def sketch(shift: float, n: int = 300) -> TargetSketch:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3 * n, 4))
    X[2 * n :] += shift
    rows = np.split(np.arange(3 * n), 3)
    y = np.where(np.arange(3 * n) < 2 * n, X[:, 0], np.nan)
    held_out = np.where(np.isnan(y), np.nan, y + 1)
    return TargetSketch.of(
        X, y, Groups({"a": rows[0], "b": rows[1]}, {"t": rows[2]}), held_out, lambda x: 2 * x[:, 0]
    )


def test_samples_are_bounded_and_of_the_right_rows() -> None:
    found = sketch(0.0)
    assert len(found.held_out) == 2 * PER_SOURCE <= HELD_OUT
    assert found.held_out[:, 2] == pytest.approx(found.held_out[:, 1] + 1)
    assert set(found.inputs[:, 0]) == {-1, 0, 1}
    assert (np.diff(found.distributions, axis=0) >= 0).all()
    assert found.distributions[-1, 1] == pytest.approx(2 * found.distributions[-1, 0], rel=0.5)
    assert 0 < found.shares.sum() <= 1


def test_overlap_is_high_among_the_sources_and_none_far_away() -> None:
    assert sketch(0.0).overlap() > 0.8
    assert sketch(20.0).overlap() == 0


def test_sketches_are_saved_and_checked(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=120)
    town = np.repeat(["A", "B", "C", "new"], 30)
    table = {"town": town, "x": x, "y": np.where(town == "new", np.nan, 2 * x)}
    model = adapt(table, domain="town", response="y", target="new", method="ridge", compare=())
    model.save(tmp_path / "m")
    own, again = model.sketches["new"], load(tmp_path / "m").sketches["new"]
    for name, values in own.arrays("a").items():
        np.testing.assert_array_equal(values, again.arrays("a")[name])
    assert TargetSketch.from_arrays("other", own.arrays("a")) is None
    with pytest.raises(DataError, match="a/inputs"):
        TargetSketch.from_arrays("a", own.arrays("a") | {"a/inputs": np.zeros((3, 1))})
