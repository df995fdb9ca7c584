"""The roles of a table's rows: sources with a response, targets without."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import HUGE, Floats, first_huge, instance, meant, texts
from vntransfer.errors import ArgumentError, DataError, DomainError
from vntransfer.tables.columns import Column, Frame
from vntransfer.tables.encoder import Findings, TableEncoder
from vntransfer.tables.files import expand, need, open_table
from vntransfer.tables.frame import read_frame
from vntransfer.tables.notes import Note
from vntransfer.tables.options import ReadOptions
from vntransfer.tables.row_notes import repeat_notes, response_notes
from vntransfer.tables.schema import remedy
from vntransfer.tables.usable import Labeled, fit_usable

LEAST = 10
"""Labeled rows that are needed at least."""

LABELED = " (labeled)"
"""Ends the name of the source that a target's labeled rows make."""


@dataclass(frozen=True)
class TableColumns:
    """Which columns of a table are used, and for what."""

    domain: str  # column of the places
    response: str  # what is to be predicted
    features: Sequence[str] | None = None  # to predict from; None: all others
    drop: Sequence[str] = ()  # to leave out
    category: Sequence[str] = ()  # categories even if they look like numbers

    def __post_init__(self) -> None:
        for what in ("domain", "response"):
            instance(what, getattr(self, what), str, "the name of a column")
        for what in ("features", "drop", "category"):
            if (named := getattr(self, what)) is not None:
                object.__setattr__(self, what, texts(what, named, "a list of columns"))
            elif what != "features":
                object.__setattr__(self, what, [])

    def choose(self, table: str, every: Sequence[str]) -> list[str]:
        """Name the columns to predict from, among all of a table; check those that were named."""
        domain, response, features = self.domain, self.response, self.features
        need(table, every, [domain, response, *(features or ()), *self.drop])
        if domain == response:
            raise ArgumentError(f"response: {response!r} is also the domain; name another column")
        roles = {domain, response}
        if doubled := roles & set(features or ()):
            raise ArgumentError(f"features: {doubled.pop()!r} is also the response or the domain")
        if doubled := roles & set(self.drop):
            raise ArgumentError(f"drop: {doubled.pop()!r} is the response or the domain")
        wanted = every if features is None else features
        names = [n for n in wanted if n not in roles and n not in self.drop]
        if not names:
            raise DataError(f"{table}: no column is left as a feature; it has {', '.join(every)}")
        return list(dict.fromkeys(names))

    def find(self, data: Any, options: ReadOptions | None) -> tuple[list[Path], list[str]]:
        """Name the files of a table, and the columns to predict from."""
        files = expand(data, "data")
        with open_table(files[0], options) as first:
            return files, self.choose(str(files[0]), first.names)

    def read(self, data: Any, options: ReadOptions | None = None) -> tuple[Frame, list[str]]:
        """Read a table but for the columns that are not used; name those to predict from."""

        def pick(table: str, every: list[str]) -> list[str]:
            names.extend(self.choose(table, every))
            return [*names, self.domain, self.response]

        names: list[str] = []
        frame = read_frame(data, columns=pick, options=options)
        return frame, names or self.choose(frame.name, list(frame.columns))


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows of sources and targets, encoded; what ``fit`` of an estimator takes."""

    X: Floats  # (n, p)
    y: Floats  # (n,), NaN in rows of targets
    domain: NDArray[Any]  # place of each row, (n,)
    targets: tuple[str, ...]
    encoder: TableEncoder
    notes: tuple[Note, ...]  # on columns and rows that were left out, or are unusual
    names: tuple[str, str]  # the columns of place and response
    sha256: Mapping[str, str]  # of the files
    options: ReadOptions  # how they were read

    @property
    def sources(self) -> list[str]:
        """Places with a response, in their order in the table."""
        return [name for name in dict.fromkeys(self.domain.tolist()) if name not in self.targets]


def read_problem(
    data: Any,
    columns: TableColumns,
    *,
    targets: Sequence[str] = (),
    use_target_labels: bool = False,
    options: ReadOptions | None = None,
) -> Problem:
    """Read a table and encode its columns, learning the encoding from labeled rows alone.

    Responses of targets are not read, unless ``use_target_labels``: then rows of targets that have
    one become a source, "NAME (labeled)".

    Examples
    --------
    >>> town = ["A"] * 6 + ["B"] * 6 + ["C"] * 3
    >>> rooms, price = [*range(1, 16)], [*range(10, 22), None, None, None]
    >>> table = {"town": town, "rooms": rooms, "garden": [True, False, True] * 5, "price": price}
    >>> problem = read_problem(table, TableColumns("town", "price"), targets=["C"])
    >>> problem.sources, problem.targets, problem.encoder.names, problem.X.shape
    (['A', 'B'], ('C',), ['rooms', 'garden'], (15, 2))
    """
    domain, response = columns.domain, columns.response
    frame, names = columns.read(data, options)
    places = read_places(frame, domain)
    check_targets(frame.name, dict.fromkeys(places.tolist()), targets)
    aimed = np.isin(places, targets)
    y = read_responses(frame, response, unread=None if use_target_labels else aimed)
    known = ~np.isnan(y)
    notes = [Note("reading", text) for text in frame.notes]
    if use_target_labels:
        own = aimed & known
        for name in targets:
            if not (aimed & ~known & (places == name)).any():
                raise none_left(name)
        if own.any():
            said = f"{int(own.sum())} labeled rows of targets serve as sources"
            notes.append(Note("rows", said))
        if clash := {f"{name}{LABELED}" for name in targets} & set(places.tolist()):
            raise DomainError(
                f"domain: {clash.pop()!r} names labeled target rows; rename the place"
            )
        places = np.where(own, places + LABELED, places)
        aimed &= ~known
    elif (seen := int((aimed & known).sum())) > 0:
        said = (
            f"{seen} rows of targets have a response, which is not read; --use-target-labels "
            f"(use_target_labels=True) adds them as a source"
        )
        notes.append(Note("rows", said))
    notes += [Note("rows", text) for text in _left_out(places, aimed, known)]
    labeled = known & ~aimed
    need_labels(frame.name, response, int(labeled.sum()))
    if np.ptp(y[labeled]) == 0:
        raise constant(frame.name, response, y[labeled][0])
    cells, numbers = {name: frame.columns[name] for name in names}, np.asarray(frame.rows)

    def taken(rows: NDArray[np.bool_]) -> dict[str, Column]:
        return {name: own.take(rows) for name, own in cells.items()}

    usable = fit_usable(
        Labeled(taken(labeled), y[labeled], places[labeled], numbers[labeled].tolist()),
        {name: taken(aimed & (places == name)) for name in targets},
        wanted=columns.features or (),
        category=columns.category,
    )
    encoder = usable.encoder
    X, findings = np.empty((len(frame), len(encoder.names))), Findings()
    X[labeled] = usable.X
    if aimed.any():
        X[aimed], findings = encoder.encode(taken(aimed), numbers[aimed].tolist())
    notes += [
        *usable.notes,
        *response_notes(response, y[labeled], places[labeled]),
        *repeat_notes(usable.X, y[labeled], places[labeled], X[aimed]),
        *(
            Note("unusual", f"target: {text}", share=share)
            for text, share in findings.with_shares()
        ),
    ]
    used = np.flatnonzero(labeled | aimed)
    return Problem(
        X[used],
        np.where(aimed, np.nan, y)[used],
        places[used],
        tuple(dict.fromkeys(targets)),
        encoder,
        tuple(notes),
        (domain, response),
        frame.sha256,
        frame.options,
    )


def read_places(frame: Frame, domain: str) -> NDArray[Any]:
    """Give the place (or task) of each row as text."""
    places = frame.columns[domain].texts()
    if (blank := places == "").any():
        row = frame.rows[int(blank.argmax())]
        raise DataError(
            f"{frame.name}: row {row}, column {domain!r}: empty; enter the place of the row"
        )
    return places


def read_responses(
    frame: Frame,
    response: str,
    unread: NDArray[np.bool_] | None = None,
    otherwise: str = "code classes as 0 and 1, or leave the cell empty where it is unknown",
) -> Floats:
    """Give the response of each row as a number, NaN where it is not known.

    Rows of ``unread`` may have anything there, which counts as infinity. ``otherwise`` says what to
    do about a cell that is not nearly a number.
    """
    column = frame.columns[response].without_marks()
    y = column.numbers()
    read = y if unread is None else np.where(unread, np.nan, y)
    if (bad := np.isinf(read)).any():
        i = int(bad.argmax())
        cell = column.take([i]).texts()[0]
        raise DataError(
            f"{frame.name}: row {frame.rows[i]}, column {response!r}: {cell[:40]!r} is not a "
            f"finite number; the response must be one ({remedy(cell, frame.options, otherwise)})"
        )
    if at := first_huge(read):
        raise DataError(
            f"{frame.name}: row {frame.rows[at[0]]}, column {response!r} is {y[at]:g}; {HUGE}"
        )
    return y


def check_targets(table: str, places: Collection[str], targets: Sequence[str]) -> None:
    """Raise unless all targets are among the places of a table, and not its only place."""
    for name in targets:
        if name not in places:
            hint = meant(name, places) or f"; there are {', '.join([*places][:20])}"
            raise DomainError(f"target: {table} has no place {name!r}{hint}")
    if len(places) < 2:
        raise DomainError(
            f"domain: {table} has one place, {next(iter(places))!r}; at least two are needed, one "
            f"of them with a response"
        )


def none_left(target: str) -> DomainError:
    """Say that a target has no row without a response."""
    return DomainError(
        f"target: all rows of {target!r} have a response, so none are left to predict; omit "
        f"--use-target-labels to treat them as unknown"
    )


def need_labels(table: str, response: str, n: int) -> None:
    """Raise unless there are enough rows of sources with a response."""
    if n < LEAST:
        raise DataError(
            f"{table}: {n} rows of sources have a response in {response!r}; at least {LEAST} "
            f"are needed (is the target the place without responses?)"
        )


def constant(table: str, response: str, value: float) -> DataError:
    """Say that all labeled rows have the same response."""
    return DataError(
        f"{table}: column {response!r} is {value:g} in all labeled rows; there is nothing to learn"
    )


def _left_out(places: NDArray[Any], aimed: NDArray[Any], known: NDArray[Any]) -> list[str]:
    notes = []
    for name in dict.fromkeys(places[~aimed & ~known].tolist()):
        own = (places == name) & ~aimed
        gone, all_of = int((own & ~known).sum()), int(own.sum())
        why = "(not a target)" if gone == all_of else ""
        notes.append(f"{gone} of {all_of} rows of {name!r} have no response {why}".rstrip())
    return [f"{note}: ignored" for note in notes]
