"""From columns of a table to a matrix of numbers, with a record of what was done."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from vntransfer.checks import LARGEST, Floats, one_of
from vntransfer.display import counted
from vntransfer.errors import ArgumentError, DataError
from vntransfer.storage.record import check_record, from_record
from vntransfer.tables.columns import Column
from vntransfer.tables.schema import ALL_PARTS, Field, date_parts, describe, remedy


@dataclass(frozen=True)
class Findings:
    """What was unusual in rows that were encoded, by column; it adds up over pieces of a table."""

    rows: int = 0
    unseen: dict[str, Counter[str]] = field(default_factory=dict)  # categories new since training
    filled: Counter[str] = field(default_factory=Counter)  # gaps where training had none
    outside: Counter[str] = field(default_factory=Counter)  # values beyond those of training

    def __add__(self, other: "Findings") -> "Findings":
        unseen = dict(self.unseen)
        for name, counts in other.unseen.items():
            unseen[name] = unseen.get(name, Counter()) + counts
        return Findings(
            self.rows + other.rows,
            unseen,
            self.filled + other.filled,
            self.outside + other.outside,
        )

    def lines(self) -> list[str]:
        """Sentences for people to read, the worst first."""
        return [text for text, _ in self.with_shares()]

    def with_shares(self) -> list[tuple[str, float]]:
        """Sentences, each with the share of rows whose category was never seen in training."""
        out = []
        for name, counts in self.unseen.items():
            shown = ", ".join(repr(text[:40]) for text, _ in counts.most_common(3))
            more = f" and {len(counts) - 3} more" if len(counts) > 3 else ""
            said = (
                f"{name!r}: {counts.total()} of {self.rows} rows have categories never seen in "
                f"training ({shown}{more})"
            )
            out.append((said, counts.total() / self.rows))
        for name, n in self.filled.most_common():
            said = f"{name!r}: {n} missing values, filled as in training, where none were missing"
            out.append((said, 0.0))
        for name, n in self.outside.most_common():
            share = f"{n} of {counted(self.rows, 'value')}"
            out.append((f"{name!r}: {share} outside the range of the training rows", 0.0))
        return out


class Encoded(NamedTuple):
    """Rows as a matrix (n, p) of finite numbers, and what was unusual in them."""

    X: Floats
    findings: Findings


@dataclass(frozen=True)
class TableEncoder:
    """Turn columns into numbers, the same way for training rows and all later ones.

    Numbers stay as they are, yes and no become 1 and 0, each frequent category has a column, dates
    become time and places in the year, week and day; missing values are filled with the median
    (numbers, dates) or the more frequent one (yes or no), and a column marks them. Everything is
    learned from the rows given to `fit` and can be written as JSON.

    Examples
    --------
    >>> from vntransfer.tables import read_frame
    >>> columns = read_frame({"rooms": [2, None, 4], "kind": ["flat", "house", "flat"]}).columns
    >>> encoder = TableEncoder.fit(columns)
    >>> encoder.names
    ['rooms', 'rooms is missing', 'kind=flat', 'kind=house']
    >>> encoder.encode(columns).X
    array([[2., 0., 1., 0.],
           [3., 1., 0., 1.],
           [4., 0., 1., 0.]])
    """

    fields: tuple[Field, ...]

    @classmethod
    def fit(
        cls,
        columns: Mapping[str, Column],
        rows: Sequence[int | str] | None = None,
        *,
        wanted: Sequence[str] = (),
        category: Sequence[str] = (),
        called: str = "rows",
        left_out: Mapping[str, str] | None = None,
    ) -> Self:
        """Find out what the columns of the training rows hold.

        ``rows`` are their numbers in the file, and ``called`` says what they are ("labeled rows"),
        for messages. ``left_out`` are columns that are not used, and why. Ids and row numbers are
        used if they are ``wanted`` by name; columns of ``category`` hold categories even if they
        look like numbers.
        """
        if absent := sorted(set(category) - set(columns)):
            raise ArgumentError(f"category: {absent[0]!r} is not among the features")
        n = len(next(iter(columns.values()))) if columns else 0
        numbers = range(2, n + 2) if rows is None else rows
        fields = tuple(
            Field(name, "dropped", note=left_out[name])
            if left_out and name in left_out
            else describe(
                name,
                column,
                numbers,
                wanted=name in wanted,
                category=name in category,
                called=called,
            )
            for name, column in columns.items()
        )
        return cls(fields)._checked()

    def without(self, reasons: Mapping[str, str]) -> Self:
        """Leave columns out, with the reason."""
        return type(self)(
            tuple(
                Field(own.name, "dropped", note=reasons[own.name]) if own.name in reasons else own
                for own in self.fields
            )
        )._checked()

    def _checked(self) -> Self:
        if not self.names:
            reasons = "; ".join(f"{own.name!r}: {own.note}" for own in self.fields)
            raise DataError(f"features: no usable column ({reasons}); add one that varies")
        return self

    @property
    def names(self) -> list[str]:
        """Names of the columns of the matrix."""
        return [name for own in self.fields for name in own.outputs()]

    @property
    def needed(self) -> list[str]:
        """Columns of the table that are read."""
        return [own.name for own in self.fields if own.kind != "dropped"]

    def compare(self, names: Sequence[str], roles: Sequence[str]) -> list[str]:
        """Give notes on the columns of a later table: those that are not used, another order.

        What is missing is an error; the ``roles``, place and response, need not be there.
        """
        if absent := [name for name in self.needed if name not in names]:
            raise DataError(
                f"missing columns that the model was trained on: {', '.join(map(repr, absent))}; "
                f"the table has {', '.join(map(repr, names))[:300]}"
            )
        known = {*(own.name for own in self.fields), *roles}
        extra = [name for name in names if name not in known]
        notes = [f"columns not used: {', '.join(map(repr, extra))}"] if extra else []
        if [name for name in names if name in self.needed] != self.needed:
            notes.append("columns are in another order; they are matched by name")
        return notes

    def encode(
        self, columns: Mapping[str, Column], rows: Sequence[int | str] | None = None
    ) -> Encoded:
        """Encode rows, given at least the columns of `needed`; their numbers are for messages."""
        n = len(columns[self.needed[0]])
        numbers = range(2, n + 2) if rows is None else rows
        blocks: list[Floats] = []
        found = Findings(n)
        for own in self.fields:
            if own.kind == "dropped":
                continue
            if own.kind == "category":
                made, unusual = _categories(own, columns[own.name])
            else:
                made, unusual = _values(own, columns[own.name], numbers)
            blocks += made
            found += unusual
        return Encoded(np.column_stack(blocks).astype(np.float64), found)

    def summary(self) -> list[tuple[str, str, str]]:
        """Name, kind and treatment of every column."""
        return [(own.name, own.kind, own.note) for own in self.fields]

    def as_json(self) -> list[dict[str, Any]]:
        """Give plain values, for a file."""
        return [asdict(own) for own in self.fields]

    @classmethod
    def from_json(cls, values: Any) -> Self:
        """Undo `as_json`."""
        check_record("record.schema", values, list[dict[str, Any]])
        fields = []
        for own in values:
            at = f"record.schema, column {own.get('name')!r:.60}"
            fields.append(made := from_record(Field, at, own))
            for part in made.parts:
                one_of(f"{at}: parts", part, ALL_PARTS, error=DataError)
            if made.low > made.high:
                raise DataError(f"{at}: low {made.low:g} is above high {made.high:g}")
        found = cls(tuple(fields))
        if not found.names:
            raise DataError("schema: damaged; no usable column")
        if len({own.name for own in fields}) < len(fields):
            raise DataError("schema: damaged; two columns have the same name")
        return found


def _values(own: Field, column: Column, rows: Sequence[int | str]) -> tuple[list[Floats], Findings]:
    values = read_values(own, column)
    if (bad := np.isinf(values)).any():
        i = int(bad.argmax())
        cell = column.take([i]).texts()[0]
        expected = {"boolean": "yes or no", "date": "a date such as 2024-03-31"}
        how = "correct it, or empty the cell if the value is unknown"
        raise DataError(
            f"row {rows[i]}, column {own.name!r}: {cell[:40]!r} is not "
            f"{expected.get(own.kind, 'a number')}, unlike the training rows; "
            f"{remedy(cell, column.options, how) if own.kind == 'number' else how}"
        )
    if (huge := np.abs(values) > LARGEST).any():
        i = int(huge.argmax())
        raise DataError(
            f"row {rows[i]}, column {own.name!r}: {values[i]:g} is too large to compute with; fix "
            f"it, rescale the column or leave it out"
        )
    gaps = np.isnan(values)
    width = own.high - own.low
    used = own.kind != "date" or "years" in own.parts
    far = used * int(((values < own.low - 1e-9 * width) | (values > own.high + 1e-9 * width)).sum())
    unusual = Findings(
        filled=Counter({own.name: int(gaps.sum())} if gaps.any() and not own.missing else {}),
        outside=Counter({own.name: far} if far else {}),
    )
    full = np.where(gaps, own.fill, values)
    if own.kind == "date":
        out = date_parts(full, own.parts)
    else:
        out = [full] if own.low < own.high else []
    return ([*out, gaps.astype(np.float64)] if own.missing else out), unusual


def read_values(own: Field, column: Column) -> Floats:
    """Read the cells of a column that holds no categories: NaN where empty, infinity if unfit."""
    if own.kind == "date":
        return column.days(day_first=own.day_first)
    return column.booleans() if own.kind == "boolean" else column.without_marks().numbers()


def _categories(own: Field, column: Column) -> tuple[list[Floats], Findings]:
    codes, texts = column.coded()
    place = {text: k for k, text in enumerate(texts)}
    out = [(codes == place.get(name, -1)).astype(np.float64) for name in own.categories]
    empty = (codes == place.get("", -1)).astype(np.float64)
    others = 1.0 - empty - sum(out)
    known = {"", *own.categories, *own.others}
    counts = np.bincount(codes, minlength=len(texts)).tolist()
    new = {text: n for text, n in zip(texts, counts, strict=True) if text not in known}
    unusual = Findings(
        unseen={own.name: Counter(new)} if new else {},
        filled=Counter({own.name: int(empty.sum())} if empty.any() and not own.missing else {}),
    )
    out += [others] if own.others else []
    return ([*out, empty] if own.missing else out), unusual
