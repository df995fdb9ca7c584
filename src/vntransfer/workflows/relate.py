"""From domains or a table of your own to a `Relation`."""

from collections.abc import Sequence
from typing import Any

from vntransfer.checks import number, whole
from vntransfer.errors import ArgumentError
from vntransfer.relations import (
    RIDGE,
    Noise,
    Null,
    Relation,
    check_divergence,
    check_words,
)
from vntransfer.relations.compare import compare, summarize_domains
from vntransfer.workflows.relate_tables import Engine, read_table


def relate(
    data: Any,
    *,
    domain: str | None = None,
    response: str | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    category: Sequence[str] = (),
    delimiter: str = ",",
    divergence: str = "conditional_von_neumann",
    null: Null = "relation",
    noise: Noise = "wild",
    n_resamples: int | None = None,
    n_bootstrap: int = 200,
    level: float = 0.95,
    ridge: float = RIDGE,
    random_state: int = 0,
    engine: Engine = "local",
    scheduler: str | None = None,
) -> Relation:
    """Which places behave alike: divergences, intervals, tests and rankings of all pairs.

    Parameters
    ----------
    data
        Domains: a mapping or sequence of (X, y), y None (or all NaN) where it is not known. Or,
        with ``domain`` and ``response``, a table: csv or parquet files of any size (read once, in
        pieces), a pandas or polars frame, or a mapping of columns.
    domain, response
        Columns of the table that say where a row comes from, and what depends on the others; the
        latter is empty where it is not known.
    features, drop, category
        Columns of the table to use (None: all others), not to use, and to take for categories
        even if they look like numbers.
    delimiter
        Between the cells of a csv file.
    divergence
        An id of `DIVERGENCES`; the mean of both directions is taken.
    null, noise
        See `relation_test`, which is run on (at most) 1000 random rows of each place.
    n_resamples
        See `relation_test`; None: 999, or what Holm's correction of all pairs asks for.
    n_bootstrap
        Resamples for the intervals.
    level
        Of the intervals. They are for the divergence in fixed units and treat rows as independent;
        ends are moved by twice the bootstrap's bias, because divergences of samples are too large,
        the more so the nearer to zero.
    ridge
        Added to the diagonals of the standardized covariances.
    random_state
        Seed.
    engine, scheduler
        "dask" reads the files on the workers of a cluster, at an address or on this machine.

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
    check_divergence(divergence)
    ridge = number("ridge", ridge, exclusive=True)
    if not 0.5 <= number("level", level) < 1:
        raise ArgumentError(f"level: expected a share from 0.5 to below 1, got {level}")
    check_words(null=null, noise=noise)
    n_bootstrap = whole("n_bootstrap", n_bootstrap, minimum=20)
    if n_resamples is not None:
        n_resamples = whole("n_resamples", n_resamples, minimum=1)
    random_state = whole("random_state", random_state)
    treatment: list[tuple[str, str, str]] = []
    if domain is None and response is None:
        made, notes = summarize_domains(data, random_state), list[str]()
    elif domain is None or response is None:
        raise ArgumentError("domain, response: a table needs both, domains (X, y) neither")
    else:
        made, encoder, notes = read_table(
            data,
            domain=domain,
            response=response,
            features=features,
            drop=drop,
            category=category,
            delimiter=delimiter,
            random_state=random_state,
            engine=engine,
            scheduler=scheduler,
        )
        treatment = encoder.summary()
    settings = {
        "divergence": divergence,
        "null": null,
        "noise": noise,
        "level": level,
        "ridge": ridge,
        "n_bootstrap": n_bootstrap,
        "random_state": random_state,
        "columns": made.n_features,
        "domain": domain or "domain",
        "response": response or "y",
    }
    return compare(made, settings, n_resamples, notes, treatment)
