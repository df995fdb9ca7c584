"""Rows and tasks that are learned later: as if all at once, checked, saved whole."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from helpers.towns import write
from vntransfer import learn_tasks, load, update_tasks
from vntransfer.cli import app
from vntransfer.continual import METHODS
from vntransfer.display import rounded
from vntransfer.errors import ArgumentError, DataError
from vntransfer.workflows.continual_model import ContinualModel

Table = dict[str, list[Any]]


def table(weeks: list[int], seed: int = 0, n: int = 40) -> Table:
    """Color is red where a > b, otherwise blue; y = 2a + b² + 50."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, len(weeks) * n)).round(3)
    return {
        "week": np.repeat(weeks, n).tolist(),
        "a": a.tolist(),
        "b": b.tolist(),
        "color": np.where(a > b, "red", "blue").tolist(),
        "y": (2 * a + b**2 + 50).tolist(),
    }


def learned(response: str, method: str = "closed_form", **options: Any) -> ContinualModel:
    other = "y" if response == "color" else "color"
    given = {"task": "week", "response": response, "drop": [other], "method": method, **options}
    return learn_tasks(table([1, 2, 3]), **given)


def joined(*tables: Table) -> Table:
    return {name: [cell for own in tables for cell in own[name]] for name in tables[0]}


def moments(model: ContinualModel) -> list[np.ndarray]:
    assert model.method_state is not None
    return [value.astype(np.float64) for value in model.method_state.arrays.values()]


@pytest.mark.parametrize("response", ["y", "color"])
def test_rows_added_later_are_as_if_all_at_once(response: str) -> None:
    model = learned(response)
    one, two = table([3], seed=1), table([4, 5], seed=2)
    steps = update_tasks(update_tasks(model, two), one)
    at_once = update_tasks(model, joined(one, two))
    assert steps.added == at_once.added == ("4", "5")
    for own, other in zip(moments(steps), moments(at_once), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-8, atol=1e-8 * np.abs(other).max())
    new = table([9], seed=3)
    if response == "y":
        np.testing.assert_allclose(steps.predict(new), at_once.predict(new), rtol=1e-8)
        assert not np.allclose(model.predict(new), steps.predict(new))
    else:
        np.testing.assert_array_equal(steps.predict(new), at_once.predict(new))


def test_it_is_ridge_regression_on_the_rows_of_both() -> None:
    model, later = learned("y"), table([4], seed=1)
    both = update_tasks(model, later)
    assert both.method_state is not None
    count = both.method_state.arrays["/solver/count"]
    assert float(count) == 3 * 30 + 40  # a quarter of the first rows is held out
    before, after = (
        np.sqrt(np.square(own.predict(later) - np.array(later["y"])).mean())
        for own in (model, both)
    )
    assert after < before
    assert f"before learning them: {rounded(float(before))}" in " ".join(both.notes)


def test_classes_that_arrive_later() -> None:
    later = table([4], seed=1)
    colors = zip(later["a"], later["color"], strict=True)
    later["color"] = ["green" if a > 1 else own for a, own in colors]
    model = update_tasks(learned("color"), later)
    assert model.classes == ("blue", "red", "green")
    assert "update: new classes 'green'" in model.notes
    again = update_tasks(model, {**later, "week": [5] * 40})
    found, truth = again.predict(later), np.array(later["color"])
    assert (found == truth).mean() > 0.8
    assert "green" in found
    with pytest.raises(DataError, match=r"never seen: 'green'; .*closed_form"):
        update_tasks(learned("color", "covp"), later)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "rewc"])
def test_saved_models_go_on_as_they_would(method: str, tmp_path: Path) -> None:
    model, later = learned("y", method, epochs=2), table([4], seed=1)
    model.save(tmp_path / "m")
    straight, again = update_tasks(model, later), update_tasks(load(tmp_path / "m"), later)
    np.testing.assert_array_equal(straight.predict(later), again.predict(later))
    assert not np.array_equal(model.predict(later), again.predict(later))
    again.save(tmp_path / "m")
    last = load(tmp_path / "m")
    assert (last.added, last.notes, last.names) == (("4",), again.notes, model.names)
    np.testing.assert_array_equal(last.predict(later), again.predict(later))


def test_the_given_model_stays_as_it_is() -> None:
    model, later = learned("y"), table([4], seed=1)
    before, kept = model.predict(later), moments(model)
    update_tasks(model, later)
    np.testing.assert_array_equal(model.predict(later), before)
    for own, other in zip(moments(model), kept, strict=True):
        np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"a": None}, "missing columns that the model was trained on: 'a'"),
        ({"week": None}, "week"),
        ({"y": None}, "'?y'?"),
        ({"y": [""] * 40}, "'y' is empty in all rows"),
        ({"y": ["x"] * 40}, "'x' is not a finite number"),
        ({"a": ["x"] * 40}, "'x' is not a number"),
    ],
)
def test_other_columns_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    learned("y").save(tmp_path / "m")
    before = {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()}
    later = {k: v for k, v in {**table([4]), **changes}.items() if v is not None}
    done = vnt("learn", write(tmp_path / "b.csv", later), "--update", tmp_path / "m")
    assert done.exit_code == 2
    assert "Traceback" not in done.output
    with pytest.raises((DataError, ArgumentError), match=message):
        update_tasks(load(tmp_path / "m"), tmp_path / "b.csv")
    assert {p.name: p.read_bytes() for p in (tmp_path / "m").iterdir()} == before


def test_models_without_a_state_are_refused() -> None:
    with pytest.raises(ArgumentError, match="no saved state of its method 'rewc'"):
        update_tasks(learned("y", "rewc"), table([4]))
    with pytest.raises(ArgumentError, match="model: "):
        update_tasks("folder", table([4]))  # type: ignore[arg-type]


def vnt(*arguments: Any) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_command_replaces_the_model_or_saves_elsewhere(tmp_path: Path) -> None:
    folder, other = tmp_path / "m", tmp_path / "other"
    learned("y").save(folder)
    first = load(folder).predict(table([9]))
    later = write(tmp_path / "b.csv", table([4], seed=1))
    done = vnt("learn", later, "--update", folder, "--save", other)
    assert done.exit_code == 0, done.output
    assert "40 rows of task '4'" in " ".join(done.output.split())
    assert f"vnt predict {other}" in " ".join(done.output.split())
    np.testing.assert_array_equal(load(folder).predict(table([9])), first)
    assert vnt("learn", later, "--update", folder).exit_code == 0
    np.testing.assert_array_equal(load(folder).predict(table([9])), load(other).predict(table([9])))
    done = vnt("learn", later, "--update", folder, "--response", "y")
    assert done.exit_code == 2
    assert "omit --response" in " ".join(done.stderr.split())
    assert vnt("learn", later, "--update", tmp_path / "none").exit_code == 2
    done = vnt("learn", later, "--response", "y")
    assert done.exit_code == 2
    assert "add --task COLUMN" in " ".join(done.stderr.split())
