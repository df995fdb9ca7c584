"""A network that has learned the tasks of a table one after another."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import Floats, Names
from vntransfer.display import counted, data_frame, one_line, rounded, short
from vntransfer.errors import ArgumentError, DataError
from vntransfer.storage.folder import Savable
from vntransfer.storage.record import SavedModel, from_record
from vntransfer.tables.columns import Column
from vntransfer.tables.encoder import TableEncoder
from vntransfer.tables.frame import read_frame
from vntransfer.tables.options import DEFAULTS, ReadOptions
from vntransfer.workflows.predictions import Answers, later_options, not_finite
from vntransfer.workflows.task_network import MethodState, TaskNetwork

if TYPE_CHECKING:
    from torch import nn


ARRAYS = ("center", "scale", "matrix", "initial")
"""Attributes that are saved as arrays."""

PLAIN = ("classes", "task", "response", "unit", "names", "method", "notes", "random_state", "added")
"""Attributes that are saved as they are."""


@dataclass(frozen=True)
class TaskRecord:
    """The plain values of a saved `ContinualModel`."""

    schema: list[Any]
    reading: ReadOptions
    sizes: tuple[int, ...]
    features: int
    classes: tuple[str, ...]
    task: str
    response: str
    unit: tuple[float, float]
    names: tuple[str, ...]
    method: str
    notes: tuple[str, ...]
    random_state: int
    added: tuple[str, ...]
    state: dict[str, Any] | None = None  # absent if the method cannot continue


@dataclass(frozen=True, eq=False)
class ContinualModel(Savable):
    """A network that has learned the tasks of a table one after another.

    Parameters
    ----------
    encoder, center, scale
        How columns become numbers, and their means and standard deviations.
    network
        The network.
    classes
        Names of the classes; empty for regression.
    task, response, unit
        Names of the columns of tasks and responses; the response's mean and standard deviation
        (regression).
    names
        The tasks in the order in which they were learned.
    matrix
        (T, T): accuracy, or root mean squared error, on held-out rows of task j after task i.
    initial
        (T,): the same before any training.
    method
        Its id.
    notes
        Sentences on how the table was read, and on rows that were ignored.
    read_options
        How the table was written.
    method_state
        What the method keeps to continue learning; None: it cannot.
    random_state
        Seed of the network.
    added
        Tasks that `update` learned; the matrix has no rows for them.
    """

    encoder: TableEncoder
    center: Floats
    scale: Floats
    network: TaskNetwork
    classes: tuple[str, ...]
    task: str
    response: str
    unit: tuple[float, float]
    names: tuple[str, ...]
    matrix: Floats
    initial: Floats
    method: str
    notes: tuple[str, ...] = ()
    read_options: ReadOptions = DEFAULTS
    method_state: MethodState | None = None
    random_state: int = 0
    added: tuple[str, ...] = ()

    gives: ClassVar = ("predicted",)
    sources: ClassVar[frozenset[str]] = frozenset()

    @property
    def roles(self) -> tuple[str, str]:
        """The columns of task and response."""
        return self.task, self.response

    @cached_property
    def net(self) -> "nn.Module":
        """The network as a module of torch."""
        return self.network.module()

    @property
    def metric(self) -> str:
        """What the matrix holds."""
        return "accuracy" if self.classes else "root mean squared error"

    def made_for(self, target: Names | None) -> str | None:
        """Return None: one network serves all tasks."""
        return None

    def scores(self) -> dict[str, float]:
        """Return RA, LA, BT and FT; for errors BT and FT have the opposite sign."""
        from vntransfer.continual.metrics import summary  # imports torch

        return summary(self.matrix, self.initial)

    def summary(self) -> str:
        """Describe how well the tasks are solved at the end, and how much was forgotten."""
        end, first = (self.scores()[name] for name in ("RA", "LA"))
        tasks, unit, lost = counted(len(self.names), "task"), self._unit(), self.forgetting()
        kept = (
            f"Forgetting: {rounded(lost)}{unit} per task."
            if lost > 0
            else "No forgetting on average: scores on earlier tasks did not get worse."
        )
        return (
            f"After all {tasks} the mean {self.metric} is {rounded(end)}{unit} "
            f"(RA, held-out rows, method {self.method}).\n"
            f"Just after each task was learned it was {rounded(first)}{unit} (LA).\n{kept}"
        )

    def _unit(self) -> str:
        return "" if self.classes else f" {short(self.response)}"

    def forgetting(self) -> float:
        """Mean increase of the error, or loss of accuracy, since each task was learned."""
        transfer = self.scores()["BT"]
        return -transfer if self.classes else transfer

    def __repr__(self) -> str:
        end, lost = self.scores()["RA"], self.forgetting()
        forgot = "no forgetting" if lost <= 0 else f"forgetting {rounded(lost)}"
        return one_line(
            f"ContinualModel of {counted(len(self.names), 'task')} ({short(self.method)}): "
            f"{self.metric} {rounded(end)}{self._unit()} in the end, {forgot}"
        )

    def _repr_html_(self) -> str:
        from vntransfer.pages.table import MOST, fragment

        columns = (self.initial, np.diag(self.matrix), self.matrix[-1])
        rows = [
            (short(name, 60), *(rounded(float(own[j])) for own in columns))
            for j, name in enumerate(self.names[:MOST])
        ]
        header = ("task", "before training", "just after learning it", "after all tasks")
        return fragment(self.summary().splitlines(), header, rows, len(self.names))

    def to_frame(self) -> Any:
        """Return ``matrix`` as a pandas data frame: a row per task learned, a column per task."""
        columns = {name: self.matrix[:, j] for j, name in enumerate(self.names)}
        return data_frame("to_frame", columns, index=list(self.names))

    def curve(self) -> Floats:
        """Mean score 0, 1, 2, ... tasks after learning, always over the same early tasks."""
        later = len(self.names) // 2
        same = len(self.names) - later  # tasks that have so many after them
        return np.array([np.diag(self.matrix, -lag)[:same].mean() for lag in range(later + 1)])

    def predict(self, data: Any, *, read_options: ReadOptions | None = None) -> NDArray[Any]:
        """Predict the rows of a table: numbers, or names of classes."""

        def needed(table: str, every: list[str]) -> list[str]:
            self.check(every, None)
            return self.encoder.needed

        options = later_options(self.read_options, read_options)
        frame = read_frame(data, columns=needed, options=options)
        return self.answers(frame.columns, frame.rows).columns["predicted"]

    def check(self, names: Sequence[str], target: Names | None) -> list[str]:
        """Compare the columns of a table with those of the training table, and return notes."""
        if target is not None:
            raise ArgumentError(
                f"target: got {target!r}, but this network serves all tasks; omit it"
            )
        notes = self.encoder.compare(names, self.roles)
        return [*notes, "the model is from `vnt learn`: predictions have no intervals"]

    def answers(
        self,
        columns: Mapping[str, Column],
        rows: Sequence[int],
        *,
        target: Names | None = None,
        level: float = 0.9,
    ) -> Answers:
        """Predict rows that were read and checked; their task need not be known."""
        encoded = self.encoder.encode(columns, rows)
        X = scaled(encoded.X, self.center, self.scale)
        output = self.network(X)
        if (bad := ~np.isfinite(output).all(1)).any():
            raise not_finite(rows[int(bad.argmax())])
        if self.classes:
            found: NDArray[Any] = np.array(self.classes, dtype=object)[output.argmax(1)]
        else:
            found = np.asarray(output[:, 0] * self.unit[1] + self.unit[0])
        return Answers({"predicted": found}, encoded.findings)

    def _saved(self) -> SavedModel:
        arrays = {f"net/{name}": own for name, own in self.network.arrays.items()}
        arrays |= {name: np.ascontiguousarray(getattr(self, name)) for name in ARRAYS}
        record = {
            "schema": self.encoder.as_json(),
            "reading": asdict(self.read_options),
            "sizes": self.network.sizes,
            "features": self.network.features,
            **{name: getattr(self, name) for name in PLAIN},
        }
        if self.method_state is not None:
            record["state"] = self.method_state.structure
            arrays |= {f"state{name}": own for name, own in self.method_state.arrays.items()}
        return SavedModel(type(self).__name__, record, arrays)

    @classmethod
    def _restored(
        cls, saved: SavedModel, parts: Mapping[str, Any], given: Mapping[str, Any]
    ) -> Self:
        record = from_record(TaskRecord, "record", {"state": None, **saved.record})
        encoder, arrays = TableEncoder.from_json(record.schema), saved.arrays
        p, tasks, outputs = len(encoder.names), len(record.names), max(1, len({*record.classes}))
        shapes = {name: arrays[name].shape for name in ARRAYS}
        if shapes != dict(zip(ARRAYS, ((p,), (p,), (tasks, tasks), (tasks,)), strict=True)):
            raise DataError(f"record: schema and names do not fit the arrays (got {shapes})")
        sizes, features, seed = record.sizes, record.features, record.random_state
        if features < 0 or seed < 0:
            raise DataError(
                f"record.features, random_state: expected numbers from 0 on, got {features}, {seed}"
            )
        own = {k.removeprefix("net/"): v for k, v in arrays.items() if k.startswith("net/")}
        network = TaskNetwork(sizes, features, seed, own)
        known = {size for value in own.values() for size in value.shape} | {p}
        fits = {*sizes, features + p if features else p} <= known and sizes[0] == p
        if not fits or network(np.zeros((1, p))).shape != (1, outputs):
            raise DataError(f"record.sizes, classes: {sizes!r:.60} do not fit the arrays")
        if record.unit[1] <= 0:
            raise DataError(f"record.unit: expected a positive scale, got {record.unit[1]:g}")
        kept = {k.removeprefix("state"): v for k, v in arrays.items() if k.startswith("state/")}
        same: dict[str, Any] = {name: getattr(record, name) for name in PLAIN}
        same |= {name: arrays[name] for name in ARRAYS}
        return cls(
            encoder=encoder,
            read_options=record.reading,
            network=network,
            method_state=None if record.state is None else MethodState(record.state, kept),
            **same,
        )


def scaled(X: Floats, center: Floats, scale: Floats) -> Floats:
    """Standardize rows; what lies beyond six standard deviations is taken for the border."""
    return np.asarray(np.clip((X - center) / scale, -6, 6))
