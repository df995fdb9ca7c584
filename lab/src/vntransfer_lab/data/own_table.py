"""The user's own table: csv or parquet, one file or many, columns by name."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vntransfer.errors import ArgumentError, DataError
from vntransfer.tables import Frame, ReadOptions, read_frame
from vntransfer.tables.files import expand
from vntransfer.tables.problem import read_places
from vntransfer_lab.data.base import Domains, Provenance


def table(
    path: str | Path | Sequence[str | Path],
    *,
    domain: str | None = None,
    response: str,
    features: Sequence[str] | None = None,
    targets: Sequence[str] = (),
    read_options: ReadOptions | None = None,
    name: str = "table",
) -> Domains:
    r"""Domains from csv or parquet files whose columns have names.

    Parameters
    ----------
    path
        A file (csv or parquet), a pattern such as ``"data/*.csv"``, or several of them.
    domain
        Column that names each row's domain; None: each file is a domain, named after it.
    response
        Column with the number to predict. A domain where all of it is empty is unlabeled: its
        y is NaN.
    features
        Columns to predict from; None: all others.
    targets
        Domains that serve as target by default.
    read_options
        How the files are written; None: detected.
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
    names = None if features is None else tuple(features)
    if doubled := {response, domain} & set(names or ()):
        raise ArgumentError(f"features: {doubled.pop()!r} is also the response or the domain")

    def pick(file: str, every: list[str]) -> list[str]:
        chosen = [n for n in every if n not in (domain, response)] if names is None else [*names]
        if not chosen:
            raise DataError(f"{file}: no column is left as a feature; it has {', '.join(every)}")
        return [*chosen, response, *([] if domain is None else [domain])]

    blocks: dict[str, list[NDArray[np.float64]]] = {}
    hashes: dict[str, str] = {}
    for file in paths:
        frame = read_frame(file, columns=pick, options=read_options)
        hashes |= frame.sha256
        names = tuple(n for n in frame.columns if n not in (domain, response))
        labels = np.full(len(frame), file.stem) if domain is None else read_places(frame, domain)
        numbers = _numbers(frame, (*names, response))
        for label in dict.fromkeys(labels.tolist()):
            blocks.setdefault(label, []).append(numbers[labels == label])
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
    return Domains(
        name,
        domains,
        feature_names=names or (),
        response_name=response,
        targets=tuple(targets),
        provenance=Provenance(
            built=(f"rows of {len(paths)} file(s), domain by {domain or 'file'}",),
            sources=tuple(str(file) for file in paths),
            sha256=hashes,
        ),
    )


def _numbers(frame: Frame, names: Sequence[str]) -> NDArray[np.float64]:
    """Cells as numbers (n, p + 1); only the last column, the response, may be empty (NaN)."""
    values = np.column_stack([frame.columns[name].numbers() for name in names])
    bad = ~np.isfinite(values)
    bad[:, -1] = np.isinf(values[:, -1])
    if bad.any():
        i, j = map(int, np.argwhere(bad)[0])
        written = frame.columns[names[j]].take([i]).texts()[0]
        raise DataError(
            f"{frame.name}: row {frame.rows[i]}, column {names[j]!r}: {written[:40]!r} is not a "
            "finite number; fix it, or name the numeric columns in features="
        )
    return values
