"""Tables of numbers with constructed domains: by k-means on features, or by groups of subjects."""

import io
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vntransfer.checks import whole
from vntransfer.errors import DataError, damage_named
from vntransfer.tables.csv_files import number_blocks
from vntransfer_lab.data.archives import arrays, read_members
from vntransfer_lab.data.base import Domains, Provenance
from vntransfer_lab.data.derived import remembered
from vntransfer_lab.data.numeric_csv import read_numbers

FIT_ROWS = 50_000
CLUSTERING_VERSION = 1


class Rows(NamedTuple):
    """Content of a file."""

    X: NDArray[Any]
    y: NDArray[Any]
    built: tuple[str, ...] = ()
    subject: NDArray[Any] | None = None  # of each row
    n_train: int | None = None  # rows from here on are for testing


class Table(NamedTuple):
    """Format of a file, its columns, and its default domains."""

    read: Callable[[Path], Rows]
    features: tuple[str, ...]
    response: str
    k: int = 5
    clustered: int | None = None  # number of first columns that k-means uses; None: all
    subject: str = "subject"  # what the rows are grouped by instead


def kmeans_domains(
    X: NDArray[np.floating],
    k: int = 5,
    columns: int | None = None,
    *,
    seed: int = 0,
    n_fit: int | None = None,
) -> NDArray[np.intp]:
    """Domain (0 to k - 1) of every row by k-means, as the paper makes the YearPredictionMSD ones.

    The columns are standardized first: unscaled, the few timbre covariances with the largest
    variance would decide alone. Domain 0 is the largest, so that numbers do not depend on the
    random start.

    Parameters
    ----------
    X
        Features, shape (n, p); a memory-mapped array is read in blocks.
    k
        Number of domains.
    columns
        Number of columns to cluster on, the first ones; None: all.
    seed
        Seed of the sample and of k-means.
    n_fit
        Number of rows, the first ones, that the centers are found on (None: all; at most 50000
        of them, at random). All rows are then assigned.

    Examples
    --------
    >>> X = np.array([[0.0, 5], [0.1, -5], [0.2, 5], [9.0, -5], [9.1, 5]])
    >>> kmeans_domains(X, 2, columns=1)
    array([0, 0, 0, 1, 1])
    """
    from sklearn.cluster import KMeans

    width = X.shape[1] if columns is None else columns
    whole("columns", width, minimum=1, maximum=X.shape[1])
    whole("k", k, minimum=1, maximum=len(X))
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(len(X) if n_fit is None else n_fit)[:FIT_ROWS])
    sample = np.asarray(X[rows][:, :width], dtype=np.float64)
    mean, deviation = sample.mean(axis=0), sample.std(axis=0)
    deviation[deviation == 0] = 1
    model = KMeans(k, n_init=10, random_state=seed).fit((sample - mean) / deviation)
    blocks = [
        model.predict((np.asarray(X[i : i + FIT_ROWS][:, :width], np.float64) - mean) / deviation)
        for i in range(0, len(X), FIT_ROWS)
    ]
    labels = np.concatenate(blocks)
    by_size = np.argsort(-np.bincount(labels, minlength=k), kind="stable")
    return np.argsort(by_size)[labels]


def quantile_domains(X: NDArray[np.floating], k: int, column: int) -> NDArray[np.intp]:
    """Domain (0 to k - 1) of every row: k parts of the table, cut at quantiles of one column.

    Examples
    --------
    >>> quantile_domains(np.array([[3.0], [1.0], [4.0], [2.0]]), 2, 0)
    array([1, 0, 1, 0])
    """
    own = np.asarray(X[:, whole("cut", column, maximum=X.shape[1] - 1)], dtype=np.float64)
    ends = np.quantile(own, np.arange(1, k) / k)
    return np.asarray(np.searchsorted(ends, own, side="right"), dtype=np.intp)


def random_groups(subjects: ArrayLike, k: int, *, seed: int) -> NDArray[np.intp]:
    """Group (0 to k - 1) of every row: whole subjects are assigned at random to k groups.

    The groups' numbers of subjects differ by one at most.
    """
    names, subject = np.unique(np.asarray(subjects), return_inverse=True)
    whole("k", k, minimum=1, maximum=len(names))
    deal = np.random.default_rng(seed).permutation(len(names)) % k
    return np.asarray(deal[subject], dtype=np.intp)


