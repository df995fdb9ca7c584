"""Kinds of experiments: one file in `experiments` each, one line in `KINDS`.

A kind says which settings and methods a preset may name, how one cell is computed and how the
results are shown; everything else (presets, cells, store, parallel runs, statistics) is shared.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from vntransfer.checks import one_of
from vntransfer.step_times import StepTimes
from vntransfer.storage.pacing import Paced
from vntransfer_lab.errors import PresetError
from vntransfer_lab.runner.schema import Schema, Settings

if TYPE_CHECKING:
    from vntransfer_lab.runner.cells import Cell

CellSteps = Generator[tuple[int, Mapping[str, float]], None, StepTimes]
"""What a cell that trains yields, and at the end returns."""

# kind -> the module that holds it as KIND
KINDS = {
    "adaptation": "vntransfer_lab.experiments.adaptation",
    "continual": "vntransfer_lab.experiments.continual",
    "convergence": "vntransfer_lab.experiments.convergence",
    "counting": "vntransfer_lab.experiments.counting",
    "label_noise": "vntransfer_lab.experiments.label_noise",
    "robustness": "vntransfer_lab.experiments.robustness",
    "smoke": "vntransfer_lab.experiments.smoke",
}


@dataclass(frozen=True)
class CellMethod:
    """A method of an experiment: its hyper-parameters and the version of its results.

    Raise the version whenever a change of the code changes what the method computes: finished
    cells of the old version are then computed again.
    """

    options: type[Schema] = Schema
    version: int = 1


def _none(cell: "Cell") -> "Sequence[Cell]":
    return ()


def _unchanged(data: str, settings: Settings) -> Settings:
    return settings


@dataclass(frozen=True)
class Kind:
    """One kind of experiment.

    Parameters
    ----------
    name, summary
        Its name in presets and one line about it.
    version
        Raised when the computation common to all methods changes (see `CellMethod`).
    metric
        The metric of the tables, one of those that ``run`` yields.
    settings, methods
        What a preset may set.
    targets
        ``targets(data, settings)``: names of the targets (streams) of a data set.
    fingerprint
        ``fingerprint(data, settings)``: hash of the data that a cell reads; raises `DataError`
        when the data set is absent.
    run
        ``run(cell, checkpoint)`` yields ``(step, {metric: value})``, once or once per epoch; a
        generator can return the `StepTimes` of its training, which become the cost of the cell.
        ``checkpoint`` is the cell's own folder and how often a state is worth writing there; None:
        an interrupted cell starts from the beginning. What a cell finds in the folder is from an
        earlier, interrupted computation of the same cell by the same versions of vntransfer and
        torch.
    canonical
        ``canonical(data, settings)``: the settings with those that have no effect set to one
        value, so that equal cells get equal keys.
    tables
        ``"module:function"`` that gives the tables of a `vntransfer_lab.reports.report.Report`; by
        default `vntransfer_lab.reports.report.standard`. Named, not imported: workers need none.
    figures
        Likewise, yields `vntransfer_lab.reports.drawings.Drawing`; by default
        `vntransfer_lab.reports.drawings.standard`.
    higher_is_better
        Direction of the metric.
    domains
        ``domains(data, settings)``: name -> (X, y) of a data set's domains, for their pictures.
    first
        ``first(cell)``: cells that come before it and that no table shows. Each is computed once
        for all that name it, and its metric is ``given`` to them.
    retired
        Ids of methods that are no longer used, and what to use instead.
    """

    name: str
    summary: str
    version: int
    metric: str
    settings: type[Schema]
    methods: Mapping[str, CellMethod]
    targets: Callable[[str, Settings], Sequence[str]]
    fingerprint: Callable[[str, Settings], str]
    run: "Callable[[Cell, Paced | None], Iterable[tuple[int, Mapping[str, float]]]]"
    canonical: Callable[[str, Settings], Settings] = _unchanged
    tables: str = ""
    figures: str = ""
    higher_is_better: bool = False
    domains: Callable[[str, Settings], Mapping[str, tuple[Any, Any]]] | None = None
    first: "Callable[[Cell], Sequence[Cell]]" = _none
    retired: Mapping[str, str] = field(default_factory=dict)


def load_kind(name: str) -> Kind:
    """Import a kind of experiment by its name in `KINDS`, or by the dotted name of your own module.

    Examples
    --------
    >>> load_kind("smoke").metric
    'mae'
    >>> load_kind("my.experiment")
    Traceback (most recent call last):
    vntransfer_lab.errors.PresetError: experiment: cannot import 'my.experiment' (...)
    """
    if "." not in name or name.startswith("."):
        one_of("experiment", name, KINDS, error=PresetError)
    try:
        kind = import_module(KINDS.get(name, name)).KIND
    except (ImportError, AttributeError, ValueError) as error:
        raise PresetError(f"experiment: cannot import {name!r} ({error})") from error
    if not isinstance(kind, Kind):
        raise PresetError(f"experiment: {name}.KIND is {kind!r}; expected a Kind")
    return kind
