"""Train on the labeled places of a table for one, or several, without labels."""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from vntransfer.adaptation.candidates import maker
from vntransfer.checks import Names, instance, texts, whole
from vntransfer.checks import names as check_names
from vntransfer.errors import DataWarning
from vntransfer.progress import Progress, reporter
from vntransfer.tables.notes import Note, grouped, warning_line
from vntransfer.tables.options import ReadOptions
from vntransfer.tables.problem import LEAST, Problem, TableColumns, read_problem
from vntransfer.workflows.adapt_streamed import Streaming, adapt_streamed
from vntransfer.workflows.response_transform import Asked, check_transform, not_streamed
from vntransfer.workflows.row_sample import MAX_ROWS, sample_rows
from vntransfer.workflows.table_model import TableModel
from vntransfer.workflows.target_fit import COMPARED, check_method, fit_target


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
    read_options: ReadOptions | None = None,
    engine: Literal["local", "dask"] | None = None,
    workers: int | None = None,
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
    read_options
        Format of the files; None: detected.
    engine
        For method "closed_form": read files of any size in blocks, in this process ("local") or
        on the workers of a cluster ("dask"). Nothing is compared then.
    workers, scheduler
        For engine "dask": number of processes on this machine, or the address of a cluster.
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
    check_method(method)
    random_state = whole("random_state", random_state)
    whole("max_rows", max_rows, minimum=LEAST)
    instance("use_target_labels", use_target_labels, bool, "True or False")
    if candidates is not None:
        candidates = texts("candidates", candidates, "a list of methods, or None for all")
    compare = texts("compare", compare, "a list of methods, or () for none")
    for option, named in (("candidates", candidates or ()), ("compare", compare)):
        for name in named:
            maker(name, option)
    check_transform(transform)
    reporter(progress)
    columns, targets = (
        TableColumns(domain, response, features, drop, category),
        check_names("target", target),
    )
    streaming = Streaming(engine, workers, scheduler)
    if streaming.applies(data, method):
        not_streamed(transform)
        model = adapt_streamed(
            data,
            columns,
            targets,
            use_target_labels=use_target_labels,
            options=read_options,
            streaming=streaming,
            random_state=random_state,
            progress=progress,
        )
        _warn(model.details)
        return model
    problem = read_problem(
        data,
        columns,
        targets=targets,
        use_target_labels=use_target_labels,
        options=read_options,
    )
    problem = sample_rows(problem, max_rows, random_state)
    _warn(problem.notes)
    return fit_problem(
        problem,
        method=method,
        candidates=candidates,
        compare=compare,
        transform=transform,
        random_state=random_state,
        progress=progress,
    )


def _warn(notes: Iterable[Note]) -> None:
    """Warn of columns that were dropped, or may be leaks, and of repeated rows."""
    for name, own in grouped(note for note in notes if note.warning).items():
        warnings.warn(f"{warning_line(name, own)}; see notes", DataWarning, stacklevel=3)


def fit_problem(
    problem: Problem,
    *,
    method: str = "auto",
    candidates: Sequence[str] | None = None,
    compare: Sequence[str] = COMPARED,
    transform: Asked = "auto",
    random_state: int = 0,
    progress: Progress | None = None,
) -> TableModel:
    """Fit a model for every target of a table that was read."""
    fitted = {
        name: fit_target(
            problem,
            name,
            method=method,
            candidates=candidates,
            compare=compare,
            transform=transform,
            random_state=random_state,
            progress=progress,
        )
        for name in problem.targets
    }
    return TableModel(
        problem.encoder,
        problem.names,
        {name: own.estimator for name, own in fitted.items()},
        {name: own.outcome for name, own in fitted.items()},
        {n: own.calibration for n, own in fitted.items() if own.calibration is not None},
        {"method": method, "random_state": random_state, "files": dict(problem.sha256)},
        problem.notes,
        problem.options,
        {name: own.sketch for name, own in fitted.items()},
    )
