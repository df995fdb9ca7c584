"""Learn in closed form from files larger than memory: each row is read once, for its moments."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.adaptation.closed_form import ClosedFormRegressor
from vntransfer.checks import Floats
from vntransfer.errors import ArgumentError
from vntransfer.moments import Moments
from vntransfer.progress import Progress, reporter
from vntransfer.random_features import RandomFeatures
from vntransfer.tables import Frame, ReadOptions, TableColumns, TableEncoder
from vntransfer.tables.columns import Column
from vntransfer.tables.frame import joined, read_fixed, row_names
from vntransfer.tables.notes import Note
from vntransfer.tables.options import checked
from vntransfer.tables.problem import (
    LABELED,
    check_targets,
    constant,
    need_labels,
    none_left,
    read_places,
    read_responses,
)
from vntransfer.tables.row_notes import repeat_notes, response_notes
from vntransfer.tables.usable import Labeled, fit_usable
from vntransfer.workflows.adapt_settings import STREAMED, AdaptSettings
from vntransfer.workflows.evidence import CONSTANT, Evidence
from vntransfer.workflows.moment_stream import MomentStream, PlaceMoments
from vntransfer.workflows.prediction_intervals import KEPT, Calibration
from vntransfer.workflows.streaming import ReadingPlan, look, read_files
from vntransfer.workflows.table_model import TableModel
from vntransfer.workflows.target_outcome import TargetOutcome

AHEAD = 2000
"""Rows of targets by which columns are checked for being usable there."""


def adapt_streamed(
    data: Any,
    settings: AdaptSettings,
    *,
    options: ReadOptions | None = None,
    progress: Progress | None = None,
) -> TableModel:
    """Fit a table model of method "closed_form" to files of any size.

    How columns become numbers is decided by rows that `read_fixed` chooses; everything else by all
    rows. So the order of rows matters, but not where they are cut into files, nor who reads them.
    """
    if settings.transform == "log":
        raise ArgumentError(
            "transform: 'log' is not available for files that are read in blocks; omit it, "
            "or add a column of logarithms to the files"
        )
    columns, targets, random_state = settings.columns, settings.targets, settings.random_state
    files, names = columns.find(data, options)
    unread = () if settings.use_target_labels else tuple(targets)
    wanted = [*names, columns.domain, columns.response]

    def labeled(frame: Frame) -> NDArray[np.bool_]:
        aimed = np.isin(read_places(frame, columns.domain), unread)
        y = read_responses(frame, columns.response, aimed)
        return ~np.isnan(y) & ~aimed

    frames, complete = read_fixed(files, wanted, checked(options), look(len(names)), labeled)
    need_labels(str(files[0]), columns.response, sum(map(len, frames)))
    seen = joined(frames)
    y, places = read_responses(seen, columns.response), read_places(seen, columns.domain)
    usable = fit_usable(
        Labeled(
            {name: seen.columns[name] for name in names},
            y,
            places,
            row_names(frames),
            "labeled rows" + ("" if complete else " of the sample"),
        ),
        _targets_ahead(files, columns, names, seen.options, targets, labeled),
        wanted=columns.features or (),
        category=columns.category,
    )
    encoder, X = usable.encoder, usable.X
    features = RandomFeatures.standardizing(X, ClosedFormRegressor.n_features, random_state)
    plan = ReadingPlan(
        columns.domain,
        columns.response,
        encoder,
        seen.options,
        random_state,
        MomentStream(features, tuple(targets), settings.use_target_labels),
        unread,
    )
    made = read_files(
        plan,
        files,
        engine=settings.engine,
        scheduler=settings.scheduler,
        report=reporter(progress),
    )
    made.flush()
    _check(made, str(files[0]), columns.response)
    looked = "all labeled rows" if complete else f"{len(seen):,} labeled rows"
    notes = [
        *(Note("reading", text) for text in dict.fromkeys(seen.notes)),
        *_notes(made, files, looked),
        *usable.notes,
        *response_notes(columns.response, y, places),
        *repeat_notes(X, y, places, X[:0]),
    ]
    return _model(made, encoder, columns, notes, files, seen.options)


def _targets_ahead(
    files: Sequence[Path],
    columns: TableColumns,
    names: Sequence[str],
    options: ReadOptions,
    targets: Sequence[str],
    labeled: Callable[[Frame], NDArray[np.bool_]],
) -> dict[str, dict[str, Column]]:
    """Cells of some rows of the targets, by which columns are checked for being usable there."""

    def aimed(frame: Frame) -> NDArray[np.bool_]:
        own: NDArray[np.bool_] = np.isin(read_places(frame, columns.domain), targets)
        return own & ~labeled(frame) if own.any() else own

    wanted = [*names, columns.domain, columns.response]
    frames, _ = read_fixed(files, wanted, options, AHEAD, aimed)
    if not any(map(len, frames)):
        return {}
    seen = joined(frames)
    places = read_places(seen, columns.domain)
    return {
        name: {column: seen.columns[column].take(places == name) for column in names}
        for name in targets
        if (places == name).any()
    }


def _check(made: MomentStream, table: str, response: str) -> None:
    """Raise unless there is something to learn and something to predict."""
    labeled = [name for name in made.aimed if name + LABELED in made.domains]
    places = {*made.domains, *made.unlabeled, *made.targets}
    check_targets(table, [*sorted(places), *labeled], made.aimed)
    for name in labeled:
        if name not in made.targets:
            raise none_left(name)
    every = [own.moments for own in made.domains.values() if own.moments is not None]
    means = {own.mean[-1].item() for own in every}
    if len(means) == 1 and not any(own.scatter[-1, -1] for own in every):
        raise constant(table, response, means.pop())


def _notes(made: MomentStream, files: Sequence[Path], looked: str) -> list[Note]:
    rows = sum(own.rows for own in (*made.domains.values(), *made.targets.values()))
    many = f"{len(files)} files" if len(files) > 1 else files[0].name
    notes = [
        Note(
            "reading",
            f"rows were streamed: {rows:,} rows of {many} were read in blocks and not held in "
            f"memory; column types, categories and scales were taken from {looked}",
        ),
        Note(
            "rows",
            f"errors on held-out sources are measured on at most {KEPT:,} different rows of each "
            f"source",
        ),
    ]
    if made.not_read:
        said = (
            f"{made.not_read:,} rows of targets have a response, which is not read; "
            f"--use-target-labels (use_target_labels=True) adds them as a source"
        )
        notes.append(Note("rows", said))
    for name, n in made.unlabeled.items():
        notes.append(Note("rows", f"{n:,} rows of {name!r} have no response: ignored"))
    return notes + [Note("unusual", f"{n:,} x {note}") for note, n in made.notes.items()]


def _model(
    made: MomentStream,
    encoder: TableEncoder,
    columns: TableColumns,
    notes: Sequence[Note],
    files: Sequence[Path],
    options: ReadOptions,
) -> TableModel:
    sources = made.domains
    moments: dict[int | str, Moments] = {
        name: own.moments for name, own in sources.items() if own.moments is not None
    }
    models = {
        name: ClosedFormRegressor.from_moments(made.features, moments, made.targets[name].moments)
        for name in made.aimed
    }
    counts = {name: own.sample.counts for name, own in sources.items()}
    rows = {name: own.rows for name, own in sources.items()}
    gaps = _held_out(models[made.aimed[0]], sources)  # the same for every target
    errors = {}
    if gaps:
        own_errors = {
            name: float(np.average(np.abs(gap), weights=counts[name])) for name, gap in gaps.items()
        }
        errors = {STREAMED: own_errors, CONSTANT: _constant_errors(sources)}
    outcomes, calibrations = {}, {}
    for name, model in models.items():
        weights = {str(source): own for source, own in model.source_weights_.items()}
        numbers = Evidence(STREAMED, errors, weights, source_rows=rows)
        outcomes[name] = TargetOutcome(name, made.targets[name].rows, "", numbers)
        if gaps:
            calibrations[name] = Calibration.from_errors(gaps, weights, counts)
    provenance = {
        "method": STREAMED,
        "random_state": made.features.seed,
        "files": {},
        "streamed": {file.name: file.stat().st_size for file in files},
    }
    names = (columns.domain, columns.response)
    return TableModel(
        encoder, names, models, outcomes, calibrations, provenance, tuple(notes), options
    )


def _held_out(model: ClosedFormRegressor, sources: Mapping[str, PlaceMoments]) -> dict[str, Floats]:
    """Errors on the sampled rows of each source, predicted without it."""
    if len(sources) < 2:
        return {}
    found = {}
    for name, rest in model.held_out().items():
        rows = sources[str(name)].sample.rows
        assert rows is not None
        found[str(name)] = rest.predict(rows[:, :-1]) - rows[:, -1]
    return found


def _constant_errors(sources: Mapping[str, PlaceMoments]) -> dict[str, float]:
    """Mean absolute errors of the other sources' median on the sampled rows of each source."""
    found = {}
    for name, mine in sources.items():
        rest = [own for other, own in sources.items() if other != name]
        y = np.concatenate([own.sample.rows[:, -1] for own in rest])  # type: ignore[index]
        w = np.concatenate(
            [own.sample.counts * (own.rows / own.sample.counts.sum()) for own in rest]
        )
        order = np.argsort(y, kind="stable")
        at = np.searchsorted(np.cumsum(w[order]), w.sum() / 2)
        assert mine.sample.rows is not None
        gaps = np.abs(mine.sample.rows[:, -1] - y[order][at])
        found[name] = float(np.average(gaps, weights=mine.sample.counts))
    return found
