"""Kinds of experiments: one file in `experiments` each, one line in `KINDS`.

A kind says which settings and methods a preset may name, how one cell is computed and how the
results are shown; everything else (presets, cells, store, parallel runs, statistics) is shared.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
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


class TimedRun:
    """What a generator yields; afterwards ``step_times`` is what it returned."""

    def __init__(self, steps: Iterable[Any]) -> None:
        self._steps: Any = steps
        self.step_times = StepTimes()

    def __iter__(self) -> Iterator[Any]:
        self.step_times = (yield from self._steps) or StepTimes()


# each is the KIND of the module of `vntransfer_lab.experiments` with its name
KINDS = (
    *("adaptation", "continual", "convergence", "counting"),
    *("label_noise", "robustness", "smoke"),
)


@dataclass(frozen=True)
class CellMethod:
    """A method of an experiment: its hyper-parameters and the version of its results.

    Raise the version whenever a change of the code changes what the method computes: finished
    cells of the old version are then computed again. An option that is added later goes into
    ``late`` with the value that earlier cells had: a cell with that value is named without the
    option, so that it keeps its key, and is computed with that value.
    """

    options: type[Schema] = Schema
    version: int = 1
    late: Settings = field(default_factory=dict)

    def named(self, hyper: Settings) -> Settings:
        """Return the hyper-parameters that name a cell."""
        return {k: v for k, v in hyper.items() if k not in self.late or v != self.late[k]}


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of experiment; docs/own-experiments.md shows how to write one."""

    name: str
    summary: str
    version: int = 1  # raised when the computation common to all methods changes (see `CellMethod`)
    metric: str  # of the tables, one of those that ``run`` yields
    settings: type[Schema]
    methods: Mapping[str, CellMethod]
    # (data, settings) -> names, by default that of the data set, such as a stream
    targets: Callable[[str, Settings], Sequence[str]] = lambda data, settings: [data]
    # (data, settings) -> hash of what a cell reads; `DataError` when the data set is absent
    fingerprint: Callable[[str, Settings], str]
    # run(cell, checkpoint) yields (step, {metric: value}), once or once per epoch; a generator can
    # return the `StepTimes` of its training, which become the cost of the cell. ``checkpoint`` is
    # the cell's own folder and how often a state is worth writing there (None: an interrupted cell
    # starts from the beginning); what it holds is from an earlier computation of the same cell by
    # the same versions of vntransfer and torch.
    run: "Callable[[Cell, Paced | None], Iterable[tuple[int, Mapping[str, float]]]]"
    # (data, settings) -> settings, those without effect at one value: equal cells get equal keys
    canonical: Callable[[str, Settings], Settings] = lambda data, settings: settings
    # "module:function" that gives the tables of a `vntransfer_lab.reports.report.Report`, or yields
    # `vntransfer_lab.reports.drawings.Drawing`. Named, not imported: workers need none.
    tables: str = ""
    figures: str = ""
    higher_is_better: bool = False
    # cells that come before a cell and that no table shows: each is computed once for all that
    # name it, and its metric is ``given`` to them
    first: "Callable[[Cell], Sequence[Cell]]" = lambda cell: ()
    # method -> its name on pages, where `vntransfer_lab.reports.names` has none or another one
    words: Mapping[str, str] = field(default_factory=dict)
    retired: Mapping[str, str] = field(default_factory=dict)  # old method -> what to use instead

    def version_of(self, method: str) -> str:
        """Version of the cells of a method today; "none" if it is gone."""
        own = self.methods.get(method)
        return "none" if own is None else f"{self.version}.{own.version}"


def load_kind(name: str) -> Kind:
    """Import a kind of experiment by its name in `KINDS`, or by the dotted name of your module."""
    if "." not in name or name.startswith("."):
        one_of("experiment", name, KINDS, error=PresetError)
    try:
        module = f"vntransfer_lab.experiments.{name}" if name in KINDS else name
        kind = import_module(module).KIND
    except (ImportError, AttributeError, ValueError) as error:
        raise PresetError(f"experiment: cannot import {name!r} ({error})") from error
    if not isinstance(kind, Kind):
        raise PresetError(f"experiment: {name}.KIND is {kind!r}; expected a Kind")
    return kind
