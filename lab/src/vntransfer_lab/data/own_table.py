"""The user's own table: csv or parquet, one file or many, columns by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vntransfer.errors import ArgumentError, DataError
from vntransfer.storage.files import file_hash
from vntransfer.tables.files import Chunk, chunks, expand, header, need
from vntransfer_lab.data.base import Domains, Provenance


@dataclass(frozen=True)
class _Columns:
    """Which columns to read: the domain's (None: the file is the domain), response, features."""

    domain: str | None
    response: str
    features: tuple[str, ...]

    @property
    def numbers(self) -> tuple[str, ...]:
        return (*self.features, self.response)

    @property
    def all(self) -> tuple[str, ...]:
        return self.numbers if self.domain is None else (*self.numbers, self.domain)


def table(
    path: str | Path | Sequence[str | Path],
    *,
    domain: str | None = None,
    response: str,
    features: Sequence[str] | None = None,
    targets: Sequence[str] = (),
    delimiter: str = ",",
    name: str = "table",
) -> Domains:
    r"""Domains from csv or parquet files whose columns have names.

    Parameters
    ----------
    path
        A file (csv, csv.gz or parquet), a pattern such as ``"data/*.csv"``, or several of them.
    domain
        Column that names each row's domain; None: each file is a domain, named after it.
    response
        Column with the number to predict. A domain where all of it is empty is unlabeled: its
        y is NaN.
    features
        Columns to predict from; None: all others.
    targets
        Domains that serve as target by default.
    delimiter
        Between the cells of a csv file.
    name
        Of the result.

    Raises
    ------
    DataError
        Names file, row (the header is row 1), column and value of what does not fit.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "rooms.csv")
    >>> _ = path.write_text("room,t,load\nhall,20,1.5\nhall,21,2\nattic,25,3\nattic,24,2.5\n")
    >>> rooms = table(path, domain="room", response="load")
    >>> rooms, rooms["attic"][1]
    (<Domains table: 2 domains, 4 rows x 1 features>, array([3. , 2.5]))
    """
    paths = expand(path)
    names = tuple(features) if features is not None else None
    blocks: dict[str, list[NDArray[np.float64]]] = {}
    wanted: _Columns | None = None
    for file in paths:
        own = header(file, delimiter)
        if names is None:
            names = tuple(column for column in own if column not in (domain, response))
        wanted = _choose(file, own, domain, response, names)
        rows = 0
        for chunk in chunks(file, wanted.all, delimiter=delimiter):
            labels, numbers = _labels(file, wanted, chunk), _numbers(file, wanted, chunk)
            rows += len(numbers)
            for label in dict.fromkeys(labels):
                blocks.setdefault(label, []).append(numbers[np.asarray(labels) == label])
        if not rows:
            raise DataError(f"{file}: has a header but no rows; drop the file or fill it")
    domains = {}
    for label, parts in blocks.items():
        whole = np.concatenate(parts)
        x, y = whole[:, :-1], whole[:, -1]
        if np.isnan(y).any() and not np.isnan(y).all():
            raise DataError(
                f"{paths[0]}: column {response!r} is empty in {int(np.isnan(y).sum())} of {len(y)} "
                f"rows of domain {label!r}; fill or drop them, or empty all (an unlabeled domain)"
            )
        domains[label] = (np.ascontiguousarray(x), np.ascontiguousarray(y))
    assert wanted is not None  # _expand gives at least one file
    return Domains(
        name,
        domains,
        feature_names=wanted.features,
        response_name=response,
        targets=tuple(targets),
        provenance=Provenance(
            built=(f"rows of {len(paths)} file(s), domain by {domain or 'file'}",),
            sources=tuple(str(file) for file in paths),
            sha256={file.name: file_hash(file) for file in paths},
        ),
    )


def _choose(
    file: Path, names: Sequence[str], domain: str | None, response: str, features: tuple[str, ...]
) -> _Columns:
    """Check that the columns are there, and that there are features."""
    chosen = _Columns(domain, response, features)
    need(file, names, chosen.all)
    if not features:
        raise DataError(f"{file}: no column is left as a feature; it has {', '.join(names)}")
    if doubled := {response, domain} & set(features):
        raise ArgumentError(f"features: {doubled.pop()!r} is also the response or the domain")
    return chosen


def _labels(file: Path, wanted: _Columns, chunk: Chunk) -> list[str]:
    """Domain of each row."""
    if wanted.domain is None:
        return [file.stem] * len(chunk.rows)
    labels: list[str] = chunk.columns[wanted.domain].texts().tolist()
    if "" in labels:
        raise DataError(
            f"{file}: row {chunk.rows[labels.index('')]}, column {wanted.domain!r}: is empty; name "
            "the row's domain"
        )
    return labels


def _numbers(file: Path, wanted: _Columns, chunk: Chunk) -> NDArray[np.float64]:
    """Cells as numbers (n, p + 1); only the last column, the response, may be empty (NaN)."""
    values = np.column_stack([chunk.columns[column].numbers() for column in wanted.numbers])
    bad = ~np.isfinite(values)
    bad[:, -1] = np.isinf(values[:, -1])
    if bad.any():
        i, j = map(int, np.argwhere(bad)[0])
        written = chunk.columns[wanted.numbers[j]].texts()[i]
        raise DataError(
            f"{file}: row {chunk.rows[i]}, column {wanted.numbers[j]!r}: {written[:40]!r} is "
            "not a finite number; mend it, or name the numeric columns in features="
        )
    return values
