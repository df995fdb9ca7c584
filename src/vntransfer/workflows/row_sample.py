"""At most so many rows of each source: learning from more takes longer and gains little."""

from dataclasses import replace

import numpy as np

from vntransfer.tables.notes import Note
from vntransfer.tables.problem import Problem

MAX_ROWS = 20_000
"""Rows of each source that methods learn from, unless the user asks for more."""


def sample_rows(problem: Problem, max_rows: int = MAX_ROWS, random_state: int = 0) -> Problem:
    """Keep at most ``max_rows`` random rows of each source, and add a note.

    The same seed draws the same rows. Rows of targets stay.

    Examples
    --------
    >>> from vntransfer.tables.problem import TableColumns, read_problem
    >>> table = {"town": ["A"] * 60 + ["B"] * 20 + ["C"] * 9, "rooms": [1, 2.5, 4] * 29 + [1, 2],
    ...          "price": [*range(80)] + [None] * 9}
    >>> problem = read_problem(table, TableColumns("town", "price"), targets=["C"])
    >>> few = sample_rows(problem, 30)
    >>> [int((few.domain == name).sum()) for name in "ABC"]
    [30, 20, 9]
    """
    kept, counts = np.ones(len(problem.y), dtype=bool), {}
    for i, name in enumerate(problem.sources):
        rows = np.flatnonzero(problem.domain == name)
        if len(rows) > max_rows:
            counts[name] = len(rows)
            rng = np.random.default_rng([random_state, i])
            kept[rows] = False
            kept[rng.choice(rows, max_rows, replace=False)] = True
    if not counts:
        return problem
    which = (
        f"of {next(iter(counts))!r}" if len(counts) == 1 else f"of each of {len(counts)} sources"
    )
    said = (
        f"models learn from {max_rows:,} rows {which}, drawn at random from up to "
        f"{max(counts.values()):,}; --max-rows (max_rows) sets the number, and --method "
        f"closed_form with --engine local learns from all rows"
    )
    return replace(
        problem,
        X=problem.X[kept],
        y=problem.y[kept],
        domain=problem.domain[kept],
        notes=(*problem.notes, Note("rows", said)),
    )
