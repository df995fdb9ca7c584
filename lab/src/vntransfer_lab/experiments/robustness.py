"""``robustness``: whether √J with bias correction tolerates noise better than MSE (the paper).

The paper adds λ times a mixture of Gaussians "to the training data" of four regression sets and
leaves open what that means, so every reading is run: noise on y or on x; the mixture's second
parameter as standard deviation or variance; response in raw units or standardized; bias from
noisy or clean labels. Each cell trains one network once and reports the RMSE on clean test rows,
in units of the clean response's standard deviation (1 = predicting its mean), with three biases:

- ``rmse_plain``: as trained;
- ``rmse_noisy``: plus the mean residual on the noisy training labels;
- ``rmse_clean``: plus the mean residual on the clean training labels, unknown in practice.

``rmse`` is what the paper compares: noisy bias for √J, none for the other losses.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from vntransfer.pages import Axis, Lines, Panels
from vntransfer.storage.files import fingerprint
from vntransfer_lab.errors import PresetError
from vntransfer_lab.reports.drawings import Drawing, spread
from vntransfer_lab.reports.report import Condition, Group, Report, value_tables
from vntransfer_lab.reports.statistics import Estimate, compared
from vntransfer_lab.reports.tables import NumberPair, ReportTable, Value, Verdict
from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.kinds import CellMethod, CellSteps, Kind
from vntransfer_lab.runner.schema import Positive, Schema, Settings, schema

_Array = NDArray[np.float64]

# name -> (metric of √J, metric of the other losses)
BIASES = {
    "noisy labels, √J only": ("rmse_noisy", "rmse_plain"),
    "noisy labels, all losses": ("rmse_noisy", "rmse_noisy"),
    "clean labels, √J only": ("rmse_clean", "rmse_plain"),
    "clean labels, all losses": ("rmse_clean", "rmse_clean"),
}


@lru_cache(maxsize=4)
def _table(data: str) -> tuple[_Array, _Array]:
    from vntransfer_lab.data import Domains, load
    from vntransfer_lab.data.regression import NOISE

    if data not in NOISE:
        raise PresetError(
            f"data: robustness needs one of {', '.join(NOISE)} (the paper gives a noise for "
            f"these), got {data!r}"
        )
    loaded = load(data)
    assert isinstance(loaded, Domains)
    x, y = loaded[data]
    return x, y


def _canonical(data: str, settings: Settings) -> Settings:
    if settings["strength"] == 0:  # without noise its kind does not matter
        return {**settings, "noise_on": "y", "spread": "std"}
    return settings


def _split(cell: Cell) -> tuple[_Array, _Array, _Array, _Array, _Array]:
    """Noisy x, noisy y and clean y for training; clean x and y for the test."""
    from vntransfer_lab.data.regression import mixture_noise

    x, y = _table(cell.data)
    settings, n_train = cell.settings, cell.settings["n_train"]
    order = np.random.default_rng((cell.seed, 0)).permutation(len(y))
    train, test = order[:n_train], order[n_train : n_train + settings["n_test"]]
    x = (x - x[train].mean(0)) / x[train].std(0)
    if settings["response"] == "standardized":
        y = (y - y[train].mean()) / y[train].std()
    x_train, y_train = x[train], y[train]
    shape = x_train.shape if settings["noise_on"] == "x" else y_train.shape
    seed = int(np.random.default_rng((cell.seed, 1)).integers(2**31))
    noise = mixture_noise(
        cell.data,
        int(np.prod(shape)),
        settings["strength"],
        seed=seed,
        spread=settings["spread"],
    ).reshape(shape)
    if settings["noise_on"] == "x":
        x_train = x_train + noise
        middle, scale = x_train.mean(0), x_train.std(0)
        return (x_train - middle) / scale, y_train, y_train, (x[test] - middle) / scale, y[test]
    return x_train, y_train + noise, y_train, x[test], y[test]


def _loss(cell: Cell, scale: float) -> Callable[[Any, Any, Any], Any]:
    """``loss(x, prediction, y)`` in the units of the response."""
    from torch.nn import functional

    if cell.method == "jeffreys":
        from vntransfer.losses import JeffreysLoss

        return JeffreysLoss()
    if cell.method == "huber":
        delta = cell.hyper["delta"] * scale
        return lambda x, p, y: functional.huber_loss(p, y, delta=delta)
    plain = {"mse": functional.mse_loss, "absolute": functional.l1_loss}[cell.method]
    return lambda x, p, y: plain(p, y)


def _run(cell: Cell, checkpoint: object) -> CellSteps:
    import torch

    from vntransfer_lab.experiments.training import mlp, train

    x, y, y_clean, x_test, y_test = map(torch.from_numpy, _split(cell))
    settings = cell.settings
    generator = torch.Generator().manual_seed(cell.seed)
    net = mlp([x.shape[1], *[settings["hidden"]] * 2, 1], generator)
    # Every loss starts at the scale of the response, whatever its unit: Adam's steps have a size.
    middle, scale = y.mean(), y.std()

    def response(output: torch.Tensor) -> torch.Tensor:
        return middle + scale * output.squeeze(-1)

    loss = _loss(cell, float(scale))

    def criterion(rows: torch.Tensor, output: torch.Tensor, labels: torch.Tensor) -> Any:
        return loss(rows, response(output), labels)

    times = train(net, x, y, criterion, settings, generator)
    with torch.no_grad():
        fitted, predicted = response(net(x)), response(net(x_test))
    unit = float(y_test.std())

    def rmse(bias: float) -> float:
        return float((predicted + bias - y_test).square().mean().sqrt()) / unit

    found = {
        "rmse_plain": rmse(0.0),
        "rmse_noisy": rmse(float((y - fitted).mean())),
        "rmse_clean": rmse(float((y_clean - fitted).mean())),
        "rmse_centered": float((predicted - y_test).std(correction=0)) / unit,
        "variance_ratio": float(predicted.var() / y_test.var()),
    }
    found["rmse"] = found["rmse_noisy" if cell.method == "jeffreys" else "rmse_plain"]
    yield settings["epochs"], found
    return times


def tables(loaded: Report) -> list[ReportTable]:
    """Return the count per reading first, then the values of each data set."""
    return [_reading_table(loaded), *value_tables(loaded)]


def _reading_table(loaded: Report) -> ReportTable:
    """How often √J is better or worse than each other loss, per reading of the experiment."""
    rivals = [method for method in loaded.preset.methods if method != "jeffreys"]
    groups: dict[tuple[str, ...], list[Group]] = {}
    for group in loaded.chosen:
        key = _key(loaded, group[1])
        if key[-1] > 0:  # the strength λ
            groups.setdefault(key[:-1], []).append(group)
    rows: list[list[Value]] = []
    for reading, bias in product(groups, BIASES):
        counts = [_count(loaded, groups[reading], bias, rival) for rival in rivals]
        rows.append([*reading, bias, *counts])
    total = max(map(len, groups.values()), default=0)
    notes = [
        f"of {total} combinations of data set and λ > 0: √J better / worse, at the 5 % level "
        "(paired over seeds, Holm-corrected over the combinations)",
        "RMSE on clean test rows; clean labels: the bias uses labels that are unknown in practice",
    ]
    header = ["noise on", "second parameter", "response", "bias from", *(f"vs {r}" for r in rivals)]
    return loaded.table("√J against the others", header, rows, notes)


def _count(loaded: Report, groups: list[Group], bias: str, rival: str) -> Value:
    """On how many data sets √J is better and worse than a rival."""
    ours, theirs = BIASES[bias]
    pairs = {
        group: (
            loaded.values(*group, ours).get("jeffreys", {}),
            loaded.values(*group, theirs).get(rival, {}),
        )
        for group in groups
    }
    verdicts = [verdict for _, p, verdict in compared(pairs).values() if p is not None]
    if not verdicts:
        return Verdict("too few runs")
    return NumberPair(verdicts.count("better"), verdicts.count("worse"), "/")


def _key(loaded: Report, condition: Condition) -> tuple[Any, ...]:
    """Return what the noise is added to, its second parameter, the unit of the response, and λ."""
    settings = {**loaded.preset.settings, **dict(condition)}
    return tuple(settings[name] for name in ("noise_on", "spread", "response", "strength"))


def figures(loaded: Report) -> Iterator[Drawing]:
    """RMSE against λ: one figure per unit of the response, one panel per data set and reading."""
    found = {(data, *_key(loaded, c)): c for data, c in loaded.chosen}
    for response in dict.fromkeys(key[3] for key in found):
        readings = dict.fromkeys(key[1:3] for key in found if key[3] == response and key[4] > 0)
        charts = []
        for reading, data in product(readings, loaded.preset.data):
            points: dict[str, dict[float, Estimate]] = {}
            for (name, on, kind, unit, strength), condition in found.items():
                # without noise its kind does not matter
                same = (on, kind) == reading or strength == 0
                if name == data and unit == response and same:
                    for label, metric, method in _curves(loaded):
                        shown = loaded.estimates(data, condition, metric).get(data, {})
                        if method in shown:
                            points.setdefault(label, {})[strength] = shown[method]
            series = [
                spread(label, line, dash="dashed" if "clean" in label else "solid")
                for label, line in points.items()
            ]
            title = f"{data}: noise on {', '.join(reading)}"
            y = Axis("RMSE / std of response", low=0)
            charts.append(Lines(series, Axis("λ"), y, title=title))
        chart = Panels(charts, share=False, columns=len(loaded.preset.data))
        caption = "RMSE on clean test rows against the strength λ of the noise, mean ± standard "
        caption += "error over seeds; dashed: with labels that are unknown in practice."
        yield Drawing(str(response), f"RMSE under noise, {response} response", chart, caption)


def _curves(loaded: Report) -> Iterator[tuple[str, str, str]]:
    """Label, metric and method of the lines of a panel."""
    for method in loaded.preset.methods:
        name = "√J" if method == "jeffreys" else method
        yield name + (" + bias" if method == "jeffreys" else ""), "rmse", method
        if method in ("jeffreys", "mse"):
            yield f"{name} + bias from clean labels", "rmse_clean", method


class RobustnessSettings(Schema):
    """Which noise, which rows, and training."""

    strength: float = Field(0.0, ge=0)
    noise_on: Literal["y", "x"] = "y"
    spread: Literal["std", "variance"] = "std"
    response: Literal["raw", "standardized"] = "standardized"
    n_train: int = Field(2000, ge=50)
    n_test: int = Field(4000, ge=50)
    hidden: Positive = 64
    epochs: Positive = 30
    batch_size: int = Field(200, ge=20)
    rate: float = Field(3e-3, ge=0)


KIND = Kind(
    name="robustness",
    summary="√J with bias correction against MSE, Huber and absolute error under noise",
    metric="rmse",
    settings=RobustnessSettings,
    methods={
        "jeffreys": CellMethod(),
        "mse": CellMethod(),
        "huber": CellMethod(schema(delta=(float, Field(1.0, ge=1e-6)))),
        "absolute": CellMethod(),
    },
    fingerprint=lambda data, settings: fingerprint(*_table(data)),
    run=_run,
    canonical=_canonical,
    tables="vntransfer_lab.experiments.robustness:tables",
    words={"jeffreys": "√J"},
    figures="vntransfer_lab.experiments.robustness:figures",
)
