"""Tasks of a table: classes or numbers, their order, what is kept, folders."""

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from helpers.saved import data_file
from helpers.towns import write
from vntransfer import learn_tasks, load
from vntransfer.cli import app
from vntransfer.continual import METHODS
from vntransfer.display import percent, rounded
from vntransfer.errors import ArgumentError, DataError, DomainError
from vntransfer.workflows.learn import CANDIDATES


def table(n: int = 60) -> dict[str, list[Any]]:
    """Weeks 10, 9 and 2 in this order; color is red where a > b, y = 2a."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3 * n)).round(3)
    return {
        "week": np.repeat([10, 9, 2], n).tolist(),
        "a": a.tolist(),
        "b": b.tolist(),
        "color": np.where(a > b, "red", "blue").tolist(),
        "y": (2 * a + 50).tolist(),
    }


def test_classes_and_numbers_are_told_apart() -> None:
    options: dict[str, Any] = {"task": "week", "epochs": 8, "lr": 0.05, "method": "covp"}
    colors = learn_tasks(table(), response="color", drop=["y"], **options)
    assert colors.names == ("10", "9", "2")
    assert colors.classes == ("blue", "red")
    assert colors.matrix.shape == (3, 3)
    assert colors.scores()["RA"] > 0.85
    assert colors.scores()["RA"] == pytest.approx(colors.matrix[-1].mean())
    assert set(colors.predict(table())) <= {"blue", "red"}
    assert (colors.predict(table()) == np.array(table()["color"])).mean() > 0.85
    numbers = learn_tasks(table(), response="y", drop=["color"], **options)
    assert numbers.metric == "root mean squared error"
    assert numbers.scores()["RA"] < 1.0 < numbers.initial.mean()  # y varies by 2
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
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(table()), first.predict(table()))
    np.testing.assert_array_equal(again.matrix, first.matrix)
    assert (again.names, again.method, again.unit) == (first.names, first.method, first.unit)
    numbers = data_file(tmp_path / "m")
    numbers.write_bytes(numbers.read_bytes()[:-1])
    with pytest.raises(DataError, match="does not match"):
        load(tmp_path / "m")
    with pytest.raises(DataError, match=r"model\.json is missing"):
        load(tmp_path)


@pytest.mark.parametrize("method", ["rewc", "rsp", "gpm", "closed_form", "closed_form_covp"])
def test_saved_networks_predict_as_they_did(method: str, tmp_path: Path) -> None:
    model = learn_tasks(table(), task="week", response="y", drop=["color"], method=method, epochs=3)
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_allclose(again.predict(table()), model.predict(table()))
    errors = np.abs(again.predict(table()) - np.array(table()["y"]))
    assert np.sqrt(np.square(errors).mean()) < 1.5 * model.scores()["RA"]


def test_auto_takes_the_method_that_is_better_on_held_out_training_rows() -> None:
    options: dict[str, Any] = {"task": "week", "response": "y", "drop": ["color"]}
    linear = learn_tasks(table(), **options)
    assert linear.method == "closed_form"  # covp has one pass
    note = next(note for note in linear.notes if note.startswith("method 'closed_form'"))
    assert "covp" in note
    asked = learn_tasks(table(), method="closed_form", **options)
    np.testing.assert_array_equal(linear.matrix, asked.matrix)  # the choice changes nothing else
    poisoned = {**table(), "y": list(table()["y"])}
    rng = np.random.default_rng(0)  # rows that are scored, by the split of learn_tasks
    scored = np.concatenate([rng.permutation(60 * k + np.arange(60))[:15] for k in range(3)])
    for row in scored:
        poisoned["y"][row] = 1e6
    assert learn_tasks(poisoned, **options).notes == linear.notes


def test_command_prints_matrix_and_curves(tmp_path: Path) -> None:
    path, page = write(tmp_path / "a.csv", table()), tmp_path / "p.html"
    roles = ["learn", str(path), "--task", "week", "--response", "color"]
    done = CliRunner().invoke(app, [*roles, "--out", str(page), "--save", str(tmp_path / "m")])
    assert done.exit_code == 0, done.output
    for part in ("held-out rows of each task", "Forgetting", "BT = RA - LA", "sgd"):
        assert part in done.output
    assert "Forgetting" in page.read_text(encoding="utf-8")
    assert load(tmp_path / "m").method in CANDIDATES


def test_rows_without_response_are_ignored_with_a_note(tmp_path: Path) -> None:
    y = [None if i == 0 or i >= 120 else v for i, v in enumerate(table()["y"])]
    model = learn_tasks({**table(), "y": y}, task="week", response="y", method="covp")
    assert model.names == ("10", "9")
    assert model.notes == (
        "1 of 60 rows of task '10' have no response: ignored",
        "60 of 60 rows of task '2' have no response: ignored",
    )
    model.save(tmp_path / "m")
    assert load(tmp_path / "m").notes == model.notes


def test_far_rows_are_those_of_the_border() -> None:
    model = learn_tasks(table(), task="week", response="y", drop=["color"])
    at = model.encoder.names.index("a")
    border = model.center[at] + 6 * model.scale[at]
    far, near = (model.predict({"a": [a], "b": [0.0]}) for a in (1e9, border))
    np.testing.assert_allclose(far, near, rtol=1e-5)


def vnt(*arguments: Any) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.parametrize("response", ["color", "y"])
def test_files_are_predicted_by_the_network_of_all_tasks(response: str, tmp_path: Path) -> None:
    path, folder, out = write(tmp_path / "a.csv", table()), tmp_path / "m", tmp_path / "out.csv"
    other = "y" if response == "color" else "color"
    roles = ("--task", "week", "--response", response, "--drop", other, "--compare", "")
    done = vnt("learn", path, *roles, "--epochs", 5, "--save", folder)
    assert done.exit_code == 0, done.output
    assert "predict with: vnt predict" in done.output
    done = vnt("predict", folder, path, "--out", out)
    assert done.exit_code == 0, done.output
    assert "predictions have no intervals" in done.output
    with out.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["row", *table(), f"{response} predicted"]
    model = load(folder)
    found, truth = model.predict(path), np.array(table()[response])
    if response == "color":
        assert [row["color predicted"] for row in rows] == found.tolist()
        score = f"accuracy {percent((found == truth).mean())}"
    else:
        written = [float(row["y predicted"]) for row in rows]
        np.testing.assert_allclose(written, found, rtol=1e-9)
        score = f"root mean squared error {rounded(np.sqrt(((found - truth) ** 2).mean()))}"
    assert f"180 rows have a response: {score}" in re.sub(
        r"mean absolute\D+[\d.]+, ", "", done.output
    )


def test_a_class_may_be_named_none(tmp_path: Path) -> None:
    own = table()
    pain = ["None" if y < 49 else "Mild" if y < 51 else "NA" for y in own.pop("y")]
    pain[3] = ""
    path, folder = write(tmp_path / "a.csv", {**own, "pain": pain}), tmp_path / "m"
    roles = ("--task", "week", "--response", "pain", "--drop", "color", "--compare", "")
    done = vnt("learn", path, *roles, "--epochs", 5, "--save", folder)
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "1 of 60 rows of task '10'" in said
    assert "'None' is treated as a class" in said
    assert load(folder).classes == ("Mild", "NA", "None")
    done = vnt("predict", folder, path)
    assert "179 rows have a response: accuracy" in done.output


@pytest.mark.parametrize(
    ("learned", "later"),
    [
        (("True", "False"), ("true", "false")),
        (("0.0", "1.0"), ("0", "1")),
        (("true", "false"), ("TRUE", "FALSE")),
    ],
)
def test_classes_may_be_written_otherwise_later(
    learned: tuple[str, str], later: tuple[str, str], tmp_path: Path
) -> None:
    own = table()
    del own["y"]
    red = [color == "red" for color in own.pop("color")]

    def written(names: tuple[str, str]) -> dict[str, list[Any]]:
        return {**own, "red": [names[0] if value else names[1] for value in red]}

    path, folder = write(tmp_path / "a.csv", written(learned)), tmp_path / "m"
    roles = ("--task", "week", "--response", "red", "--kind", "classification", "--compare", "")
    assert vnt("learn", path, *roles, "--epochs", 5, "--save", folder).exit_code == 0
    accuracies = {
        re.findall(r"accuracy [\d.]+ %", vnt("predict", folder, path).output)[0]
        for path in (path, write(tmp_path / "b.csv", written(later)))
    }
    assert len(accuracies) == 1
    assert accuracies != {"accuracy 0 %"}


def test_columns_are_compared_and_targets_refused(tmp_path: Path) -> None:
    model = learn_tasks(table(), task="week", response="y", drop=["color"])
    model.save(tmp_path / "m")
    model.save(tmp_path / "m")  # an older network is replaced
    some = write(tmp_path / "b.csv", {"b": [1, 2], "a": ["3", "x"]})
    done = vnt("predict", tmp_path / "m", some, "--out", tmp_path / "out.csv")
    assert done.exit_code == 2
    assert "row 3, column 'a': 'x' is not a number" in done.stderr
    done = vnt("predict", tmp_path / "m", write(tmp_path / "c.csv", {"a": [1]}))
    assert "missing columns that the model was trained on: 'b'" in done.stderr
    done = vnt("predict", tmp_path / "m", some, "--target", "9")
    assert done.exit_code == 2
    assert "this network serves all tasks" in done.stderr
    assert not list(tmp_path.glob("out*")) + list(tmp_path.glob("*predicted*"))
    numbers = data_file(tmp_path / "m")
    numbers.write_bytes(numbers.read_bytes()[:-1])
    done = vnt("predict", tmp_path / "m", some)
    assert done.exit_code == 2
    assert "does not match model.json" in done.stderr
    with pytest.raises(ArgumentError, match="not part of a vntransfer model"):
        model.save(tmp_path)


@pytest.mark.parametrize(
    ("changes", "options", "error", "message"),
    [
        ({"week": [1] * 180}, {}, DomainError, "has one task, '1'"),
        ({"week": [1] * 175 + [2] * 5}, {}, DataError, "task '2': 5 rows, at least 8"),
        ({"y": [None] * 180}, {}, DataError, "'y' is empty in all rows; fill it"),
        ({"y": [None] * 120 + [1.0, 2.0] * 30}, {}, DomainError, "has one task, '2'"),
        ({"y": [1.0] * 180}, {}, DataError, "is constant"),
        ({"y": ["a"] * 180}, {}, DataError, r" 1 different .*2 to 1000"),
        ({"y": ["a", "b"] * 90}, {"kind": "regression"}, DataError, "'a' is not a finite number"),
        ({}, {"method": "magic"}, ArgumentError, "method: .*got 'magic'"),
        ({}, {"kind": "both"}, ArgumentError, "kind: expected one of"),
        ({}, {"held_out": 1.0}, ArgumentError, "held_out: expected a share"),
        ({}, {"held_out": "a"}, ArgumentError, "held_out: expected a number"),
        ({}, {"hidden": 64}, ArgumentError, "hidden: expected sizes of layers"),
        ({}, {"hidden": [0]}, ArgumentError, "^hidden: "),
        ({}, {"random_state": -1}, ArgumentError, "random_state: expected a whole number"),
        ({}, {"lr": "a"}, ArgumentError, "lr: expected a number"),
        ({}, {"lr": 1e6, "method": "covp"}, DataError, "diverged"),
        *(
            ({"y": ["a", "b"] * 90}, {"lr": 1e6, "method": name}, DataError, "lr: .* diverged")
            for name, own in METHODS.items()
            if own.by_gradients
        ),
    ],
)
def test_what_cannot_be_learned_is_said(
    changes: dict[str, Any], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        learn_tasks({**table(), **changes}, task="week", response="y", **options)
