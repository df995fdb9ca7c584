"""Train on the labeled places of a table for one, or several, without labels."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed

from vntransfer.checks import Names
from vntransfer.errors import DataWarning
from vntransfer.progress import Progress, reporter
from vntransfer.tables.encoder import TableEncoder
from vntransfer.tables.notes import Note, grouped, warning_line
from vntransfer.tables.options import ReadOptions
from vntransfer.tables.problem import Problem, TableColumns, read_problem
from vntransfer.workflows.adapt_settings import COMPARED, MAX_ROWS, AdaptSettings
from vntransfer.workflows.adapt_streamed import adapt_streamed
from vntransfer.workflows.response_transform import Asked
from vntransfer.workflows.table_model import TableModel
from vntransfer.workflows.target_fit import fit_target


def adapt(
    data: Any,
    *,
    domain: str,
    response: str,
    target: Names,
    method: str = "auto",
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    category: Sequence[str] = (),
    use_target_labels: bool = False,
    candidates: Sequence[str] | None = None,
    compare: Sequence[str] = COMPARED,
    transform: Asked = "auto",
    random_state: int = 0,
    max_rows: int = MAX_ROWS,
    n_jobs: int | None = None,
    read_options: ReadOptions | None = None,
    engine: Literal["local", "dask"] | None = None,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> TableModel:
    """Train on the labeled places of a table for one or several places without labels.

    Parameters
    ----------
    data
        Csv or parquet files, or a table in memory; see `read_frame`. Files of more than 256 MiB
        are read in blocks by method "closed_form", so they may be larger than memory.
    domain, response
        Columns with the place of each row and with the response to predict.
    target
        The place or places to predict for.
    method
        "auto" or an id of ``METHODS``.
    features, drop, category
        See `TableColumns`. Columns that cannot be used at the target are dropped unless
        ``features`` names them; `TableModel.notes` lists them with the reason.
    use_target_labels
        Whether labeled rows of the target become one more source.
    candidates
        Candidates for method "auto"; None: all.
    compare
        Methods to compare with on held-out sources, for methods other than "auto".
    transform
        Scale on which responses are learned: "log", "none", or "auto", which uses the log scale
        for positive, skewed responses if it predicts held-out sources better. Predictions, errors
        and intervals are always in the original units.
    random_state
        Seed.
    max_rows
        Rows of each source to learn from, drawn at random from larger sources. Files that are
        read in blocks are used completely.
    n_jobs
        Processes that share the targets, or the held-out sources of a single target; None: one.
        The results are the same whatever the number.
    read_options
        Format of the files; None: detected.
    engine
        For method "closed_form": read files of any size in blocks, in this process ("local") or
        on the workers of a cluster ("dask"). Nothing is compared then.
    scheduler
        For engine "dask": address of a cluster; None starts one on this machine.
    progress
        Called with a description, the number done and the total while models are fitted.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> size = rng.uniform(30, 120, 200)
    >>> town = np.repeat(["A", "B", "C", "new"], 50)
    >>> price = np.where(town == "new", np.nan, 3 * size + rng.normal(size=200))
    >>> table = {"town": town, "size": size, "lift": rng.random(200) < 0.5, "price": price}
    >>> model = adapt(table, domain="town", response="price", target="new", method="ridge",
    ...               compare=())
    >>> later = model.predict({"size": [50.0, 100.0], "lift": [True, False]})
    >>> later.value.round(-1), bool((later.low < later.value).all())
    (array([150., 300.]), True)
    """
    reporter(progress)
    settings = AdaptSettings(
        TableColumns(domain, response, features, drop, category),
        target,  # type: ignore[arg-type]  # one name or several
        method,
        use_target_labels,
        candidates,
        compare,
        transform,
        random_state,
        max_rows,
        n_jobs,
        engine,
        scheduler,
    )
    return adapt_table(data, settings, options=read_options, progress=progress, announce=_warn)


def adapt_table(
    data: Any,
    settings: AdaptSettings,
    *,
    options: ReadOptions | None = None,
    progress: Progress | None = None,
    announce: Callable[[TableEncoder, Sequence[Note]], None],
) -> TableModel:
    """Read a table and fit a model; what was read is announced as soon as it is known."""
    if settings.in_blocks(data):
        model = adapt_streamed(data, settings, options=options, progress=progress)
        announce(model.encoder, model.details)
        return model
    problem = read_problem(
        data,
        settings.columns,
        targets=settings.targets,
        use_target_labels=settings.use_target_labels,
        options=options,
    )
    problem = sample_rows(problem, settings.max_rows, settings.random_state)
    announce(problem.encoder, problem.notes)
    return fit_problem(problem, settings=settings, progress=progress)


def _warn(encoder: TableEncoder, notes: Iterable[Note]) -> None:
    """Warn of columns that were dropped, or may be leaks, and of repeated rows."""
    for name, own in grouped(note for note in notes if note.warning).items():
        warnings.warn(f"{warning_line(name, own)}; see notes", DataWarning, stacklevel=4)


def fit_problem(
    problem: Problem, *, settings: AdaptSettings, progress: Progress | None = None
) -> TableModel:
    """Fit a model for every target of a table that was read."""
    several = settings.n_jobs is not None and settings.n_jobs > 1 and len(problem.targets) > 1
    inner = replace(settings, n_jobs=1) if several else settings
    fitted, report = {}, reporter(progress if several else None)
    found = Parallel(settings.n_jobs if several else 1, return_as="generator")(
        delayed(fit_target)(problem, name, inner, progress=None if several else progress)
        for name in problem.targets
    )
    for k, own in enumerate(found):
        fitted[own.outcome.target] = own
        report("targets", k + 1, len(problem.targets))
    return TableModel(
        problem.encoder,
        problem.names,
        {name: own.estimator for name, own in fitted.items()},
        {name: own.outcome for name, own in fitted.items()},
        {n: own.calibration for n, own in fitted.items() if own.calibration is not None},
        {
            "method": settings.method,
            "random_state": settings.random_state,
            "files": dict(problem.sha256),
        },
        problem.notes,
        problem.options,
        {name: own.sketch for name, own in fitted.items()},
    )


def sample_rows(problem: Problem, max_rows: int = MAX_ROWS, random_state: int = 0) -> Problem:
    """Keep at most ``max_rows`` random rows of each source, and add a note.

    The same seed draws the same rows. Rows of targets stay.

    Examples
    --------
    >>> from vntransfer.tables.problem import TableColumns, read_problem
    >>> table = {"town": ["A"] * 60 + ["B"] * 20 + ["C"] * 9, "rooms": [1, 2.5, 4] * 29 + [1, 2],
    ...          "price": [*range(80)] + [None] * 9}
    >>> problem = read_problem(table, TableColumns("town", "price"), targets=["C"])
    >>> few = sample_rows(problem, 30)
    >>> [int((few.domain == name).sum()) for name in "ABC"]
    [30, 20, 9]
    """
    kept, counts = np.ones(len(problem.y), dtype=bool), {}
    for i, name in enumerate(problem.sources):
        rows = np.flatnonzero(problem.domain == name)
        if len(rows) > max_rows:
            counts[name] = len(rows)
            rng = np.random.default_rng([random_state, i])
            kept[rows] = False
            kept[rng.choice(rows, max_rows, replace=False)] = True
    if not counts:
        return problem
    which = (
        f"of {next(iter(counts))!r}" if len(counts) == 1 else f"of each of {len(counts)} sources"
    )
    said = (
        f"models learn from {max_rows:,} rows {which}, drawn at random from up to "
        f"{max(counts.values()):,}; --max-rows (max_rows) sets the number, and --method "
        f"closed_form with --engine local learns from all rows"
    )
    return replace(
        problem,
        X=problem.X[kept],
        y=problem.y[kept],
        domain=problem.domain[kept],
        notes=(*problem.notes, Note("rows", said)),
    )
