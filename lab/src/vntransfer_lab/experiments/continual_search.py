"""How continual experiments choose hyper-parameters: candidates, each an ordinary cell.

The streams of the search have other seeds than any table, hence other permutations or angles and
other rows, and test rows held out of the training part: what is chosen depends on no seed that is
reported. The plan of a run has every candidate computed once, for all cells that choose from it.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
from pydantic import Field

from vntransfer_lab.errors import PresetError
from vntransfer_lab.experiments.continual_methods import SHARED, VARIANTS
from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.schema import Positive, Schema, Settings, resolve

SEARCH_SEED = 1000
"""First seed of the streams on which hyper-parameters are chosen; those of tables start at 0."""


class SearchSettings(Schema):
    """Size and number of the streams on which hyper-parameters are chosen."""

    search_tasks: int = Field(5, ge=2)
    search_train: int = Field(300, ge=2)
    search_test: int = Field(1000, ge=2)
    search_streams: Positive = 1


_DEFAULTS = resolve(SearchSettings, {}, "")


def candidates(name: str, hyper: Settings, settings: Settings) -> list[Settings]:
    """All combinations of what a preset lists for a method, in the order of the lists.

    Examples
    --------
    >>> settings = {"lr": 0.0, "strength": 0.0}
    >>> hyper = {"lr": [0.01, 0.03], "strength": [1.0], "batch_size": 0, "epochs": 0}
    >>> [found["lr"] for found in candidates("l2", hyper, settings)]
    [0.01, 0.03]
    """
    lists = {key: hyper[key] for key in ("lr", *VARIANTS[name].tuned)}
    for key in ("lr", "strength"):
        if settings[key] and key in lists:
            lists[key] = [settings[key]]
    fixed = {key: hyper[key] for key in SHARED if key not in lists}
    return [
        {**fixed, **dict(zip(lists, values, strict=True))} for values in product(*lists.values())
    ]


def choose(cell: Cell, learn: Callable[[Cell], float]) -> Settings:
    """Find the hyper-parameters of a cell, by its rule: the best mean RA over the search's streams.

    Parameters
    ----------
    cell
        The cell.
    learn
        Computes RA of a cell of the search that is not among what ``cell`` was given.
    """
    own = candidates(cell.method, cell.hyper, cell.settings)
    name, found = _listed(cell)
    chosen = found[0]
    if len(found) > 1:
        if cell.selection == "fixed":
            raise PresetError(
                f"methods.{cell.method}: {len(found)} candidates, but selection 'fixed' chooses "
                f"none; use 'short_stream' or 'full_stream', or one value each"
            )
        known, best = dict(cell.given), -np.inf
        for hyper in found:
            trials = _trials(cell, name, hyper)
            scores = [known[t.key] if t.key in known else learn(t) for t in trials]
            if np.isfinite(scores).all() and np.mean(scores) > best:
                best, chosen = float(np.mean(scores)), hyper
    return chosen if name == cell.method else {**own[0], "lr": chosen["lr"]}


def first(cell: Cell) -> list[Cell]:
    """Give the cells of the search that a cell chooses from; none if it has no choice."""
    name, found = _listed(cell)
    if len(found) == 1 or cell.selection == "fixed":
        return []
    return [trial for hyper in found for trial in _trials(cell, name, hyper)]


def _listed(cell: Cell) -> tuple[str, list[Settings]]:
    """Which method is searched for a cell, and its candidates."""
    if cell.method == "rsp_untuned" and cell.selection != "fixed":
        # "without any further tuning": EWC's learning rate, a strength of its own below 10
        listed = {**cell.hyper, "strength": cell.hyper["ewc_strength"]}
        return "ewc", candidates("ewc", listed, cell.settings)
    return cell.method, candidates(cell.method, cell.hyper, cell.settings)


def _trials(cell: Cell, name: str, hyper: Settings) -> list[Cell]:
    """One candidate on every stream of the search; the same cells whoever asks for them."""
    own = cell.settings
    settings = {**own, **_DEFAULTS, "lr": 0.0, "strength": 0.0}
    settings |= {"n_test": own["search_test"], "held_out": True}
    if cell.selection == "short_stream":
        settings |= {"n_tasks": own["search_tasks"], "n_train": own["search_train"]}
    trial = replace(
        cell,
        version=f"{cell.version.partition('.')[0]}.{VARIANTS[name].version}",
        method=name,
        hyper={key: v if key in ("batch_size", "epochs") else [v] for key, v in hyper.items()},
        selection="fixed",
        settings=settings,
        given=(),
    )
    return [replace(trial, seed=SEARCH_SEED + i) for i in range(own["search_streams"])]
