"""The checks of `vnt adapt` for ids and leaks find none among the columns of genuine tables."""

from pathlib import Path

import numpy as np
import pytest

from vntransfer.tables.problem import TableColumns, read_problem
from vntransfer_lab.data import Domains, load

ROWS = 1500


@pytest.mark.parametrize(
    "name", ["bike", "parkinsons", "pol", "protein", "pumadyn32nm", "yearpred-small"]
)
def test_measurements_are_neither_ids_nor_leaks(name: str, real: Path) -> None:
    loaded = load(name, folder=real)
    assert isinstance(loaded, Domains)
    parts = {place: (np.asarray(x)[:ROWS], y[:ROWS]) for place, (x, y) in loaded.items()}
    target = [*parts][-1]
    X = np.vstack([x for x, _ in parts.values()])
    place = np.repeat([*parts], [len(y) for _, y in parts.values()])
    y = np.concatenate(
        [np.full(len(y), np.nan) if p == target else y for p, (_, y) in parts.items()]
    )
    columns = {f"x{i}": column for i, column in enumerate(X.T)}
    problem = read_problem(
        {"place": place, **columns, "y": y}, TableColumns("place", "y"), targets=[target]
    )
    assert not [note for note in problem.notes if note.warning]
    assert not [note for note in problem.notes if note.kind in ("id", "determines")]
    dropped = set(columns) - set(problem.encoder.needed)
    assert all(np.ptp(columns[name][place != target]) == 0 for name in dropped)