def _split(
    X: NDArray[Any], y: NDArray[Any], owner: NDArray[np.intp], k: int
) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """Rows by domain, ``{"dom1": (X, y), ...}``."""
    return {f"dom{d + 1}": (np.asarray(X[owner == d]), np.asarray(y[owner == d])) for d in range(k)}


def load_table(
    files: Mapping[str, Path],
    *,
    name: str,
    k: int | None = None,
    seed: int = 0,
    columns: int | None = None,
    cut: int | None = None,
) -> Domains:
    """Load one table, its rows in domains: groups of subjects, k-means or parts of one column.

    Parameters
    ----------
    files
        Found files.
    name
        Which table; fixed by the registry.
    k
        Number of domains; None: 5, or the whole table of the four single ones.
    seed
        Seed of k-means, or of the assignment of subjects.
    columns
        Number of columns to cluster on, the first ones; None: all, or 30 for the songs.
    cut
        Column at whose quantiles the table is cut into domains; None: k-means, or random groups of
        whole subjects where a table has them.

    Returns
    -------
    Domains
        The training rows of the songs; ``extras["test"]`` maps domain -> (X, y) of the test
        rows. Centers are found on the training rows alone, then all rows are assigned.
        ``extras["subject"]``, or ``"patient"``, maps domain -> subject of each row.
    """
    (path,) = files.values()
    table = TABLES[name]
    rows = table.read(path)
    k = table.k if k is None else k
    made = partial(Domains, name, feature_names=table.features, response_name=table.response)
    if k == 1:
        return made({name: (rows.X, rows.y)}, provenance=Provenance(rows.built))
    columns = table.clustered if columns is None else columns
    extras: dict[str, Any] = {}
    if cut is not None:
        owner = quantile_domains(rows.X, k, cut)
        how = f"{k} domains, cut at quantiles of {table.features[cut]}; dom1 has the least values"
    elif rows.subject is not None:
        owner = random_groups(rows.subject, k, seed=seed)
        count = len(np.unique(rows.subject))
        how = f"{count} {table.subject}s assigned at random to {k} groups, seed {seed}"
        subjects = {f"dom{d + 1}": rows.subject[owner == d] for d in range(k)}
        extras[table.subject] = subjects
    else:
        width, n_fit = rows.X.shape[1], rows.n_train
        used = list(range(width if columns is None else columns))
        options = [CLUSTERING_VERSION, version("scikit-learn"), width, int(k), used, int(seed)]
        options += [] if n_fit is None else [n_fit]
        owner = remembered(  # found once per file
            "clusters",
            path,
            options,
            lambda: kmeans_domains(rows.X, k, columns, seed=seed, n_fit=n_fit),
        )
        which = "all columns" if columns is None else f"the first {columns} columns"
        how = f"{k} domains by k-means on {which}, standardized, seed {seed}; dom1 is the largest"
    train, test = slice(None, rows.n_train), slice(rows.n_train, None)
    if rows.n_train is not None:
        extras["test"] = _split(rows.X[test], rows.y[test], owner[test], k)
    domains = _split(rows.X[train], rows.y[train], owner[train], k)
    return made(domains, provenance=Provenance((how, *rows.built)), extras=extras)


def _delve(features: tuple[str, ...], response: str) -> Table:
    """Table of the .data and .test files of an archive, a folder or one such file, or of an npz.

    Numbers are comma- or blank-separated; the last column is the response.
    """
    n_columns = len(features) + 1

    def read(path: Path) -> Rows:
        if path.suffix == ".npz":
            with arrays(path) as box:
                return Rows(box["X"], box["y"], ("whole, raw units",))
        if path.suffix in (".data", ".test"):
            parts = [(path.name, path.read_bytes())]
        else:
            parts = sorted(read_members(path, lambda name: name.endswith((".data", ".test"))))
        tables = list[NDArray[np.float64]]()
        for name, content in parts:
            lines = (line.replace(b",", b" ").split() for line in content.splitlines())
            commas = b"\n".join(b",".join(line) for line in lines if line)
            with damage_named(f"{path}: {name}", "file of numbers"):
                tables += number_blocks(io.BytesIO(commas), n_columns)
        if not tables:
            raise DataError(f"{path}: holds no .data file; fetch it again")
        rows = np.concatenate(tables)
        return Rows(rows[:, :-1], rows[:, -1], ("whole (.data and .test), raw units",))

    return Table(read, features, response, k=1)


