"""Landmine: 29 fields of two kinds of terrain, for the relatedness of tasks."""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import numpy as np

from vntransfer.errors import DataError, damage_named
from vntransfer_lab.data.archives import read_members
from vntransfer_lab.data.base import Domains, Provenance

N_FOLIATED = 15  # fields 1 to 15 are foliated, the others bare ground


def load_landmine(files: Mapping[str, Path]) -> Domains:
    """Radar features of objects in 29 fields, y = 1 for a mine, 0 for clutter.

    ``extras["terrain"]`` names the kind of every field: a known grouping to test against.
    """
    from scipy.io import loadmat

    (path,) = files.values()
    if path.suffix == ".mat":
        content: bytes | None = path.read_bytes()
    else:
        content = next((c for _, c in read_members(path, lambda n: n.endswith(".mat"))), None)
    if content is None:
        raise DataError(f"{path}: holds no .mat file; fetch it again")
    with damage_named(path, ".mat file of equally many cells `feature` and `label`"):
        box = loadmat(BytesIO(content))
        cells = [
            (np.asarray(x, dtype=np.float64), np.asarray(y).ravel().astype(np.float64))
            for x, y in zip(box["feature"].ravel(), box["label"].ravel(), strict=True)
        ]
    names = [f"field{i:02d}" for i in range(1, len(cells) + 1)]
    kinds = ["foliated" if i < N_FOLIATED else "bare" for i in range(len(cells))]
    return Domains(
        "landmine",
        dict(zip(names, cells, strict=True)),
        feature_names=tuple(f"radar{i}" for i in range(cells[0][0].shape[1])),
        response_name="mine (1) or clutter (0)",
        provenance=Provenance(
            ("one domain per field; fields 1 to 15 foliated, 16 to 29 bare ground",)
        ),
        extras={"terrain": dict(zip(names, kinds, strict=True))},
    )
