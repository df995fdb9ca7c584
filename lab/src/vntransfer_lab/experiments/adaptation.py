"""``adaptation``: every method of the registry on one target, the other domains being its sources.

The target's responses are hidden from all methods but ``oracle``; all methods get the same rows.
The methods are those of `vntransfer.adaptation.METHODS`, some of them with other options
(`VARIANTS`), and three to compare with: ``constant`` (the median of the sources' responses),
``catboost`` (CatBoost with its defaults on the rows of all sources) and ``oracle`` (the network of
``source_only`` trained on the target's own responses, never scored on rows that it was trained on).

Recorded at the end: ``mae`` and ``rmse`` in standard deviations of the sources' responses,
``mae_raw`` and ``rmse_raw`` in their unit, ``weight/SOURCE``, ``learned_weights`` (1 if these are
neither equal nor the sources' shares of the rows) and, where a method chooses by itself how to
adapt, ``share/CANDIDATE`` and ``adapted`` (1 unless the fallback has the largest share; of
auto, if "align" has more than half).
With ``history`` the losses and weights of every epoch as well.

For the rules ``source_validation`` and ``leave_one_source_out`` a cell first fits models that did
not see some labeled rows of the sources, records the error there (in standard deviations of the
sources' responses, the mean over sources), and then fits on all rows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from vntransfer.adaptation import METHODS, RETIRED
from vntransfer.adaptation.auto import AutoSelection
from vntransfer.domains import stack
from vntransfer.step_times import StepTimes
from vntransfer.storage.files import fingerprint
from vntransfer.storage.pacing import Paced
from vntransfer_lab.data import Domains
from vntransfer_lab.errors import PresetError
from vntransfer_lab.experiments.adaptation_options import late, make, options_of
from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.datasets import load_data
from vntransfer_lab.runner.kinds import CellMethod, CellSteps, Kind
from vntransfer_lab.runner.schema import Natural, Schema, Settings, schema
from vntransfer_lab.runner.selection import RULES

_Array = NDArray[np.float64]

BASELINE = "source_only"

HELD_OUT = 0.2
"""Share of each source's rows on which candidates are compared."""


_PRINTED = {"trade_off": 1.0, "anchor": 0.0, "warm_up": 0}
_ADAM = {"weight_update": "adam", "weight_rate": 0.001}

# methods of the registry with other options
VARIANTS: dict[str, tuple[str, Settings]] = {
    # the mean of five networks: what an ensemble has to beat
    "source_only_5": (BASELINE, {"members": 5}),
    "weighted_boosting": ("weighted", {"estimator": "boosting"}),
    "ahd_msda_adam": ("ahd_msda", _ADAM),  # weights moved as in its public code
    # from the paper's recipe to ours: Eq. 8 and Algorithm 1 to the letter, then stabilized, weaker
    # (mdd_paper itself), and chosen like ours; alignment without an adversary, five such networks
    "mdd_printed": ("mdd_paper", {**_PRINTED, "weight_update": "l1"}),
    # and with Adam on the weights, at the one learning rate that the paper states
    "mdd_published": ("mdd_paper", {**_PRINTED, **_ADAM, "ridge_per": "all"}),
    "mdd_stable": ("mdd_paper", {"trade_off": 1.0}),
    "mdd_paper_auto": ("mdd_paper", {"trade_off": "auto", "members": 5}),
    "align_one": ("align", {"trade_off": 1.0, "members": 1}),
    "align_five": ("align", {"trade_off": 1.0}),
    # ours with one part changed; without alignment, sources are only weighted
    "align_weights": ("align", {"trade_off": 0.0}),
    "align_uniform": ("align", {"learn_weights": False}),
    "align_raw": ("align", {"standardize": False}),
    "align_metric": ("align", {"divergence": "jensen_von_neumann"}),
}


