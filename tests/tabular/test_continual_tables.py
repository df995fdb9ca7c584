"""Tasks of a table: classes or numbers, their order, what is kept, folders."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from towns import write
from vntransfer.cli import app
from vntransfer.errors import ArgumentError, DataError, DomainError
from vntransfer.tabular import learn_tasks, load_continual_model


def table(n: int = 60) -> dict[str, list[Any]]:
    """Weeks 10, 9 and 2 in this order; colour is red where a > b, y = 2a."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3 * n)).round(3)
    return {
        "week": np.repeat([10, 9, 2], n).tolist(),
        "a": a.tolist(),
        "b": b.tolist(),
        "colour": np.where(a > b, "red", "blue").tolist(),
        "y": (2 * a + 50).tolist(),
    }


def test_classes_and_numbers_are_told_apart() -> None:
    options: dict[str, Any] = {"task": "week", "epochs": 8, "lr": 0.05}
    colours = learn_tasks(table(), response="colour", drop=["y"], **options)
    assert colours.names == ("10", "9", "2")
    assert colours.classes == ("blue", "red")
    assert colours.matrix.shape == (3, 3)
    assert colours.summary()["RA"] > 0.85
    assert colours.summary()["RA"] == pytest.approx(colours.matrix[-1].mean())
    assert set(colours.predict(table())) <= {"blue", "red"}
    assert (colours.predict(table()) == np.array(table()["colour"])).mean() > 0.85
    numbers = learn_tasks(table(), response="y", drop=["colour"], **options)
    assert numbers.metric == "root mean squared error"
    assert numbers.summary()["RA"] < 1.0 < numbers.initial.mean()  # y varies by 2
    assert np.abs(numbers.predict(table()) - np.array(table()["y"])).mean() < 0.8
    asked = learn_tasks(
        {**table(), "y": [i % 3 for i in range(180)]},
        response="y",
        kind="classification",
        order="sorted",
        task="week",
    )
    assert asked.names == ("2", "9", "10")
    assert asked.classes == ("0", "1", "2")


def test_same_seed_same_numbers_and_folders(tmp_path: Path) -> None:
    options: dict[str, Any] = {"task": "week", "response": "y", "random_state": 3}
    first, second = (learn_tasks(table(), **options) for _ in range(2))
    np.testing.assert_array_equal(first.matrix, second.matrix)
    first.save(tmp_path / "m")
    again = load_continual_model(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(table()), first.predict(table()))
    np.testing.assert_array_equal(again.matrix, first.matrix)
    assert (again.names, again.method, again.unit) == (first.names, first.method, first.unit)
    numbers = tmp_path / "m" / "model.safetensors"
    numbers.write_bytes(numbers.read_bytes()[:-1])
    with pytest.raises(DataError, match="does not match"):
        load_continual_model(tmp_path / "m")
    with pytest.raises(DataError, match="no continual model"):
        load_continual_model(tmp_path)


def test_command_prints_matrix_and_curves(tmp_path: Path) -> None:
    path, page = write(tmp_path / "a.csv", table()), tmp_path / "p.html"
    roles = ["continual", str(path), "--task", "week", "--response", "colour"]
    done = CliRunner().invoke(app, [*roles, "--out", str(page), "--save", str(tmp_path / "m")])
    assert done.exit_code == 0, done.output
    for part in ("held-out rows of each task", "Forgetting", "BT = RA - LA", "sgd"):
        assert part in done.output
    assert "Forgetting" in page.read_text(encoding="utf-8")
    assert load_continual_model(tmp_path / "m").method == "covp"


@pytest.mark.parametrize(
    ("changes", "options", "error", "message"),
    [
        ({"week": [1] * 180}, {}, DomainError, "has one task, '1'"),
        ({"week": [1] * 175 + [2] * 5}, {}, DataError, "task '2': 5 rows, at least 8"),
        ({"y": [None] + [1.0] * 179}, {}, DataError, "row 2, column 'y': is empty"),
        ({"y": [1.0] * 180}, {}, DataError, "is constant"),
        ({"y": ["a"] * 180}, {}, DataError, "has 1 classes"),
        ({"y": ["a", "b"] * 90}, {"kind": "regression"}, DataError, "'a' is not a number"),
        ({}, {"method": "magic"}, ArgumentError, "method: unknown 'magic'"),
        ({}, {"kind": "both"}, ArgumentError, "kind: expected one of"),
        ({}, {"held_out": 1.0}, ArgumentError, "held_out: expected a share"),
        ({}, {"lr": 1e6}, DataError, "diverged"),
    ],
)
def test_what_cannot_be_learnt_is_said(
    changes: dict[str, Any], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        learn_tasks({**table(), **changes}, task="week", response="y", **options)
