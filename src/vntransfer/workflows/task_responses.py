"""Responses of tasks: classes or numbers, and rows without one."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vntransfer.errors import DataError
from vntransfer.tables.columns import Column, Frame
from vntransfer.tables.problem import read_places, read_responses
from vntransfer.tables.schema import almost_number

Kind = Literal["auto", "regression", "classification"]


def natural(name: str) -> tuple[bool, float, str]:
    """Numbers by size, before texts."""
    try:
        return False, float(name), name
    except ValueError:
        return True, 0.0, name


def kind_of(column: Column, kind: Kind) -> Kind:
    """Classes or numbers; a few bad cells or decimal commas do not turn numbers into classes."""
    if kind != "auto":
        return kind
    if column.stored != "text":
        return "regression" if column.stored == "number" else "classification"
    marked = column.without_marks()
    full = ~marked.empty()
    texts, numbers = marked.texts()[full], marked.numbers()[full]
    meant = [bool(np.isfinite(x)) or almost_number(t) for x, t in zip(numbers, texts, strict=True)]
    return "regression" if 2 * sum(meant) >= len(meant) else "classification"


def labeled_rows(
    frame: Frame, task: str, response: str, kind: Kind
) -> tuple[Frame, tuple[str, ...]]:
    """Keep the rows with a response, and note how many are dropped."""
    column = frame.columns[response]
    gaps = (column.without_marks() if kind == "regression" else column).empty()
    if not gaps.any():
        return frame, frame.notes
    if gaps.all():
        raise DataError(f"{frame.name}: column {response!r} is empty in all rows; fill it")
    places, kept = read_places(frame, task), np.flatnonzero(~gaps)
    notes = tuple(
        f"{int(gaps[places == name].sum())} of {int((places == name).sum())} rows of task "
        f"{name!r} have no response: ignored"
        for name in dict.fromkeys(places[gaps].tolist())
    )
    columns = {name: own.take(kept) for name, own in frame.columns.items()}
    rows = np.asarray(frame.rows)[kept].tolist()
    return replace(frame, columns=columns, rows=rows), (*frame.notes, *notes)


def read_labels(frame: Frame, response: str, kind: Kind) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Responses, and names of classes if they are classes."""
    if kind == "regression":
        return read_responses(frame, response, otherwise="ask for classification"), ()
    texts = frame.columns[response].texts()
    classes = tuple(sorted(set(texts.tolist()), key=natural))
    if not 2 <= len(classes) <= 1000:
        raise DataError(
            f"{frame.name}: column {response!r} has {len(classes)} different "
            f"values; expected 2 to 1000 classes"
        )
    place = {name: i for i, name in enumerate(classes)}
    return np.array([place[text] for text in texts]), classes


def as_classes(texts: NDArray[Any], classes: Sequence[str]) -> NDArray[Any]:
    """Write classes as the model does: True as true, 1.0 as 1."""
    known = {_plain(name): name for name in classes}
    written = {
        text: text if text in classes else known.get(_plain(text), text) for text in set(texts)
    }
    return np.array([written[text] for text in texts], dtype=object)


def _plain(text: str) -> str:
    """Write booleans and numbers in one way."""
    value = Column.of_texts([text]).numbers()[0]
    if np.isfinite(value):
        return repr(float(value))
    return text.lower() if text.lower() in ("true", "false") else text
