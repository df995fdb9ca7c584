"""A model of a table: how columns become numbers, an estimator per target, what to expect."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vntransfer.errors import ArgumentError, DataError
from vntransfer.tables.encoder import Findings, TableEncoder
from vntransfer.tables.files import Column
from vntransfer.tables.frame import read_frame
from vntransfer.tables.problem import LABELLED
from vntransfer.workflows.prediction_intervals import Calibration, check_level
from vntransfer.workflows.target_fit import TargetOutcome

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predicted responses (n,) with the ends of their intervals, NaN where there are none."""

    value: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class TableModel:
    """What `adapt` gives: it predicts tables as they are, columns and all.

    Parameters
    ----------
    encoder
        How columns become numbers.
    names
        The columns of place and response.
    estimators
        Target -> fitted estimator.
    outcomes
        Target -> what to expect.
    calibrations
        Target -> errors on held-out sources; absent where none was held out.
    provenance
        Files, versions, seed: plain values.
    notes
        Sentences on the rows of the training table.
    """

    encoder: TableEncoder
    names: tuple[str, str]
    estimators: Mapping[str, Any]
    outcomes: Mapping[str, TargetOutcome]
    calibrations: Mapping[str, Calibration]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    gives: ClassVar = ("predicted", "low", "high")
    classes: ClassVar[tuple[str, ...]] = ()

    @property
    def roles(self) -> tuple[str, str]:
        """The columns of place and response."""
        return self.names

    @property
    def targets(self) -> list[str]:
        """Names of the targets."""
        return list(self.estimators)

    @property
    def sources(self) -> frozenset[str]:
        """Places whose responses were learnt."""
        used = (name for own in self.outcomes.values() for name in own.source_weights)
        return frozenset(name.removesuffix(LABELLED) for name in used)

    def made_for(self, target: str | None) -> str | None:
        """Name the place that all rows are predicted for; None: what each row says."""
        return target or (self.targets[0] if len(self.estimators) == 1 else None)

    def predict(
        self,
        data: Any,
        *,
        target: str | None = None,
        level: float = 0.9,
        delimiter: str = ",",
        findings: Findings | None = None,
    ) -> Predictions:
        """Predict the rows of a table.

        Parameters
        ----------
        data, delimiter
            A file, or a table in memory; see `read_frame`.
        target
            Which one the rows are of; None: the only one, or what the column of places says.
        level
            Of the intervals.
        findings
            Takes note of what was unusual.
        """

        def needed(table: str, every: list[str]) -> list[str]:
            self.check(every, target)
            return [name for name in every if name in {*self.encoder.needed, *self.roles}]

        frame = read_frame(data, columns=needed, delimiter=delimiter)
        return self.predict_columns(
            frame.columns, frame.rows, target=target, level=level, findings=findings
        )

    def check(self, names: Sequence[str], target: str | None) -> list[str]:
        """Compare the columns of a table with those of the training table, and give notes.

        What is missing, or a target that cannot be told, is an error.
        """
        notes = self.encoder.compare(names, self.names)
        if target is not None and target not in self.estimators:
            raise ArgumentError(f"target: expected one of {self.targets}, got {target!r}")
        if target is None and len(self.estimators) > 1 and self.names[0] not in names:
            raise DataError(
                f"the model has {len(self.estimators)} targets, {self.targets}, and the table no "
                f"column {self.names[0]!r}; say which one with --target (target=)"
            )
        return notes

    def answers(
        self,
        columns: Mapping[str, Column],
        rows: Sequence[int],
        *,
        target: str | None,
        level: float,
        findings: Findings,
    ) -> dict[str, NDArray[Any]]:
        """Predict rows that were read and checked, as columns of a file."""
        found = self.predict_columns(columns, rows, target=target, level=level, findings=findings)
        return dict(zip(self.gives, (found.value, found.low, found.high), strict=True))

    def predict_columns(
        self,
        columns: Mapping[str, Column],
        rows: Sequence[int],
        *,
        target: str | None = None,
        level: float = 0.9,
        findings: Findings | None = None,
    ) -> Predictions:
        """Predict rows that were read and checked."""
        check_level(level)
        X = self.encoder.transform(columns, rows, findings)
        out = Predictions(*(np.full(len(X), np.nan) for _ in range(3)))
        for name, own in self._split(columns, rows, target):
            value = np.asarray(self.estimators[name].predict(X[own]), dtype=np.float64)
            half = np.nan
            if name in self.calibrations:
                half = self.calibrations[name].half_width(level)
            out.value[own], out.low[own], out.high[own] = value, value - half, value + half
        return out

    def _split(
        self, columns: Mapping[str, Column], rows: Sequence[int], target: str | None
    ) -> Iterator[tuple[str, NDArray[Any]]]:
        """Rows of each target."""
        if (only := self.made_for(target)) is not None:
            yield only, np.arange(len(rows))
            return
        places = columns[self.names[0]].texts()
        if (other := ~np.isin(places, self.targets)).any():
            i = int(other.argmax())
            raise DataError(
                f"row {rows[i]}, column {self.names[0]!r}: {places[i][:40]!r} is none of the "
                f"model's targets {self.targets}; say which one to use with --target (target=)"
            )
        for name in self.targets:
            if len(own := np.flatnonzero(places == name)):
                yield name, own

    def to_page(self, path: str | Path) -> Path:
        """Write a page: weights of the sources, expected error, candidates, columns."""
        from vntransfer.workflows.adapt_page import write_page

        return write_page(self, path)

    def save(self, folder: str | Path) -> None:
        """Write the model into a folder, without pickle; `load_table_model` reads it."""
        from vntransfer.workflows.table_storage import save

        save(self, folder)
