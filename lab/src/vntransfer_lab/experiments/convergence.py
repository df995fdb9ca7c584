"""``convergence``: how fast the divergence of sample covariances approaches the true one.

Two covariances Σ, Θ of a family are fixed; from each, n samples are drawn and the divergence of
the sample covariances is compared with the true one, for growing n (the steps of the store). For
the von Neumann divergence the terms of the paper's Proposition 1 are recorded beside.
"""

import math
from collections.abc import Iterator
from itertools import product
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from vntransfer.pages import MUTED, Axis, Lines, Panels, Series
from vntransfer.storage.files import fingerprint
from vntransfer_lab.errors import PresetError
from vntransfer_lab.reports.drawings import Drawing
from vntransfer_lab.reports.names import method_name
from vntransfer_lab.reports.report import Report
from vntransfer_lab.reports.statistics import Estimate
from vntransfer_lab.reports.tables import Number, ReportTable, Value
from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.kinds import CellMethod, Kind
from vntransfer_lab.runner.records import Record
from vntransfer_lab.runner.schema import Schema, Settings

_Array = NDArray[np.float64]

FAMILIES = {
    "equal": "Σ = Θ, eigenvalues 1 to 2: the true divergence is zero",
    "moderate": "random eigenvectors, eigenvalues 1 to 2",
    "decaying": "random eigenvectors, eigenvalues 1, 1/2, ..., 1/d",
    "toeplitz": "entries .5^|i-j| and .8^|i-j|",
    "heavy-tailed": "as moderate, samples from Student's t with 5 degrees of freedom",
}
_DEGREES = 5

Groups = dict[tuple[str, int, str], list[Record]]
"""(family, dimension, method) -> finished cells, one per seed."""


def _rotated(eigenvalues: _Array, rng: np.random.Generator) -> _Array:
    q, r = np.linalg.qr(rng.standard_normal((len(eigenvalues), len(eigenvalues))))
    q = q * np.sign(np.diag(r))
    return np.asarray((q * eigenvalues) @ q.T)


def _pair(family: str, d: int) -> tuple[_Array, _Array]:
    """Σ and Θ; they depend on family and dimension alone."""
    rng = np.random.default_rng((list(FAMILIES).index(family), d))
    if family == "toeplitz":
        gaps = np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
        return 0.5**gaps, 0.8**gaps
    values = 1.0 / np.arange(1, d + 1) if family == "decaying" else np.linspace(1.0, 2.0, d)
    sigma = _rotated(values, rng)
    return sigma, sigma if family == "equal" else _rotated(values, rng)


def _covariance(matrix: _Array, n: int, heavy: bool, rng: np.random.Generator) -> Any:
    """Sample covariance of n draws whose true covariance is ``matrix``."""
    from vntransfer.moments import covariance

    x = rng.standard_normal((n, len(matrix))) @ np.linalg.cholesky(matrix).T
    if heavy:
        chi = rng.chisquare(_DEGREES, size=(n, 1)) / _DEGREES
        x = x / np.sqrt(chi) * np.sqrt((_DEGREES - 2) / _DEGREES)
    return covariance(x)


def _run(cell: Cell, checkpoint: object) -> Iterator[tuple[int, dict[str, float]]]:
    from vntransfer import divergences
    from vntransfer.theory import convergence_terms

    measure = getattr(divergences, cell.method)
    sigma, theta = _pair(cell.target, cell.settings["dimension"])
    true = float(measure(sigma, theta))
    for n in cell.settings["sizes"]:
        rng = np.random.default_rng((cell.seed, n))
        heavy = cell.target == "heavy-tailed"
        samples = [_covariance(matrix, n, heavy, rng) for matrix in (sigma, theta)]
        estimate = float(measure(*samples))
        row = {"error": abs(estimate - true), "estimate": estimate, "true": true}
        if cell.method == "von_neumann":
            terms = convergence_terms(sigma, theta, *samples)
            row |= {
                "epsilon": terms.epsilon,
                "printed_bound": terms.printed_bound,
                "squared_bound": terms.squared_bound,
                "first_order": terms.first_order,
                "log_step_holds": float(terms.log_step_holds),
            }
        yield n, row


def _canonical(data: str, settings: Settings) -> Settings:
    if min(settings["sizes"]) <= settings["dimension"]:
        raise PresetError(
            f"settings.sizes: {min(settings['sizes'])} samples in {settings['dimension']} "
            "dimensions give a singular covariance; use more"
        )
    return {**settings, "sizes": sorted(set(settings["sizes"]))}


def _fingerprint(data: str, settings: Settings) -> str:
    if data != "gaussian":
        raise PresetError(f"data: convergence generates its samples: 'gaussian', got {data!r}")
    pairs = (_pair(family, settings["dimension"]) for family in FAMILIES)
    # Eigenvectors may differ in the last digits between machines; the families do not.
    return fingerprint(*(np.round(matrix, 9) for pair in pairs for matrix in pair))


def _groups(loaded: Report) -> Groups:
    found: Groups = {}
    for record in loaded.records:
        if record.status == "done":
            key = record.target, record.settings["dimension"], record.method
            found.setdefault(key, []).append(record)
    return found


def _rms(records: list[Record]) -> dict[int, float]:
    """Root mean square error over seeds, per number of samples."""
    found = [record.metrics["error"] for record in records]
    steps = sorted(set.intersection(*map(set, found)))
    return {n: float(np.sqrt(np.mean([errors[n] ** 2 for errors in found]))) for n in steps}


