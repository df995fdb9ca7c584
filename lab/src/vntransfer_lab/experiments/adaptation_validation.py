"""Errors of the experiment ``adaptation`` that need no labels of the target.

For the rules ``source_validation``, ``weighted_validation`` and ``leave_one_source_out`` a cell
first fits models that did not see some labeled rows of the sources, records the error there (in
standard deviations of the sources' responses, the mean over sources), and then fits on all rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vntransfer_lab.errors import PresetError
from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.selection import RULES

if TYPE_CHECKING:
    from vntransfer_lab.experiments.adaptation import CellRows

_Array = NDArray[np.float64]

HELD_OUT = 0.2
"""Share of each source's rows on which candidates are compared."""


def criterion(
    cell: Cell, rows: "CellRows", predict: "Callable[[CellRows], _Array]"
) -> dict[str, float]:
    """Give the criterion of a cell's rule by its name; nothing if the rule has none.

    Parameters
    ----------
    cell
        The cell.
    rows
        Its rows; the target's responses are not used.
    predict
        Fits the cell's method to a problem and predicts its test rows.
    """
    rule = cell.selection
    if not RULES[rule][0]:
        return {}
    if cell.method == "oracle":
        raise PresetError(
            f"methods.oracle: learns from the target's labels, so {rule!r} has nothing to compare; "
            "leave it out, or use selection = 'last_epoch'"
        )
    unit = float(rows.labels.std())
    if rule == "leave_one_source_out":
        held_out = _virtual(rows)
        errors = [float(np.abs(predict(own) - own.y_test).mean()) / unit for own in held_out]
        return {rule: float(np.mean(errors))}
    held = _split(rows, cell.seed)
    gap = np.abs(predict(held) - held.y_test)
    if rule == "weighted_validation":
        error = float(np.average(gap, weights=_ratios(held)))
    else:
        sizes = np.cumsum([_held(y) for _, y in rows.sources.values()])[:-1]
        error = float(np.mean([part.mean() for part in np.split(gap, sizes)]))
    return {rule: error / unit}


def _held(y: _Array) -> int:
    return max(1, round(HELD_OUT * len(y)))


def _virtual(rows: "CellRows") -> Iterator["CellRows"]:
    """Each source as the target once, the true target left out."""
    if len(rows.sources) < 2:
        raise PresetError("selection: leave_one_source_out needs at least two sources")
    for name, (x, y) in rows.sources.items():
        others = {other: own for other, own in rows.sources.items() if other != name}
        yield replace(rows, sources=others, x=x, y=np.full(len(y), np.nan), x_test=x, y_test=y)


def _split(rows: "CellRows", seed: int) -> "CellRows":
    """Make some rows of every source test rows, one source after another."""
    kept, x_test, y_test = {}, [], []
    for place, (name, (x, y)) in enumerate(rows.sources.items()):
        order = np.random.default_rng((seed, place)).permutation(len(y))
        test, used = np.split(order, [_held(y)])
        kept[name] = x[used], y[used]
        x_test.append(x[test])
        y_test.append(y[test])
    return replace(rows, sources=kept, x_test=_below(x_test), y_test=np.concatenate(y_test))


def _below(parts: list[Any]) -> Any:
    from scipy.sparse import issparse, vstack

    return vstack(parts, format="csr") if issparse(parts[0]) else np.concatenate(parts)


def _ratios(held: "CellRows") -> _Array:
    """Density ratios target/sources of the test rows."""
    from vntransfer.adaptation import ImportanceWeightedScorer
    from vntransfer.domains import group

    n, m = held.x_test.shape[0], held.x.shape[0]
    groups = group(np.repeat([0, -1], [n, m]), n + m)
    return ImportanceWeightedScorer().ratios(_below([held.x_test, held.x]), groups)