def _domains(data: str) -> Domains:
    loaded = load_data(data)
    if not isinstance(loaded, Domains) or len(loaded) < 2:
        raise PresetError(f"data: adaptation needs at least two domains, got {data!r}")
    for name, (x, y) in loaded.items():
        if x.ndim != 2 or y.ndim != 1:
            raise PresetError(
                f"data: adaptation needs tables with one response, but X of {data!r}, domain "
                f"{name!r}, has shape {x.shape} and y {y.shape}"
            )
    return loaded


@lru_cache(maxsize=16)
def _fingerprint(domains: Domains) -> str:
    arrays: list[NDArray[Any]] = []
    for x, y in domains.values():
        arrays += [x.data, x.indices, x.indptr] if hasattr(x, "indptr") else [x]
        arrays.append(y)
    return fingerprint(*arrays)


@dataclass(frozen=True)
class CellRows:
    """Rows of one cell; those that are scored are the ones of ``x`` where ``held_out`` is 0."""

    sources: dict[str, tuple[Any, _Array]]  # name -> (X, y)
    x: Any  # the target's rows that the methods see
    y: _Array  # their responses, for the oracle alone
    x_test: Any
    y_test: _Array

    @property
    def labels(self) -> _Array:
        """Responses of all sources."""
        return np.concatenate([y for _, y in self.sources.values()])


def problem(cell: Cell) -> CellRows:
    """Draw the rows of a cell: the same for all methods and seeds."""
    domains = _domains(cell.data)
    most, held_out = cell.settings["rows"], cell.settings["held_out"]
    drawn = {}
    for place, (name, (x, y)) in enumerate(domains.items()):
        order = np.random.default_rng(place).permutation(len(y))
        rows = np.sort(order[: most or None])
        drawn[name] = x[rows], np.asarray(y[rows], dtype=np.float64)
    x, y = drawn.pop(cell.target)
    if held_out == 0:
        return CellRows(drawn, x, y, x, y)
    mixed = np.random.default_rng(len(domains)).permutation(len(y))
    test, seen = np.split(mixed, [min(max(1, round(held_out * len(y))), len(y) - 2)])
    return CellRows(drawn, x[seen], y[seen], x[test], y[test])


@dataclass(frozen=True)
class CellFit:
    """Prediction of the test rows, what is recorded beside the errors, records of all epochs."""

    predicted: _Array
    record: dict[str, float] = field(default_factory=dict)
    history: list[dict[str, float]] = field(default_factory=list)
    step_times: StepTimes = field(default_factory=StepTimes)


def _run(cell: Cell, checkpoint: Paced | None) -> CellSteps:
    rows = problem(cell)
    times = StepTimes()

    def fit(other: CellRows) -> CellFit:
        nonlocal times
        found = _fit(cell, other, checkpoint)
        times += found.step_times
        return found

    judged = criterion(cell, rows, lambda other: fit(other).predicted)
    fitted = fit(rows)
    gap, unit = fitted.predicted - rows.y_test, float(rows.labels.std())
    mae, rmse = float(np.abs(gap).mean()), float(np.sqrt((gap**2).mean()))
    errors = {"mae": mae / unit, "rmse": rmse / unit, "mae_raw": mae, "rmse_raw": rmse} | judged
    shown = fitted.history if cell.settings["history"] else []
    yield from enumerate(shown[:-1], start=1)
    yield max(1, len(fitted.history)), (shown[-1] if shown else {}) | fitted.record | errors
    return times


