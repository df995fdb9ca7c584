"""Records changed by hand, digest and all: they predict, or an error names the key."""

import copy
import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.saved import KINDS, edit, fitted, predictions
from vntransfer import DataError, load
from vntransfer.storage.folder import load_folder, restore
from vntransfer.workflows.load import light_kind


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("saved")
    for kind in KINDS:
        fitted(kind).save(place / kind)
    return {kind: place / kind for kind in KINDS}


def paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if at:
        yield at
    inner = enumerate(value) if isinstance(value, list) else ()
    for key, item in value.items() if isinstance(value, dict) else inner:
        yield from paths(item, (*at, key))


def deep(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


PLAIN = st.sampled_from(
    [None, True, False, -1, 0, 1, 1.5, 10**30, np.nan, np.inf, "", "x", [], {}, [[]], [None]]
)
VALUES = PLAIN | st.sampled_from([deep(20), deep(400), {"a": 1}, {"__pairs__": 3}])
WAYS = st.sampled_from(["set", "set", "remove", "shorten", "repeat", "add"])


def change(content: dict[str, Any], at: tuple[Any, ...], way: str, value: Any) -> None:
    above: Any = content
    for key in at[:-1]:
        above = above[key]
    own = above[at[-1]]
    if way == "remove":
        del above[at[-1]]
    elif isinstance(own, list) and own and way == "shorten":
        own.pop()
    elif isinstance(own, list) and own and way == "repeat":
        own.append(copy.deepcopy(own[0]))
    elif isinstance(own, dict) and way == "add":
        own["unknown"] = value
    else:
        above[at[-1]] = copy.deepcopy(value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_every_change_is_refused_or_harmless(
    saved: dict[str, Path], kind: str, data: st.DataObject
) -> None:
    folder = saved[kind]
    original = (folder / "model.json").read_text(encoding="utf-8")
    content = json.loads(original)
    at = data.draw(st.sampled_from([own for own in paths(content) if own[0] != "sha256"]))
    way, value = data.draw(WAYS), data.draw(VALUES)
    try:
        edit(folder, lambda content: change(content, at, way, value))
        with suppress(DataError):
            model = load(folder)
            repr(model)
            found = predictions(model, kind)  # a DataError: the table has no such columns
            assert found.dtype == object or np.isfinite(found).all()
        if kind != "closed classes":
            with suppress(DataError):
                found = predictions(restore(load_folder(folder), light_kind, {}, folder), kind)
                assert found.dtype == object or np.isfinite(found).all()
    finally:
        (folder / "model.json").write_text(original, encoding="utf-8")


@pytest.mark.parametrize(
    ("kind", "at", "value", "named"),
    [
        ("table", ("record", "schema", 0, "low"), 1e6, r"column 'size': low 1e\+06 is above high"),
        ("table", ("record", "schema", 0, "high"), np.inf, r"'size'\.high: expected a finite"),
        ("table", ("record", "schema", 0, "kind"), "colour", "kind: expected one of number"),
        ("table", ("record", "schema", 1, "name"), "size", "two columns have the same name"),
        ("table", ("record", "outcomes"), [], r"record\.outcomes"),
        ("table", ("arrays",), None, "arrays"),
        (
            "table",
            ("parts", "new", "record", "n_features"),
            9,
            r"parts\.new\.record\.n_features",
        ),
        ("tasks", ("record", "unit"), [0.0, -1.0], r"record\.unit"),
        ("tasks", ("record", "sizes"), [10**9, 1], "sizes"),
        ("tasks", ("record", "features"), -1, r"record\.features"),
        ("tasks", ("record", "random_state"), -1, r"random_state"),
        ("network", ("record", "options", "hidden"), [10**9], "hidden"),
        ("network", ("record", "options", "lr"), -1, r"record\.options: lr"),
        ("network", ("record", "targets"), [], r"record\.targets"),
        ("pooled", ("record", "n_features"), 22, r"record\.n_features: 22"),
        ("auto", ("record", "selection", "shares", "ridge"), -1, r"selection\.shares"),
        (
            "auto",
            ("parts", "ridge", "parts", "estimator", "record", "one_column"),
            False,
            r"parts\.ridge: expected one response",
        ),
        ("pooled", ("record",), deep(5000), "damaged"),
    ],
)
def test_the_error_names_the_key(
    saved: dict[str, Path], tmp_path: Path, kind: str, at: Any, value: Any, named: str
) -> None:
    shutil.copytree(saved[kind], tmp_path / "m")
    if named == "damaged":  # too deep to be signed
        text = '{"format": 3, "versions": {"vntransfer": ""}, "record": ' + "[" * 5000
        (tmp_path / "m" / "model.json").write_text(text)
    else:
        edit(tmp_path / "m", lambda content: change(content, at, "set", value))
    with pytest.raises(DataError, match=named) as error:
        load(tmp_path / "m")
    assert f"{tmp_path / 'm'}: model.json" in str(error.value)
