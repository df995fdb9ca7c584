"""From domains or a table of your own to a `Relation`."""

from collections.abc import Sequence
from typing import Any

from vntransfer.progress import Progress, reporter
from vntransfer.relations import RIDGE, Engine, RelateSettings, Relation
from vntransfer.relations.compare import compare, summarize_domains
from vntransfer.tables.options import ReadOptions, checked
from vntransfer.workflows.relate_tables import read_table


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