def criterion(
    cell: Cell, rows: CellRows, predict: Callable[[CellRows], _Array]
) -> dict[str, float]:
    """Return the criterion of a cell's rule by its name, without the target's responses.

    It is empty if the rule has none. ``predict`` fits the cell's method to other rows.
    """
    rule = cell.selection
    if not RULES[rule][0]:
        return {}
    if cell.method == "oracle":
        raise PresetError(
            f"methods.oracle: learns from the target's labels, so {rule!r} has nothing to compare; "
            "leave it out, or use selection = 'last_epoch'"
        )
    unit = float(rows.labels.std())
    if rule == "leave_one_source_out":
        if len(rows.sources) < 2:
            raise PresetError("selection: leave_one_source_out needs at least two sources")
        errors = []
        for name, (x, y) in rows.sources.items():  # as the target, the true one left out
            others = {other: own for other, own in rows.sources.items() if other != name}
            unseen = np.full(len(y), np.nan)
            left = replace(rows, sources=others, x=x, y=unseen, x_test=x, y_test=y)
            errors.append(float(np.abs(predict(left) - y).mean()) / unit)
        return {rule: float(np.mean(errors))}
    held, ends = _split(rows, cell.seed)
    gap = np.abs(predict(held) - held.y_test)
    return {rule: float(np.mean([part.mean() for part in np.split(gap, ends)])) / unit}


def _split(rows: CellRows, seed: int) -> tuple[CellRows, NDArray[np.intp]]:
    """Make some rows of every source test rows, one source after another; where each ends."""
    from scipy.sparse import issparse, vstack

    kept, x_test, y_test = {}, [], []
    for place, (name, (x, y)) in enumerate(rows.sources.items()):
        order = np.random.default_rng((seed, place)).permutation(len(y))
        test, used = np.split(order, [max(1, round(HELD_OUT * len(y)))])
        kept[name] = x[used], y[used]
        x_test.append(x[test])
        y_test.append(y[test])
    below = vstack(x_test, format="csr") if issparse(x_test[0]) else np.concatenate(x_test)
    held = replace(rows, sources=kept, x_test=below, y_test=np.concatenate(y_test))
    return held, np.cumsum(list(map(len, y_test)))[:-1]


def _fit(cell: Cell, rows: CellRows, checkpoint: Paced | None) -> CellFit:
    if cell.method == "constant":
        return CellFit(np.full(len(rows.y_test), np.median(rows.labels)))
    if cell.method == "catboost":
        return _catboost(cell, rows)
    if cell.method == "oracle":
        return _oracle(cell, rows, checkpoint)
    x, y, domain = stack(rows.sources, target=rows.x)
    model = _make(_registered(cell.method), cell.hyper, cell.seed, checkpoint).fit(x, y, domain)
    return CellFit(
        model.predict(rows.x_test),
        weight_record(model, rows) | selection_record(model),
        [epoch_record(record) for record in getattr(model, "history_", [])],
        getattr(model, "step_times_", StepTimes()),
    )


def _registered(method: str) -> str:
    return VARIANTS[method][0] if method in VARIANTS else method


def _catboost(cell: Cell, rows: CellRows) -> CellFit:
    """Predict the test rows by CatBoost with its defaults, in one thread."""
    try:
        from catboost import CatBoostRegressor
    except ImportError as error:
        raise PresetError(
            f"methods.catboost: CatBoost cannot be imported ({error}); pip install './lab[bench]'"
        ) from error
    x, y, domain = stack(rows.sources, target=rows.x)
    own = domain != "target"
    options = {"thread_count": 1, "verbose": False, "allow_writing_files": False}
    model = CatBoostRegressor(random_seed=cell.seed, **options).fit(x[own], y[own])
    return CellFit(np.asarray(model.predict(rows.x_test)))


def _oracle(cell: Cell, rows: CellRows, checkpoint: Paced | None) -> CellFit:
    """Predict the test rows after training on other rows of the target, with their responses."""
    options = {name: value for name, value in cell.hyper.items() if name != "folds"}
    if cell.settings["held_out"]:
        model = _make(BASELINE, options, cell.seed, checkpoint).fit(rows.x, rows.y)
        return CellFit(np.asarray(model.predict(rows.x_test)), step_times=model.step_times_)
    order = np.random.default_rng(cell.seed).permutation(len(rows.y))
    predicted, times = np.empty(len(order)), StepTimes()
    for held in np.array_split(order, min(cell.hyper["folds"], len(order))):
        used = np.setdiff1d(order, held)
        model = _make(BASELINE, options, cell.seed, checkpoint).fit(rows.x[used], rows.y[used])
        predicted[held] = model.predict(rows.x[held])
        times += model.step_times_
    return CellFit(predicted, step_times=times)


