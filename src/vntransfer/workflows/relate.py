"""From domains or a table of your own to a `Relation`.

Tables of any size are reduced to summaries, piece by piece, in this process or on workers.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vntransfer.errors import DataError
from vntransfer.progress import Progress, reporter
from vntransfer.relations import RIDGE, Engine, RelateSettings, Relation
from vntransfer.relations.compare import compare, summarize_domains
from vntransfer.relations.reduction import check_width, summarized
from vntransfer.relations.summaries import Summaries
from vntransfer.tables import Frame, ReadOptions, TableColumns, TableEncoder, read_frame
from vntransfer.tables.frame import in_memory, joined, read_some, row_names
from vntransfer.tables.options import checked
from vntransfer.workflows.streaming import ReadingPlan, add_frame, look, read_files


def relate(
    data: Any,
    *,
    domain: str | None = None,
    response: str | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    category: Sequence[str] = (),
    read_options: ReadOptions | None = None,
    divergence: str = "conditional_von_neumann",
    n_resamples: int | None = None,
    n_bootstrap: int = 200,
    level: float = 0.95,
    ridge: float = RIDGE,
    random_state: int = 0,
    engine: Engine = "local",
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> Relation:
    """Compare all pairs of places: divergences, intervals, tests and rankings.

    Parameters
    ----------
    data
        Domains: a mapping or sequence of (X, y), y None (or all NaN) if unknown. Or, with
        ``domain`` and ``response``, a table: csv or parquet files of any size (read once, in
        pieces), a pandas or polars frame, or a mapping of columns.
    domain, response
        Columns of the table with the place and the response of each row; unknown responses are
        empty.
    features, drop, category
        Columns of the table to use (None: all others), to ignore, and to treat as categories even
        if they look like numbers.
    read_options
        Format of the files; None: detected.
    divergence
        An id of `DIVERGENCES`; both directions are averaged.
    n_resamples
        See `relation_test`, which uses at most 1000 random rows of each place; None: 999, or more
        if Holm's correction for all pairs needs more.
    n_bootstrap
        Resamples for the intervals.
    level
        Level of the intervals. They are for the divergence in fixed units and treat rows as
        independent. Their ends are corrected for twice the bootstrap's bias, because divergences
        of samples are biased upward, most of all near zero.
    ridge
        Added to the diagonals of the standardized covariances.
    random_state
        Seed.
    engine, scheduler
        "dask" reads the files on the workers of a cluster: the one at the address ``scheduler``,
        or a new one on this machine.
    progress
        Called with the current step (a file, "pairs"), the number done and the total.

    Returns
    -------
    Relation

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = {name: rng.normal(size=(200, 2)) for name in ("north", "east", "south")}
    >>> slope = {"north": 1.0, "east": 1.1, "south": -2.0}
    >>> found = relate({name: (x, slope[name] * x[:, 0]) for name, x in X.items()})
    >>> [near.name for near in found.ranking("north")]
    ['east', 'south']
    """
    reporter(progress)
    checked(read_options)
    settings = RelateSettings(
        domain,
        response,
        features,
        drop,
        category,
        divergence,
        n_resamples,
        n_bootstrap,
        level,
        ridge,
        random_state,
        engine,
        scheduler,
    )
    if settings.domain is None:
        return compare(summarize_domains(data, settings.random_state), settings, progress=progress)
    made, encoder, notes = read_table(data, settings, options=read_options, progress=progress)
    return compare(made, settings, notes=notes, treatment=encoder.summary(), progress=progress)


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
        each = max(2000, look(len(names)) // len(files))
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
