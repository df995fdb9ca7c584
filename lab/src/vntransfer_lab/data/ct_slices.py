"""CT slices: the position of a slice along the body, domains are random groups of patients."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from vntransfer_lab.data.base import Domains, Provenance
from vntransfer_lab.data.grouping import random_groups, split_rows
from vntransfer_lab.data.numeric_csv import read_numbers

N_FEATURES = 384


def load_ct_slices(files: Mapping[str, Path], *, k: int = 5, seed: int = 0) -> Domains:
    """Slices of whole patients in k groups.

    Parameters
    ----------
    files
        Found files: the official csv (in its zip or not), or the partial compact one.
    k
        Number of groups.
    seed
        Seed of dealing the patients into groups.

    Returns
    -------
    Domains
        ``extras["patient"]`` maps domain -> patient of each row.
    """
    (path,) = files.values()
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as box:
            X, y, patient = box["X"], box["y"].astype(np.float64), box["patient"].astype(np.int64)
    else:
        rows = read_numbers(path, columns=N_FEATURES + 2, header=True, dtype=np.float32)
        X, patient = rows[:, 1:-1], rows[:, 0].astype(np.int64)
        y = np.asarray(rows[:, -1], dtype=np.float64)
    owner = random_groups(patient, k, seed=seed)
    return Domains(
        "ct_slices",
        split_rows(X, y, owner, k),
        feature_names=tuple(f"value{i}" for i in range(N_FEATURES)),
        response_name="position (0 head to 180 feet)",
        provenance=Provenance(
            (
                f"{len(np.unique(patient))} patients dealt at random into {k} groups, seed {seed}",
                f"{len(y)} slices",
            )
        ),
        extras={"patient": {f"dom{d + 1}": patient[owner == d] for d in range(k)}},
    )
