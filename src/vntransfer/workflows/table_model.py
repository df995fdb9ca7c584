"""A model of a table: how columns become numbers, an estimator per target, what to expect."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import Names, one_of
from vntransfer.checks import names as check_names
from vntransfer.display import listed, one_line, plus_minus, rounded, short
from vntransfer.errors import DataError, DataWarning, PredictionError
from vntransfer.storage.folder import Savable
from vntransfer.storage.record import SavedModel, from_record
from vntransfer.tables.columns import Column
from vntransfer.tables.encoder import TableEncoder
from vntransfer.tables.frame import read_frame
from vntransfer.tables.notes import Note, grouped, warning_line
from vntransfer.tables.options import DEFAULTS, ReadOptions
from vntransfer.tables.problem import LABELED
from vntransfer.workflows.prediction_intervals import Calibration, check_level
from vntransfer.workflows.predictions import Answers, later_options, not_finite
from vntransfer.workflows.predictions import Predictions as Predictions
from vntransfer.workflows.target_outcome import TargetOutcome
from vntransfer.workflows.target_sketch import TargetSketch

SHOWN = 10
"""Targets that a summary names."""


@dataclass(frozen=True)
class TableRecord:
    """The plain values of a saved `TableModel`."""

    names: tuple[str, str]
    schema: list[Any]
    outcomes: tuple[TargetOutcome, ...]
    provenance: dict[str, Any]
    notes: tuple[Note, ...]
    reading: ReadOptions


@dataclass(frozen=True, eq=False)
class TableModel(Savable):
    """Result of `adapt`; it predicts tables with the columns of the training table.

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
    details
        Notes on the columns and rows of the training table, and on how it was read.
    read_options
        How the training table was written.
    sketches
        Target -> rows that the page draws; absent where rows were streamed.
    """

    encoder: TableEncoder
    names: tuple[str, str]
    estimators: Mapping[str, Any]
    outcomes: Mapping[str, TargetOutcome]
    calibrations: Mapping[str, Calibration]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    details: tuple[Note, ...] = ()
    read_options: ReadOptions = DEFAULTS
    sketches: Mapping[str, TargetSketch] = field(default_factory=dict)

    gives: ClassVar = ("predicted", "low", "high")
    classes: ClassVar[tuple[str, ...]] = ()

    @property
    def roles(self) -> tuple[str, str]:
        """The columns of place and response."""
        return self.names

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes as sentences."""
        return tuple(note.text for note in self.details)

    @property
    def targets(self) -> list[str]:
        """Names of the targets."""
        return list(self.estimators)

    @property
    def sources(self) -> frozenset[str]:
        """Places whose responses were learned."""
        used = (name for own in self.outcomes.values() for name in own.source_weights)
        return frozenset(name.removesuffix(LABELED) for name in used)

    def made_for(self, target: Names | None) -> str | None:
        """Return the target of all rows; None if the column of places decides."""
        asked = self._asked(target)
        return asked[0] if len(asked) == 1 else None

    def _asked(self, target: Names | None) -> list[str]:
        """Name the targets that rows can be of."""
        return self.targets if target is None else check_names("target", target)

    def predict(
        self,
        data: Any,
        *,
        target: Names | None = None,
        level: float = 0.9,
        read_options: ReadOptions | None = None,
    ) -> Predictions:
        """Predict the rows of a table.

        Parameters
        ----------
        data
            A file, or a table in memory; see `read_frame`.
        target
            Target that all rows belong to. If there are several, the column of places assigns each
            row to one of them. None: all targets of the model.
        level
            Level of the intervals.
        read_options
            Format of the file; None: that of the training table, except for the delimiter, which
            is detected.
        """

        def needed(table: str, every: list[str]) -> list[str]:
            self.check(every, target)
            return [name for name in every if name in {*self.encoder.needed, *self.roles}]

        options = later_options(self.read_options, read_options)
        frame = read_frame(data, columns=needed, options=options)
        if target is None and self.names[0] in frame.columns:
            self._warn_elsewhere(frame.columns[self.names[0]].texts())
        found = self.answers(frame.columns, frame.rows, target=target, level=level)
        value, low, high = found.columns.values()
        return Predictions(value, low, high, found.findings)

    def _warn_elsewhere(self, places: NDArray[Any]) -> None:
        """Warn about rows of other places than the only target of the model."""
        place = self.made_for(None)
        other = [] if place is None else places[places != place]
        if len(other):
            warnings.warn(
                f"{len(other)} of {len(places)} rows are of {listed(dict.fromkeys(other), 3)} and "
                f"not of {place!r}, the target of the model; they are predicted anyway. Fit a "
                f"model with target= for those places, or pass target={place!r} to confirm",
                DataWarning,
                stacklevel=3,
            )

    def check(self, names: Sequence[str], target: Names | None) -> list[str]:
        """Compare the columns of a table with those of the training table, and return notes.

        Missing columns, and rows whose target is unknown, raise an error.
        """
        notes = self.encoder.compare(names, self.names)
        asked = self._asked(target)
        for name in asked:
            one_of("target", name, self.targets)
        if len(asked) > 1 and self.names[0] not in names:
            whose = "the model has" if target is None else "target: names"
            raise DataError(
                f"{whose} {len(asked)} targets, {asked}, and the table no "
                f"column {self.names[0]!r}; say which one with --target (target=)"
            )
        return notes

    def answers(
        self,
        columns: Mapping[str, Column],
        rows: Sequence[int],
        *,
        target: Names | None,
        level: float,
    ) -> Answers:
        """Predict rows that were read and checked, as columns of a file."""
        check_level(level)
        X, findings = self.encoder.encode(columns, rows)
        made = np.full((3, len(X)), np.nan)
        for name, own in self._split(columns, rows, target):
            try:
                value = np.asarray(self.estimators[name].predict(X[own]), dtype=np.float64)
            except PredictionError as error:
                raise not_finite(rows[own[error.row]]) from error
            scale, known = self.outcomes[name].transform, name in self.calibrations
            half = self.calibrations[name].half_width(level) if known else np.nan
            made[0, own] = scale.undo(value)
            made[1:, own] = scale.shifted(value, -half), scale.shifted(value, half)
        return Answers(dict(zip(self.gives, made, strict=True)), findings)

    def _split(
        self, columns: Mapping[str, Column], rows: Sequence[int], target: Names | None
    ) -> Iterator[tuple[str, NDArray[Any]]]:
        """Rows of each target."""
        if (only := self.made_for(target)) is not None:
            yield only, np.arange(len(rows))
            return
        places, asked = columns[self.names[0]].texts(), self._asked(target)
        if (other := ~np.isin(places, asked)).any():
            i = int(other.argmax())
            whose = "model's targets" if target is None else "given targets"
            raise DataError(
                f"row {rows[i]}, column {self.names[0]!r}: {places[i][:40]!r} is none of the "
                f"{whose} {asked}; say which one to use with --target (target=)"
            )
        for name in asked:
            if len(own := np.flatnonzero(places == name)):
                yield name, own

    def to_page(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write a page: weights of the sources, expected error, candidates, columns.

        An existing file is replaced if vntransfer wrote it, or with ``overwrite``.
        """
        from vntransfer.workflows.adapt_page import make_page

        return make_page(self).write(path, overwrite=overwrite)

    def _saved(self) -> SavedModel:
        arrays: dict[str, NDArray[Any]] = {}
        for i, name in enumerate(self.targets):
            if (own := self.calibrations.get(name)) is not None:
                arrays |= {f"errors/{i}": own.errors, f"weights/{i}": own.weights}
            if name in self.sketches:
                arrays |= self.sketches[name].arrays(f"sketch/{i}")
        record = TableRecord(
            self.names,
            self.encoder.as_json(),
            tuple(self.outcomes[name] for name in self.targets),
            dict(self.provenance),
            self.details,
            self.read_options,
        )
        parts = {name: model._saved() for name, model in self.estimators.items()}
        return SavedModel(type(self).__name__, asdict(record), arrays, parts=parts)

    @classmethod
    def _restored(
        cls, saved: SavedModel, parts: Mapping[str, Any], given: Mapping[str, Any]
    ) -> Self:
        record, arrays = from_record(TableRecord, "record", saved.record), saved.arrays
        encoder = TableEncoder.from_json(record.schema)
        for name, part in parts.items():
            if part.n_features_in_ != len(encoder.names):
                raise DataError(
                    f"record.schema: {len(encoder.names)} columns of numbers, and the estimator of "
                    f"{name!r} takes {part.n_features_in_}"
                )
        outcomes = {own.target: own for own in record.outcomes}
        if not parts or [own.target for own in record.outcomes] != list(parts):
            raise DataError(f"record.outcomes: expected those of {list(parts)!r:.80}")
        calibrations, sketches = {}, {}
        for i, (name, own) in enumerate(outcomes.items()):
            if f"errors/{i}" in arrays:
                calibrations[name] = Calibration(arrays[f"errors/{i}"], arrays[f"weights/{i}"])
            elif own.errors:
                raise DataError(f"arrays: errors/{i}, of held-out sources, are missing")
            if (sketch := TargetSketch.from_arrays(f"sketch/{i}", arrays)) is not None:
                sketches[name] = sketch
        return cls(
            encoder,
            record.names,
            parts,
            outcomes,
            calibrations,
            record.provenance,
            record.notes,
            record.reading,
            sketches,
        )

    def summary(self) -> str:
        """Describe what to expect: in full for a single target, or in one line per target."""
        first, *more = self.outcomes.values()
        if more:
            lines = []
            for own in [first, *more][:SHOWN]:
                answer = own.answer(self.names[1])
                lead = f"{short(own.target, 60)}: " if len(answer) > 1 else ""
                lines.append(lead + " ".join(answer))
            if left := len(self.outcomes) - len(lines):
                lines.append(f"{left} more targets: see outcomes.")
            return "\n".join([*lines, *self._warnings()])
        said = first.summary(unit=self.names[1], reach=self.reach(first.target))
        return "\n".join([said, *self._warnings()])

    def _warnings(self) -> list[str]:
        """Lines on columns that were dropped, or may be leaks, and on repeated rows."""
        return [
            f"Warning: {short(warning_line(name, own), 400)}."
            for name, own in grouped(note for note in self.details if note.warning).items()
        ]

    def reach(self, target: str, level: float = 0.9) -> str:
        """Return the half width of an interval: "± 38", "a factor of 1.4", or "" if unknown."""
        if target not in self.calibrations:
            return ""
        half = self.calibrations[target].half_width(level)
        return self.outcomes[target].transform.reach(half)

    def __repr__(self) -> str:
        unit = short(self.names[1])
        expected = {name: own.expected()[0] for name, own in self.outcomes.items()}
        known = {name: mean for name, mean in expected.items() if np.isfinite(mean)}
        if len(expected) == 1:
            said = next(iter(self.outcomes.values())).expected_text(unit)
        elif known:
            low, high = min(known.values()), max(known.values())
            said = f"expected error {rounded(low)} to {rounded(high)} {unit}"
        else:
            said = "expected error unknown"
        return one_line(f"TableModel for {listed(expected, 2)}: {said}")

    def _repr_html_(self) -> str:
        from vntransfer.pages.table import fragment

        rows = []
        for name, own in self.outcomes.items():
            error, reach = plus_minus(*own.expected()), self.reach(name) or "none"
            rows.append((short(name, 60), f"{own.rows:,}", own.method, error, reach))
        header = ("target", "rows", "method", "mean absolute error", "interval of 90 %")
        lead = f"Predicts {short(self.names[1], 60)} from {len(self.encoder.needed)} columns."
        return fragment([lead], header, rows, len(rows))
