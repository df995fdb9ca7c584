"""``counting``: vehicles in pictures, the hourglass trained by every method that trains networks.

Each domain is the target once, its densities hidden from all methods but ``oracle``; all methods
get the same pictures. Beside the methods of `vntransfer.adaptation.METHODS`: ``constant`` (the mean
count of the sources, spread over the mask), ``area`` (the sources' vehicles per pixel of the mask
times the mask) and ``oracle`` (the same network on the target's own densities, never scored on
pictures that it was trained on).

Recorded at the end, in vehicles: ``mae`` of the counts, ``bias`` (mean of predicted less true),
``game1`` to ``game3`` (see `game`), ``train_mae`` on the labeled pictures of training,
``weight/SOURCE``; ``true/PICTURE`` and ``predicted/PICTURE`` (counts) and, over 8 x 8 parts of the
picture, ``true_map/ROW/COLUMN`` and ``predicted_map/ROW/COLUMN`` (means over all pictures). With
``history`` the losses and weights of every epoch as well. Reports show counts, never photographs.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from vntransfer.adaptation import METHODS, RETIRED
from vntransfer.pages import Axis, Panels, Scatter, Series
from vntransfer.step_times import StepTimes
from vntransfer.storage.files import fingerprint
from vntransfer.storage.pacing import Paced
from vntransfer_lab.data import Domains, load
from vntransfer_lab.errors import PresetError
from vntransfer_lab.experiments.adaptation import epoch_record
from vntransfer_lab.experiments.adaptation_options import late, make, options_of
from vntransfer_lab.experiments.density_maps import DensityCounter, Pictures, train_counter
from vntransfer_lab.reports.drawings import Drawing, standard
from vntransfer_lab.reports.report import Report, comparison_tables, value_table
from vntransfer_lab.reports.tables import ReportTable
from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.kinds import CellMethod, CellSteps, Kind
from vntransfer_lab.runner.schema import Natural, Positive, Schema, Settings, schema

_Array = NDArray[Any]

LEVELS = (1, 2, 3)
"""Of GAME; the last one is that of the maps."""

SHOWN = ("source_only", "align", "mdd_paper", "oracle")
"""Methods whose counts are drawn."""

UNUSED = (
    "hidden",
    "width",
    "dropout",
    "activation",
    "members",
    "average",
    "bounded",
    "warm_start",
    "validation_fraction",
)
"""Options of the estimators that have no effect on an hourglass."""


@lru_cache(maxsize=2)
def _domains(data: str, size: tuple[int, int]) -> Domains:
    loaded = load(data, size=size) if data == "trancos" else load(data)
    if not isinstance(loaded, Domains) or not {"density", "mask"} <= set(loaded.extras):
        raise PresetError(f"data: counting needs pictures with densities and masks, got {data!r}")
    return loaded


def _rows(domains: Domains, name: str, most: int) -> NDArray[np.intp]:
    """Rows of a domain: the same for all methods and seeds."""
    place, n = list(domains).index(name), len(domains[name][1])
    order = np.random.default_rng(place).permutation(n)
    return np.sort(order[: most or None])


@lru_cache(maxsize=16)
def pictures(data: str, size: tuple[int, int], most: int, name: str) -> Pictures:
    """Read the pictures of a domain into memory: eight bytes per pixel."""
    domains = _domains(data, size)
    rows = _rows(domains, name, most)
    extras = domains.extras
    return Pictures(
        domains[name][0][rows], extras["mask"][name][rows], extras["density"][name][rows]
    )


def _size(settings: Settings) -> tuple[int, int]:
    height, width = settings["size"]
    return height, width


def _fingerprint(data: str, settings: Settings) -> str:
    """Hash of names and counts of all pictures that are read, and of one photograph per domain.

    All photographs would take minutes to decode at full size.
    """
    domains, most = _domains(data, _size(settings)), settings["pictures"]
    parts: list[_Array] = []
    for name, (x, y) in domains.items():
        rows = _rows(domains, name, most)
        named = domains.extras.get("image", {}).get(name)
        parts += [y[rows], x[int(rows[0])], *([] if named is None else [named[rows]])]
    return fingerprint(*parts)


def game(true: _Array, predicted: _Array, level: int) -> float:
    """Grid average mean error: Σ |predicted - true| over 4^level parts, mean over pictures.

    Densities have the shape (n, height, width). Level 0 is the mean absolute error of the counts;
    at higher levels a vehicle must be counted in the right part of the picture.
    """
    gap = parts(predicted.astype(np.float64) - true, 2**level)
    return float(np.abs(gap).sum((1, 2)).mean())


def parts(maps: _Array, n: int) -> NDArray[np.float64]:
    """Add up n x n parts of maps (k, height, width), as equal as whole pixels allow."""
    for axis in (1, 2):
        edges = np.arange(n) * maps.shape[axis] // n
        maps = np.add.reduceat(maps, edges, axis=axis, dtype=np.float64)
    return np.asarray(maps)


def _run(cell: Cell, checkpoint: Paced | None) -> CellSteps:
    size, most = _size(cell.settings), cell.settings["pictures"]
    names = [name for name in _domains(cell.data, size) if name != cell.target]
    sources = {name: pictures(cell.data, size, most, name) for name in names}
    target = pictures(cell.data, size, most, cell.target)
    record: dict[str, float] = {}
    history: list[dict[str, float]] = []
    times = StepTimes()
    if cell.method == "oracle":
        predicted, train_mae, times = _oracle(cell, target, checkpoint)
    elif cell.method in ("constant", "area"):
        predicted = _plain(cell.method, sources, target.mask)
        train_mae = _mean_mae(
            sources, {k: _plain(cell.method, sources, s.mask) for k, s in sources.items()}
        )
    else:
        unseen = Pictures(target.photographs, target.mask)
        counter = _train(cell, cell.method, sources, unseen, checkpoint)
        predicted = counter.density(unseen)
        train_mae = _mean_mae(sources, {k: counter.density(s) for k, s in sources.items()})
        record = {f"weight/{name}": w for name, w in counter.trained.source_weights.items()}
        history = [_epoch(own, counter) for own in counter.trained.history]
        times = counter.trained.step_times
    record |= score(target.masked_density(), predicted) | {"train_mae": train_mae}
    shown = history if cell.settings["history"] else []
    yield from enumerate(shown[:-1], start=1)
    yield max(1, len(history)), (shown[-1] if shown else {}) | record
    return times


def score(true: _Array, predicted: _Array) -> dict[str, float]:
    """Errors, counts and mean maps of densities (n, height, width) inside the mask."""
    counts, guessed = (maps.sum((1, 2), dtype=np.float64) for maps in (true, predicted))
    record = {"mae": game(true, predicted, 0), "bias": float((guessed - counts).mean())}
    record |= {f"game{level}": game(true, predicted, level) for level in LEVELS}
    for i, (own, guess) in enumerate(zip(counts, guessed, strict=True)):
        record |= {f"true/{i:04d}": float(own), f"predicted/{i:04d}": float(guess)}
    for name, maps in (("true_map", true), ("predicted_map", predicted)):
        mean = parts(maps, 2 ** LEVELS[-1]).mean(0)
        record |= {f"{name}/{i}/{j}": float(value) for (i, j), value in np.ndenumerate(mean)}
    return record


def _epoch(record: dict[str, Any], counter: DensityCounter) -> dict[str, float]:
    """Numbers of one epoch; merged sources have no weights of their own."""
    (w,) = record["weights"]
    named = counter.trained.source_weights
    own = dict(zip(named, w, strict=True)) if len(w) == len(named) else named
    return epoch_record({**record, "weights": own})


def _mean_mae(labeled: dict[str, Pictures], predicted: dict[str, _Array]) -> float:
    found = [game(own.masked_density(), predicted[name], 0) for name, own in labeled.items()]
    return float(np.mean(found))


def _plain(method: str, sources: dict[str, Pictures], mask: _Array) -> _Array:
    """Densities without looking at photographs: a count, or one density, for every picture."""
    maps = [own.masked_density().sum((1, 2), dtype=np.float64) for own in sources.values()]
    counts = np.concatenate(maps)
    if method == "constant":
        inside = mask.sum((1, 2), keepdims=True).clip(1)
        return np.asarray(counts.mean() * mask / inside)
    return np.asarray(counts.sum() / sum(own.mask.sum() for own in sources.values()) * mask)


def _oracle(
    cell: Cell, target: Pictures, checkpoint: Paced | None
) -> tuple[_Array, float, StepTimes]:
    """Predict each part of the target after training on its other parts, with their densities."""
    order = np.random.default_rng(cell.seed).permutation(len(target))
    predicted = np.empty(target.mask.shape, dtype=np.float32)
    errors, times = [], StepTimes()
    folds = np.array_split(order, min(cell.hyper["folds"], len(order)))
    for held in folds:
        used = {cell.target: target.take(np.setdiff1d(order, held))}
        counter = _train(cell, "source_only", used, None, checkpoint)
        times += counter.trained.step_times
        predicted[held] = counter.density(target.take(held))
        errors.append(_mean_mae(used, {k: counter.density(own) for k, own in used.items()}))
    return predicted, float(np.mean(errors)), times


def _train(
    cell: Cell,
    method: str,
    sources: dict[str, Pictures],
    target: Pictures | None,
    checkpoint: Paced | None,
) -> DensityCounter:
    hyper = {name: value for name, value in cell.hyper.items() if name != "folds"}
    model = make(method, hyper).set_params(checkpoint=checkpoint)
    if target is None:  # as many pictures per batch as the others have of all sources
        k = len(_domains(cell.data, _size(cell.settings))) - 1
        model.set_params(batch_size=k * model.batch_size)
    shape = {name: cell.settings[name] for name in ("blocks", "channels", "scale")}
    return train_counter(model, sources, target, **shape, random_state=cell.seed)


def _options(method: str) -> dict[str, tuple[Any, Any]]:
    """Options of a method that matter here; its trade-off is a number: nothing is selected."""
    found = {name: own for name, own in options_of(method).items() if name not in UNUSED}
    if "trade_off" in found:
        _, given = found["trade_off"]
        found["trade_off"] = float, Field(1.0 if given == "auto" else given, ge=0)
    return found


def _methods() -> dict[str, CellMethod]:
    neural = {
        name: CellMethod(schema(**_options(name)), late=late(name))
        for name, own in METHODS.items()
        if own.neural
    }
    options = schema(**_options("source_only"), folds=(int, Field(2, ge=2)))
    oracle = CellMethod(options, late=late("source_only"))
    return {"constant": CellMethod(), "area": CellMethod(), **neural, "oracle": oracle}


def tables(loaded: Report) -> list[ReportTable]:
    """Return errors of counts, of places (GAME) and of the training pictures, then the tests."""
    found = []
    for data in loaded.preset.data:
        found += [value_table(loaded, data, m) for m in ("mae", "game2", "train_mae")]
    return found + (comparison_tables(loaded) if loaded.preset.baseline else [])


def figures(loaded: Report) -> Iterator[Drawing]:
    """Errors per target; predicted against true counts of the first data set and seed."""
    yield from standard(loaded)
    cells = next(iter(loaded.chosen.values()))
    first = min(seed for _, _, seed in cells)
    order = list(loaded.preset.methods)
    panels = []
    for target in dict.fromkeys(target for _, target, _ in cells):
        series = []
        for method in SHOWN:
            if (method, target, first) in cells:
                record, step = cells[method, target, first]
                true, guessed = (
                    [v[step] for name, v in record.metrics.items() if name.startswith(start)]
                    for start in ("true/", "predicted/")
                )
                series.append(Series(method, true, guessed, color=order.index(method)))
        if series:
            axes = Axis("vehicles"), Axis("predicted")
            panels.append(Scatter(series, *axes, title=f"target {target}", diagonal=True))
    if panels:
        caption = "One mark per picture, of the first seed; on the dotted line the count is right."
        yield Drawing("counts", "Predicted and true counts", Panels(panels), caption)


class CountingSettings(Schema):
    """Height and width, pictures per domain (0: all), the network, losses of epochs."""

    size: list[Positive] = Field([128, 160], min_length=2, max_length=2)
    pictures: Natural = 50
    blocks: int = Field(6, ge=1, le=9)
    channels: Positive = 32
    scale: float = Field(100.0, ge=1e-6)
    history: bool = False


KIND = Kind(
    name="counting",
    summary="counts of vehicles from density maps, each domain as the target once",
    metric="mae",
    settings=CountingSettings,
    methods=_methods(),
    targets=lambda data, settings: list(_domains(data, _size(settings))),
    fingerprint=_fingerprint,
    run=_run,
    tables="vntransfer_lab.experiments.counting:tables",
    figures="vntransfer_lab.experiments.counting:figures",
    retired=RETIRED,
)