def _make(method: str, options: Settings, seed: int, checkpoint: Paced | None) -> Any:
    model = make(method, options)
    of_the_cell = {"random_state": seed, "checkpoint": checkpoint}
    known = model.get_params()
    return model.set_params(**{name: v for name, v in of_the_cell.items() if name in known})


def weight_record(model: Any, rows: CellRows) -> dict[str, float]:
    """Weights of the sources, and whether they say more than the numbers of rows do."""
    weights: Mapping[str, float] = getattr(model, "source_weights_", {})
    if not weights:
        return {}
    w = np.array([weights[name] for name in rows.sources])
    n = np.array([len(y) for _, y in rows.sources.values()])
    plain = any(np.allclose(w, p / p.sum(), atol=1e-6) for p in (n, np.ones(len(n))))
    return {**_named(weights), "learned_weights": float(not plain)}


def selection_record(model: Any) -> dict[str, float]:
    """Shares of the candidates among which a method chose, the fallback first.

    A method that chooses one sharpness of its weights has all the share there.
    """
    selection = getattr(model, "selection_", None)
    if selection is None or not selection.candidates:
        return {}
    if hasattr(selection, "shares"):
        shares = {str(name): float(selection.shares[name]) for name in selection.candidates}
    else:
        taken = selection.sharpness
        shares = {f"sharpness={a:g}": float(a == taken) for a in selection.candidates}
    if isinstance(selection, AutoSelection):
        adapted = shares.get("align", 0.0) > 0.5
    else:
        adapted = max(shares.values()) > next(iter(shares.values()))
    return {f"share/{name}": share for name, share in shares.items()} | {"adapted": float(adapted)}


def epoch_record(record: Mapping[str, Any]) -> dict[str, float]:
    """Numbers of one record of a history."""
    found = {name: value for name, value in record.items() if isinstance(value, float)}
    return found | _named(record["weights"])


def _named(weights: Mapping[str, float]) -> dict[str, float]:
    return {f"weight/{name}": float(weight) for name, weight in weights.items()}


def _methods() -> dict[str, CellMethod]:
    versions = {"boosting": 3, "weighted_boosting": 3, "auto": 5}
    found = {name: options_of(name) for name in METHODS}
    for name, (method, changed) in VARIANTS.items():
        own = found[method]
        found[name] = own | {key: (own[key][0], value) for key, value in changed.items()}
    oracle = schema(**found[BASELINE], folds=(int, Field(5, ge=2)))
    return {
        "constant": CellMethod(),
        **{
            name: CellMethod(schema(**own), versions.get(name, 1), late(_registered(name)))
            for name, own in found.items()
        },
        "catboost": CellMethod(),
        "oracle": CellMethod(oracle, late=late(BASELINE)),
    }


class AdaptationSettings(Schema):
    """Rows per domain (0: all), share of target rows that only the test sees, losses of epochs."""

    rows: Natural = 600
    held_out: float = Field(0.0, ge=0, le=0.9)
    history: bool = False


KIND = Kind(
    name="adaptation",
    summary="methods of multi-source adaptation, each domain as the target once",
    metric="mae",
    settings=AdaptationSettings,
    methods=_methods(),
    targets=lambda data, settings: list(_domains(data).targets),
    fingerprint=lambda data, settings: _fingerprint(_domains(data)),
    run=_run,
    tables="vntransfer_lab.experiments.adaptation_report:tables",
    figures="vntransfer_lab.experiments.adaptation_report:figures",
    retired=RETIRED,
)
