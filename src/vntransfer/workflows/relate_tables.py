"""Reduce tables of any size to summaries, piece by piece, in this process or on workers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vntransfer.errors import DataError
from vntransfer.progress import Progress, reporter
from vntransfer.relations import RelateSettings
from vntransfer.relations.reduction import check_width, summarized
from vntransfer.relations.summaries import Summaries
from vntransfer.tables import Frame, ReadOptions, TableColumns, TableEncoder, read_frame
from vntransfer.tables.frame import in_memory, joined, read_some, row_names
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
    held: Mapping[Path, Frame] = {}
    files: Sequence[Path] = ()
    if in_memory(data):
        frames, complete = [read_frame(data, options=options)], True
        names = columns.choose(frames[0].name, list(frames[0].columns))
        check_width(len(names))
    else:
        files, names = columns.find(data, options)
        check_width(len(names))
        wanted = [*names, columns.domain, columns.response]
        each = max(2000, min(LOOK, CELLS // len(names)) // len(files))
        frames, complete = read_some(files, wanted, options or ReadOptions(), each)
        held = {Path(own.name): own for own in frames} if complete else {}
    seen = joined(frames)
    if len(seen) == 1:
        raise DataError(f"{seen.name}: has one row; at least two places with two rows are needed")
    encoder = TableEncoder.fit(
        {name: seen.columns[name] for name in names},
        row_names(frames),
        category=columns.category,
        wanted=columns.features or (),
        called="rows" if complete else "rows of the sample",
    )

    def fill(into: Summaries) -> Summaries:
        plan = ReadingPlan(
            columns.domain,
            columns.response,
            encoder,
            seen.options,
            settings.random_state,
            into,
        )
        if files:
            return read_files(
                plan,
                files,
                engine=settings.engine,
                scheduler=settings.scheduler,
                held=held,
                report=reporter(progress),
            )
        add_frame(into, plan, seen, np.random.default_rng(settings.random_state))
        return into

    made = summarized(len(encoder.names), fill)
    notes = [
        *seen.notes,
        *(
            f"{name!r} is dropped: {why}"
            for name, kind, why in encoder.summary()
            if kind == "dropped"
        ),
        *(f"{n:,} x {note}" for note, n in made.notes.items()),
    ]
    if not complete:
        notes.append(
            f"column types were inferred from {len(seen):,} rows from all parts of the files"
        )
    return made, encoder, notes
