"""Find the columns that can be used at the targets, before anything is trained on them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import Floats
from vntransfer.display import listed, percent
from vntransfer.errors import DataError
from vntransfer.repeats import Keys, row_keys
from vntransfer.tables.at_target import Finding, check_target
from vntransfer.tables.columns import Column
from vntransfer.tables.determines import CLOSE, NEARLY, held_out_ratio, sample
from vntransfer.tables.encoder import TableEncoder, read_values
from vntransfer.tables.identifiers import UNIQUE, identifier, may_identify
from vntransfer.tables.notes import Note
from vntransfer.tables.row_notes import marker_note
from vntransfer.tables.schema import FEW, Field, TooManyTextsError

Codes = NDArray[np.intp]
Cells = Mapping[str, Column]

HELPS = 0.9
"""An id with r(c) below this is kept: it predicts held-out sources."""

UNLESS = "Unless it is known before the response, the expected error is too low; remove it with"

EMPTIER = 0.05
"""Share of missing cells at a target up to which such a column is kept."""


@dataclass(frozen=True, eq=False)
class Labeled:
    """The rows of the sources: cells, responses, places, and row numbers in the file."""

    cells: Cells
    y: Floats
    places: NDArray[Any]
    rows: Sequence[int | str]
    called: str = "labeled rows"


@dataclass(frozen=True, eq=False)
class Usable:
    """The encoder of the usable columns, the encoded sources, and notes."""

    encoder: TableEncoder
    X: Floats
    notes: tuple[Note, ...]


def fit_usable(
    labeled: Labeled,
    targets: Mapping[str, Cells],
    *,
    wanted: Sequence[str] = (),
    category: Sequence[str] = (),
) -> Usable:
    """Fit an encoder to the columns of the sources that can be used at every target.

    A column that is unusable at one target is dropped for all. A column ``wanted`` by name is kept
    with a note, but raises an error if it is empty at a target. ``category`` names columns that
    hold categories even if they look like numbers.

    Examples
    --------
    >>> from vntransfer.tables import read_frame
    >>> n = np.arange(40.0)
    >>> cells = read_frame({"size": n % 7, "tax": 2 * n % 9}).columns
    >>> new = read_frame({"size": n[:5], "tax": np.full(5, np.nan)}).columns
    >>> labeled = Labeled(cells, n, np.repeat(["A", "B"], 20), range(2, 42))
    >>> found = fit_usable(labeled, {"C": new})
    >>> found.encoder.needed, found.notes[0].text
    (['size'], "'tax' is dropped: empty in all 5 rows at target 'C'")
    """
    check = _Check(labeled, targets, wanted, category)
    check.at_targets()
    check.identifiers()
    check.determining()
    check.markers()
    return Usable(check.encoder, check.X, tuple(check.notes))


class _Check:
    """The columns that are still used, and the notes so far."""

    def __init__(
        self,
        labeled: Labeled,
        targets: Mapping[str, Cells],
        wanted: Sequence[str],
        category: Sequence[str],
    ) -> None:
        self.targets, self.wanted, self.y = targets, wanted, labeled.y
        self.named = {*wanted, *category}
        self.places = np.unique(labeled.places.astype(str), return_inverse=True)[1]
        self.notes: list[Note] = []
        self.reasons: dict[str, str] = {}  # dropped column -> why
        self._empty(labeled)
        self.encoder = _fit(labeled, self.reasons, wanted, category)
        for own in self.encoder.fields:
            if own.kind == "dropped" and own.name not in self.reasons:
                same = np.ptp(labeled.cells[own.name].comparable()) == 0
                self._dropped(own.name, "unvaried" if same else "id", own.note, 1.0)
        self.X = self.encoder.encode(labeled.cells, labeled.rows).X
        self.looked = sample(self.places)

    def _empty(self, labeled: Labeled) -> None:
        """Drop columns that are empty at the sources or at a target, before they are read."""
        for name, column in labeled.cells.items():
            if name not in self.wanted and bool(column.without_marks().empty().all()):
                self._dropped(name, "empty", f"empty in all {len(column):,} {labeled.called}", 1.0)
            at = [t for t, own in self.targets.items() if bool(own[name].empty().all())]
            if at and name in self.wanted:
                raise DataError(
                    f"features: column {name!r} is empty in all rows of target {listed(at)}; fill "
                    f"it there, or leave it out of --features (features=)"
                )
            if at and name not in self.reasons:
                n = len(self.targets[at[0]][name])
                self._dropped(name, "empty", f"empty in all {n:,} rows {_at(at)}", 1.0)

    def _dropped(self, name: str, kind: Any, why: str, share: float) -> None:
        self.notes = [note for note in self.notes if note.column != name]
        self.notes.append(Note(kind, f"{name!r} is dropped: {why}", name, share, "dropped"))
        self.reasons[name] = why

    def _kept(self, name: str, kind: Any, why: str, share: float) -> None:
        self.notes.append(Note(kind, f"{name!r} is kept: {why}", name, share, "kept"))

    def _shrink(self, parts: Mapping[str, Field] | None = None) -> None:
        """Remove dropped columns, and parts of dates, from the encoder and the matrix."""
        fields = tuple((parts or {}).get(own.name, own) for own in self.encoder.fields)
        made = TableEncoder(fields).without(self.reasons)
        if made == self.encoder:
            return
        keep = [
            name in new.outputs()
            for old, new in zip(self.encoder.fields, made.fields, strict=True)
            for name in old.outputs()
        ]
        self.X, self.encoder = self.X[:, keep], made

    def _fields(self) -> Iterator[tuple[Field, slice]]:
        """Give the columns in use and their places in the matrix."""
        at = 0
        for own in self.encoder.fields:
            first, at = at, at + len(own.outputs())
            if at > first:
                yield own, slice(first, at)

    def _values(self, own: Field, at: slice, rows: Any = slice(None)) -> Floats:
        """Values of a column in rows of the sources, NaN where empty; codes for categories."""
        block = self.X[rows, at]
        if own.kind == "category":
            values = block @ np.arange(1.0, block.shape[1] + 1)
        elif own.kind == "date" and "years" not in own.parts:
            return np.full(len(block), np.nan)
        elif own.low == own.high:  # the only column marks empty cells
            values = np.full(len(block), own.low)
        else:
            values = block[:, 0] * (365.2425 if own.kind == "date" else 1)
        return np.where(block[:, -1] == 1, np.nan, values) if own.missing else values

    def at_targets(self) -> None:
        """Drop columns that cannot be used at a target."""
        parts: dict[str, Field] = {}
        for own, at in self._fields():
            at_sources, found = self._values(own, at), list[Finding]()
            for target, cells in self.targets.items():
                there = _at([target])
                finding = check_target(own, cells[own.name], at_sources, self.places, there)
                found += [finding] if finding else []
            if not found:
                continue
            worst = max(found, key=lambda finding: (finding.drop, finding.parts is not None))
            why = worst.why
            each = [finding.parts for finding in found if finding.parts is not None]
            left = tuple(part for part in own.parts if all(part in one for one in each))
            drop = worst.drop or (bool(each) and not left)
            if drop and own.name not in self.wanted:
                self._dropped(own.name, worst.kind, why, worst.share)
                continue
            if worst.kind == "empty":
                raise DataError(
                    f"features: column {own.name!r} is {why}; fill it there, or leave it out of "
                    f"--features (features=)"
                )
            if each and own.name not in self.wanted:
                parts[own.name] = replace(own, parts=left, note=f"{own.note}; {why}")
            self._kept(own.name, worst.kind, why, worst.share)
        self._shrink(parts)

    def identifiers(self) -> None:
        """Drop ids and row numbers, first of single rows, then of repeated rows."""
        self._numbered(np.arange(len(self.y), dtype=np.uint64))
        if len(np.unique(rows := row_keys(self.X, self.y))) < len(rows):
            self._numbered(rows)
            different = len(np.unique(rows))
            for own, _ in self._fields():
                n = len(own.categories) + len(own.others)
                if n > FEW and n >= UNIQUE * different and own.name not in self.named:
                    why = f"{n} different texts in {different} different rows: an id"
                    self._dropped(own.name, "id", why, 1.0)
            self._shrink()

    def _numbered(self, rows: Keys) -> None:
        """Drop numbers that differ in nearly all different rows, given by their keys."""
        named = {note.column for note in self.notes if note.kind == "id"}
        for own, at in self._fields():
            if own.kind != "number" or own.missing or own.name in named:
                continue
            some = self._values(own, at, self.looked)
            if not may_identify(some, self.places[self.looked]):
                continue
            found = identifier(own.name, self._values(own, at), self.places, rows)
            if found is None:
                continue
            ratio = held_out_ratio(some, *self._responses(), rough=np.inf)
            helps = not found.row_number and ratio < HELPS
            if not found.sure and helps:
                continue
            if own.name in self.wanted or helps or not found.sure:
                end = " and predicts held-out sources" if helps else ""
                why = f"it may be an id ({found.why}){end}; --drop removes it"
                self._kept(own.name, "id", why, 1.0)
                continue
            what = "a row number" if found.row_number else "an id"
            why = f"{what} ({found.why}); name it in --features to use it"
            self._dropped(own.name, "id", why, 1.0)
        self._shrink()

    def _responses(self) -> tuple[Floats, Codes]:
        """Responses and places of the sampled rows."""
        return self.y[self.looked], self.places[self.looked]

    def determining(self) -> None:
        """Note columns that (nearly) determine the response; drop them if a target lacks some."""
        for own, at in self._fields():
            name, values = own.name, self._values(own, at, self.looked)
            category = own.kind == "category"
            ratio = held_out_ratio(values, *self._responses(), category=category)
            if ratio >= CLOSE:
                continue
            lack = {
                target: float(cells[name].without_marks().empty().mean() - np.isnan(values).mean())
                for target, cells in self.targets.items()
            }
            short = [target for target, share in lack.items() if share > EMPTIER]
            leak, said = ratio < NEARLY, "it nearly determines the response on held-out sources"
            if leak and short and name not in self.wanted:
                share = max(lack.values())
                why = f"{said}, and is empty in {percent(share)} of the rows {_at(short)}"
                self._dropped(name, "determines", why, share)
                continue
            if not leak:
                alone = percent(ratio)
                said = f"alone, it predicts held-out sources with {alone} of a constant's error"
            kind = "determines" if leak else "close"
            self._kept(name, kind, f"{said}. {UNLESS} --drop {name}", 1.0)
        self._shrink()

    def markers(self) -> None:
        """Note numbers that may mark missing values, at the sources or a target."""
        for own, at in self._fields():
            if own.kind == "number":
                there = [read_values(own, cells[own.name]) for cells in self.targets.values()]
                found = marker_note(own.name, np.concatenate([self._values(own, at), *there]))
                self.notes += [found] if found else []


def _fit(
    labeled: Labeled, left_out: Mapping[str, str], wanted: Sequence[str], category: Sequence[str]
) -> TableEncoder:
    """Fit an encoder; a column with too many texts is an id if its rows repeat."""
    try:
        return TableEncoder.fit(
            labeled.cells,
            labeled.rows,
            wanted=wanted,
            category=category,
            called=labeled.called,
            left_out=left_out,
        )
    except TooManyTextsError as error:
        keys = row_keys(*(own.comparable() for own in labeled.cells.values()), labeled.y)
        different = len(np.unique(keys))
        if error.texts < UNIQUE * different or different == len(keys):
            raise
        why = f"{error.texts} different texts in {different} different rows: an id"
        left_out = {**left_out, error.column: why}
    return _fit(labeled, left_out, wanted, category)


def _at(targets: Sequence[str]) -> str:
    return (
        f"at target{'s' if len(targets) > 1 else ''} {listed(repr(str(name)) for name in targets)}"
    )