def _slope(errors: dict[int, float], seeds: int) -> Estimate:
    """Exponent of the error in n; a mean square over S seeds has a relative error of √(2/S)."""
    n, e = np.log(list(errors)), np.log(list(errors.values()))
    error = math.sqrt(1 / (2 * seeds) / float(((n - n.mean()) ** 2).sum()))
    return Estimate(float(np.polyfit(n, e, 1)[0]), error, seeds)


def tables(loaded: Report) -> list[ReportTable]:
    """Return the observed rates, then Proposition 1's terms."""
    groups = _groups(loaded)
    return [_rate_table(loaded, groups), _bound_table(loaded, groups)]


def _rate_table(loaded: Report, groups: Groups) -> ReportTable:
    rows: list[list[Value]] = []
    for (family, d, method), records in groups.items():
        errors = _rms(records)
        if len(errors) < 4:
            continue
        late = dict(list(errors.items())[len(errors) // 2 :])
        slopes = _slope(errors, len(records)), _slope(late, len(records))
        last = max(errors)
        true = records[0].metrics["true"][last]
        small = true < 1e-12
        row: list[Value] = [family, d, method, 0.0 if small else true, errors[last]]
        gap, margin = slopes[1].mean + 0.5, 2 * (slopes[1].error or 0.0)
        verdict = "1/√n"
        if abs(gap) > margin:
            verdict = f"{'slower' if gap > 0 else 'faster'} than {verdict}"
        rows.append([*row, None if small else errors[last] / true, *slopes, verdict])
    header = ["family", "d", "divergence", "true", "error at largest n", "relative"]
    header += ["exponent", "exponent, larger n", "verdict"]
    note = (
        f"root mean square error over {len(loaded.preset.seeds)} seeds; exponents: slope of "
        "its logarithm over log n (± standard error), over all sizes and over the larger half"
    )
    return loaded.table("rates", header, rows, [note])


def _bound_table(loaded: Report, groups: Groups) -> ReportTable:
    rows: list[list[Value]] = []
    for (family, d, method), records in groups.items():
        if method != "von_neumann":
            continue
        error, squared, holds = (
            np.array([list(record.metrics[name].values()) for record in records])
            for name in ("error", "squared_bound", "log_step_holds")
        )
        last = max(records[0].metrics["error"])
        final = [{name: steps[last] for name, steps in r.metrics.items()} for r in records]
        ratios = [r["error"] / r["squared_bound"] for r in final if r["squared_bound"] > 0]
        first = [abs(r["first_order"] - r["error"]) for r in final]
        size = [r["error"] for r in final]
        shares = [
            Number(100 * int(flags.sum()) / flags.size, ".0f", unit=" %")
            for flags in (error <= squared, holds == 1)
        ]
        ratio = float(np.median(ratios)) if ratios else None
        rows.append([family, d, *shares, ratio, float(np.mean(first) / np.mean(size))])
    header = ["family", "d", "bound with squared overlaps holds"]
    header += ["log((λ+ε)/λ) ≤ log(1+ε)", "error / squared bound", "first order: relative miss"]
    note = (
        "shares of all draws and sizes; the bound as printed, without squares, depends on the "
        "arbitrary signs of eigenvectors and is not shown; the last two columns at the largest n: "
        "median ratio of error and bound; mean |first-order prediction - error| over mean error"
    )
    title = "Proposition 1 (von Neumann divergence)"
    return ReportTable(title, header, rows, [note], loaded.preset.title)


def figures(loaded: Report) -> Iterator[Drawing]:
    """Draw rates: a row of panels per divergence, a column per dimension."""
    groups = _groups(loaded)
    families = list(dict.fromkeys(family for family, _, _ in groups))
    dimensions = sorted({d for _, d, _ in groups})
    methods = [m for m in loaded.preset.methods if any(key[2] == m for key in groups)]
    charts = []
    for method, d in product(methods, dimensions):
        found = {f: _rms(groups[f, d, method]) for f in families if (f, d, method) in groups}
        series = [
            Series(f, list(errors), list(errors.values()), color=families.index(f))
            for f, errors in found.items()
        ]
        series += _reference(list(found.values()))
        title = f"{method_name(method)}, d = {d}"
        charts.append(Lines(series, Axis("n", log=True), Axis("error", log=True), title=title))
    caption = "Root mean square error over seeds against the number of samples n; dotted: 1/√n."
    chart = Panels(charts, share=False, columns=len(dimensions))
    yield Drawing("rates", "Rates", chart, caption)


def _reference(found: list[dict[int, float]]) -> list[Series]:
    """Line that falls like 1/√n, above the others."""
    known = [errors for errors in found if len(errors) > 1]
    if not known:
        return []
    n = np.array(list(known[0]), dtype=float)
    top = max(next(iter(errors.values())) for errors in known)
    return [Series("1/√n", n, 2 * top * np.sqrt(n[0] / n), color=MUTED, marks=False)]


class ConvergenceSettings(Schema):
    """Dimension of the matrices and numbers of samples."""

    dimension: int = Field(5, ge=2, le=500)
    sizes: list[Annotated[int, Field(ge=3)]] = Field([100, 300, 1000, 3000, 10_000], min_length=1)


KIND = Kind(
    name="convergence",
    summary="sample divergence to true divergence as n grows",
    metric="error",
    settings=ConvergenceSettings,
    methods=dict.fromkeys(("von_neumann", "jeffreys", "conditional_von_neumann"), CellMethod()),
    targets=lambda data, settings: list(FAMILIES),
    fingerprint=_fingerprint,
    run=_run,
    canonical=_canonical,
    tables="vntransfer_lab.experiments.convergence:tables",
    figures="vntransfer_lab.experiments.convergence:figures",
)
