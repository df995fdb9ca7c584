"""Five UCI tables with domains made by k-means, or by groups of subjects for parkinsons."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vntransfer_lab.data.base import Domains, Provenance
from vntransfer_lab.data.grouping import file_domains, kmeans_words, random_groups, split_rows
from vntransfer_lab.data.numeric_csv import read_numbers


@dataclass(frozen=True)
class UCITable:
    """How one csv becomes X and y: the last column is y."""

    n_columns: int
    response: str
    dropped: tuple[int, ...] = ()
    subject: int | None = None


TABLES = {
    "protein": UCITable(10, "log(1 + RMSD), centered"),
    # columns 4 and 5 repeat 0 and 1; 15 and 16 add up to the exponential of the response
    "bike": UCITable(18, "log of the hourly rentals, centered", dropped=(4, 5, 15, 16)),
    "pol": UCITable(27, "response (11 values), centered"),
    "pumadyn32nm": UCITable(33, "acceleration of a joint, standardized"),
    "parkinsons": UCITable(21, "total UPDRS, centered", subject=0),
}


def load_uci(
    files: Mapping[str, Path],
    *,
    name: str,
    k: int = 5,
    seed: int = 0,
    columns: int | Sequence[int] | None = None,
) -> Domains:
    """One table, its rows in k domains.

    Parameters
    ----------
    files
        Found files.
    name
        Which table; fixed by the registry.
    k
        Number of domains.
    seed
        Of k-means, or of dealing the subjects into groups.
    columns
        Columns to cluster on: a number means that many first ones, None all. Unused where
        subjects make the domains.
    """
    (path,) = files.values()
    table = TABLES[name]
    rows = read_numbers(path, columns=table.n_columns)
    left_out = {*table.dropped, table.n_columns - 1, table.subject}
    kept = [i for i in range(table.n_columns) if i not in left_out]
    X, y = np.asarray(rows)[:, kept], np.array(rows[:, -1])
    if table.subject is None:
        owner = file_domains(path, X, k, columns, seed=seed)
        how = kmeans_words(k, columns, seed)
    else:
        owner = random_groups(rows[:, table.subject], k, seed=seed)
        n_subjects = len(np.unique(rows[:, table.subject]))
        how = f"{n_subjects} subjects (column {table.subject}) in {k} random groups, seed {seed}"
    dropped = f"columns {', '.join(map(str, table.dropped))} dropped: they repeat others or tell y"
    return Domains(
        name,
        split_rows(X, y, owner, k),
        feature_names=tuple(f"x{i}" for i in kept),
        response_name=table.response,
        provenance=Provenance((how, dropped) if table.dropped else (how,)),
    )
