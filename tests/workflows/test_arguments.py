"""Wrong types for any argument of the functions that people call end in an error that names it."""

import inspect
from typing import Any

import numpy as np
import pytest

from helpers.towns import towns, write
from vntransfer import adapt, learn_tasks, load, relate
from vntransfer.errors import ArgumentError, VnError
from vntransfer.tables import ReadOptions
from vntransfer.workflows.predict import predict_file
from vntransfer.workflows.table_model import TableModel

TABLE = towns()
ROLES: dict[str, Any] = {"domain": "town", "response": "price"}
ADAPT: dict[str, Any] = {"data": TABLE, **ROLES, "target": "new", "method": "ridge", "compare": ()}
LEARN: dict[str, Any] = {
    "data": {**TABLE, "price": list(range(len(TABLE["price"])))},
    "task": "town",
    "response": "price",
    "method": "sgd",
}

TEXT = (None, 3, True, [], ["a"], b"a", object())
CHOICE = (*TEXT, "nonsense", {})
LIST = (3, True, 1.5, "town", b"town", object(), [3], [None], [["size"]])
NUMBER = (None, "1", [], [1], True, object(), float("nan"), float("inf"), 1j)
FLAG = (None, 3, "no", [], object())
DATA = (None, 3, True, 1.5, [], object(), [3], [None], b"a.csv", np.zeros(3))
OPTIONS = (3, True, "latin-1", [], {"delimiter": ";"}, object())
PROGRESS = (3, True, "bar", [], object())
PATH = (None, 3, True, [], object(), {}, b"a")

WRONG: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("domain", "task", "response"), TEXT),
    **dict.fromkeys(("features", "drop", "category"), LIST),
    **dict.fromkeys(
        ("method", "kind", "order", "divergence", "null", "engine", "transform"), CHOICE
    ),
    **dict.fromkeys(("candidates", "compare"), (*LIST, ["nonsense"], ["ridge", 3])),
    **dict.fromkeys(("n_bootstrap", "level", "ridge", "random_state", "lr"), (*NUMBER, -1)),
    **dict.fromkeys(("epochs", "batch_size", "held_out"), (*NUMBER, -1)),
    "n_resamples": (*NUMBER[1:], -1),
    "max_rows": (*NUMBER, -1, 0),
    "n_jobs": (*NUMBER[1:], -1, 0),
    "hidden": (None, 3, "64", [None], ["64"], [0], [1.5], {64: 64}, object()),
    "target": (None, [], [[]], object(), [None], {}, "nowhere"),
    "use_target_labels": FLAG,
    "data": DATA,
    "path": DATA,
    "read_options": OPTIONS,
    "write_options": OPTIONS,
    "progress": PROGRESS,
    "workers": (*NUMBER[1:], 0),
    "scheduler": (3, True, [], object()),
    "folder": PATH,
    "out": (3, True, [], object(), {}, b"a"),
    "model": (None, 3, "model", [], object()),
}


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Give functions with arguments that they take."""
    table = write(tmp_path_factory.mktemp("table") / "h.csv", towns())
    model, network = adapt(**ADAPT), learn_tasks(**LEARN)
    return {
        "relate": (relate, {"data": TABLE, **ROLES}),
        "relate domains": (relate, {}),
        "adapt": (adapt, ADAPT),
        "learn_tasks": (learn_tasks, LEARN),
        "load": (load, {}),
        "predict": (model.predict, {"data": TABLE}),
        "predict classes": (network.predict, {"data": TABLE}),
        "predict_file": (predict_file, {"model": model, "path": table}),
    }


def arguments() -> list[tuple[str, str]]:
    functions = {
        "relate": relate,
        "adapt": adapt,
        "learn_tasks": learn_tasks,
        "load": load,
        "predict": TableModel.predict,
        "predict_file": predict_file,
    }
    every = [
        (name, own)
        for name, function in functions.items()
        for own in inspect.signature(function).parameters
        if own not in ("self", "given")
    ]
    return [*every, ("relate domains", "data"), ("predict classes", "data")]


@pytest.mark.parametrize(("function", "argument"), arguments())
def test_wrong_values_are_refused_by_name(
    function: str, argument: str, calls: dict[str, Any]
) -> None:
    call, given = calls[function]
    for value in WRONG[argument]:
        if value is None and argument == "target" and function != "adapt":
            continue  # the model has one
        if value is None and (function, argument) == ("adapt", "engine"):
            continue  # chosen by the size of the files
        with pytest.raises(VnError) as caught:
            call(**{**given, argument: value})
        said = str(caught.value)
        assert argument in said.split(":")[0], f"{argument}={value!r:.60}: {said}"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        *(({"delimiter": value}, "delimiter") for value in (3, True, [], b";")),
        *(({"encoding": value}, "encoding") for value in (3, [], b"latin-1")),
        *(({"units": value}, "units") for value in (3, None, [3], b"%")),
    ],
)
def test_reading_options_of_a_wrong_type(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{named}: "):
        ReadOptions(**options)


def test_columns_may_come_in_any_sequence() -> None:
    plain = adapt(**{**ADAPT, "features": ["size", "garden"]})
    for features in (("size", "garden"), np.array(["size", "garden"]), iter(["size", "garden"])):
        other = adapt(**{**ADAPT, "features": features, "drop": None, "category": None})
        assert (other.predict(TABLE).value == plain.predict(TABLE).value).all()
    learned = learn_tasks(**LEARN, features=np.array(["size", "garden"]))  # type: ignore[arg-type]
    assert learned.encoder.needed == ["size", "garden"]
