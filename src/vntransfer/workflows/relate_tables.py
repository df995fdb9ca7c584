"""Reduce tables of any size to summaries, piece by piece, in this process or on workers."""

from pathlib import Path
from typing import Any

import numpy as np

from vntransfer.errors import DataError
from vntransfer.progress import Progress, reporter
from vntransfer.relations import RelateSettings
from vntransfer.relations.reduction import check_width, summarized
from vntransfer.relations.summaries import Summaries
from vntransfer.tables import Frame, ReadOptions, TableColumns, TableEncoder, read_frame
from vntransfer.tables.files import expand, open_table
from vntransfer.tables.frame import joined, read_some
from vntransfer.workflows.streaming import ReadingPlan, add_frame, read_files

LOOK, CELLS = 200_000, 2_000_000
"""Rows, and cells, of all files from which the kinds of the columns are found out."""


def read_table(
    data: Any,
    settings: RelateSettings,
    *,
    options: ReadOptions | None = None,
    progress: Progress | None = None,
) -> tuple[Summaries, TableEncoder, list[str]]:
    """Summaries of the domains of a table, how its columns were encoded, and notes.

    See `relate` for the arguments; the settings name the columns of domains and responses.
    """
    columns = TableColumns(
        settings.domain or "",
        settings.response or "",
        settings.features,
        settings.drop,
        settings.category,
    )
    random_state = settings.random_state
    if isinstance(data, Frame) or hasattr(data, "columns") or hasattr(data, "keys"):
        frame = read_frame(data, options=options)
        names = columns.choose(frame.name, list(frame.columns))
        check_width(len(names))
        encoder = TableEncoder.fit(
            {name: frame.columns[name] for name in names},
            wanted=columns.features or (),
            category=columns.category,
        )
        plan = ReadingPlan(
            columns.domain, columns.response, encoder, frame.options, random_state, Summaries(0)
        )

        def add_all(made: Summaries) -> Summaries:
            add_frame(made, plan, frame, np.random.default_rng(random_state))
            return made

        made = summarized(len(encoder.names), add_all)
        return made, encoder, _notes(made, encoder)
    files = expand(data, "data")
    with open_table(files[0], options) as first:
        names = columns.choose(str(files[0]), first.names)
    check_width(len(names))
    wanted = [*names, columns.domain, columns.response]
    each = max(2000, min(LOOK, CELLS // len(names)) // len(files))
    frames, complete = read_some(files, wanted, options or ReadOptions(), each)
    seen = joined(frames)
    if len(seen) == 1:
        raise DataError(f"{files[0]}: has one row; at least two places with two rows are needed")
    several = len(files) > 1
    encoder = TableEncoder.fit(
        {name: seen.columns[name] for name in names},
        [f"{row} of {own.name}" if several else row for own in frames for row in own.rows],
        category=columns.category,
        wanted=columns.features or (),
        called="rows" if complete else "rows of the sample",
    )
    held = {Path(own.name): own for own in frames} if complete else {}
    cluster = (settings.scheduler, None) if settings.engine == "dask" else None

    def read_all(into: Summaries) -> Summaries:
        plan = ReadingPlan(
            columns.domain, columns.response, encoder, seen.options, random_state, into
        )
        return read_files(plan, files, cluster=cluster, held=held, report=reporter(progress))

    made = summarized(len(encoder.names), read_all)
    notes = [*seen.notes, *_notes(made, encoder)]
    if not complete:
        notes.append(
            f"column types were inferred from {len(seen):,} rows from all parts of the files"
        )
    return made, encoder, notes


def _notes(made: Summaries, encoder: TableEncoder) -> list[str]:
    notes = [f"{n:,} x {note}" for note, n in made.notes.items()]
    return [
        f"{name!r}: left out, {why}" for name, kind, why in encoder.summary() if kind == "left out"
    ] + notes