def _uci(
    n_columns: int, response: str, *, dropped: tuple[int, ...] = (), subject: int | None = None
) -> Table:
    """Table of a csv without header; features are named by their columns, the last column is y."""
    left_out = {*dropped, n_columns - 1, subject}
    kept = [i for i in range(n_columns) if i not in left_out]
    which = ", ".join(map(str, dropped))
    built = (f"columns {which} dropped: they duplicate others or reveal y",) if dropped else ()

    def read(path: Path) -> Rows:
        rows = read_numbers(path, columns=n_columns)
        own = None if subject is None else rows[:, subject]
        return Rows(np.asarray(rows)[:, kept], np.array(rows[:, -1]), built, own)

    return Table(read, tuple(f"x{i}" for i in kept), response)


N_TRAIN = 463_715  # official rule: the first rows train, the last 51630 test, no artist in both
N_ROWS = 515_345
TIMBRE = tuple(f"timbre_mean{i}" for i in range(12)) + tuple(f"timbre_cov{i}" for i in range(78))


def _read_songs(path: Path) -> Rows:
    """All songs; a file of another length (a sample) keeps the official share of training rows."""
    rows = read_numbers(path, columns=1 + len(TIMBRE), dtype=np.float32)
    n_train = N_TRAIN if len(rows) == N_ROWS else int(len(rows) * N_TRAIN / N_ROWS)
    split = f"first {n_train} of {len(rows)} rows are training (the official rule), the rest test"
    y = np.asarray(rows[:, 0], dtype=np.float64)
    return Rows(rows[:, 1:], y, (split,), n_train=n_train)


def _read_few_songs(path: Path) -> Rows:
    """Songs drawn at random from the official training part."""
    with arrays(path) as box:
        drawn = box["source"] < 2  # the others are the first rows of the file, not a random sample
        X, y = box["X"][drawn].astype(np.float32), box["y"][drawn].astype(np.float64)
    return Rows(X, y, (f"{len(X)} random rows of the official training part",))


N_SLICE_FEATURES = 384


def _read_slices(path: Path) -> Rows:
    """Slices from the official csv (in its zip or not), or the partial compact file."""
    if path.suffix == ".npz":
        with arrays(path) as box:
            X, y, patient = box["X"], box["y"].astype(np.float64), box["patient"].astype(np.int64)
    else:
        rows = read_numbers(path, columns=N_SLICE_FEATURES + 2, header=True, dtype=np.float32)
        X, patient = rows[:, 1:-1], rows[:, 0].astype(np.int64)
        y = np.asarray(rows[:, -1], dtype=np.float64)
    return Rows(X, y, (f"{len(y)} slices",), patient)


TABLES = {
    "2dplanes": _delve(tuple(f"x{i}" for i in range(1, 11)), "y"),
    "cal_housing": _delve(
        (
            *("longitude", "latitude", "housingMedianAge", "totalRooms", "totalBedrooms"),
            *("population", "households", "medianIncome"),
        ),
        "medianHouseValue",
    ),
    "bank8FM": _delve(("a1cx", "a1cy", "b2x", "b2y", "a2pop", "a3pop", "temp", "mxql"), "rej"),
    "puma8NH": _delve(
        (*(f"theta{i}" for i in (1, 2, 3)), *(f"thetad{i}" for i in (1, 2, 3)), "tau1", "tau2"),
        "thetadd3",
    ),
    "protein": _uci(10, "log(1 + RMSD), centered"),
    # columns 4 and 5 repeat 0 and 1; 15 and 16 add up to the exponential of the response
    "bike": _uci(18, "log of the hourly rentals, centered", dropped=(4, 5, 15, 16)),
    "pol": _uci(27, "response (11 values), centered"),
    "pumadyn32nm": _uci(33, "acceleration of a joint, standardized"),
    "parkinsons": _uci(21, "total UPDRS, centered", subject=0),
    "yearpredictionmsd": Table(_read_songs, TIMBRE, "year", clustered=30),
    "yearpred-small": Table(_read_few_songs, TIMBRE, "year", clustered=30),
    "ct_slices": Table(
        _read_slices,
        tuple(f"value{i}" for i in range(N_SLICE_FEATURES)),
        "position (0 head to 180 feet)",
        subject="patient",
    ),
}
