"""``label_noise``: one-hot √J against cross-entropy when training labels are wrong.

Pictures of handwritten digits (8 x 8, embedded in scikit-learn); a share of the training labels
is replaced by another class, uniformly. √J compares the covariances of pixels with one-hot labels
and with predicted probabilities; the bias is added to the probabilities. Accuracy is measured on
clean test rows. Squared and absolute error of the probabilities are there as well: the latter is
known to be robust to uniform label noise.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from vntransfer.pages import Axis, Lines
from vntransfer.storage.files import fingerprint
from vntransfer_lab.errors import PresetError
from vntransfer_lab.reports.drawings import Drawing, spread
from vntransfer_lab.reports.report import Report
from vntransfer_lab.reports.statistics import Estimate
from vntransfer_lab.runner.cells import Cell
from vntransfer_lab.runner.kinds import CellMethod, CellSteps, Kind
from vntransfer_lab.runner.schema import Positive, Schema

CLASSES = 10


@lru_cache(maxsize=1)
def _pictures(data: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    if data != "digits":
        raise PresetError(f"data: label_noise knows only 'digits', got {data!r}")
    from sklearn.datasets import load_digits

    x, labels = load_digits(return_X_y=True)
    return x / 16.0, labels.astype(np.int64)


def _loss(method: str) -> Callable[[Any, Any, Any], Any]:
    """``loss(x, logits, labels)``."""
    from torch.nn import functional

    if method == "cross_entropy":
        return lambda x, logits, labels: functional.cross_entropy(logits, labels)
    if method == "jeffreys":
        from vntransfer.losses import JeffreysLoss

        divergence = JeffreysLoss()
        return lambda x, logits, labels: divergence(x, logits.softmax(-1), labels)
    plain = {"squared": functional.mse_loss, "absolute": functional.l1_loss}[method]
    return lambda x, logits, labels: plain(
        logits.softmax(-1), functional.one_hot(labels, CLASSES).to(logits)
    )


def _run(cell: Cell, checkpoint: object) -> CellSteps:
    import torch

    from vntransfer.losses import JeffreysLoss
    from vntransfer_lab.experiments.training import mlp, train

    x, labels = _pictures(cell.data)
    settings = cell.settings
    rng = np.random.default_rng(cell.seed)
    used, test = np.split(rng.permutation(len(labels)), [settings["n_train"]])
    clean = labels[used]
    wrong = (clean + rng.integers(1, CLASSES, len(clean))) % CLASSES
    noisy = np.where(rng.random(len(clean)) < settings["flipped"], wrong, clean)
    rows, given = torch.from_numpy(x[used]), torch.from_numpy(noisy)
    generator = torch.Generator().manual_seed(cell.seed)
    net = mlp([x.shape[1], settings["hidden"], CLASSES], generator)
    times = train(net, rows, given, _loss(cell.method), settings, generator)
    with torch.no_grad():
        fitted, predicted = net(rows).softmax(-1), net(torch.from_numpy(x[test])).softmax(-1)
    correction = JeffreysLoss()
    correction.fit_bias(fitted, given)
    plain, corrected = (
        float((scores.argmax(-1).numpy() == labels[test]).mean())
        for scores in (predicted, correction.correct(predicted))
    )
    yield (
        settings["epochs"],
        {
            "accuracy": corrected if cell.method == "jeffreys" else plain,
            "accuracy_plain": plain,
            "accuracy_corrected": corrected,
        },
    )
    return times


def figures(loaded: Report) -> Iterator[Drawing]:
    """Accuracy against the share of wrong labels."""
    points: dict[str, dict[float, Estimate]] = {}
    for data, condition in loaded.chosen:
        share: float = {**loaded.preset.settings, **dict(condition)}["flipped"]
        for method, found in loaded.estimates(data, condition).get(data, {}).items():
            points.setdefault(method, {})[share] = found
    series = [
        spread("√J + bias" if method == "jeffreys" else method.replace("_", " "), points[method])
        for method in loaded.preset.methods
        if method in points
    ]
    y = Axis("accuracy on clean test rows", low=0, high=1)
    chart = Lines(series, Axis("share of wrong training labels"), y)
    caption = "Mean ± standard error over seeds."
    yield Drawing("accuracy", "Accuracy under label noise", chart, caption)


class LabelNoiseSettings(Schema):
    """Share of wrong labels, rows and training."""

    flipped: float = Field(0.0, ge=0, le=1)
    n_train: int = Field(1200, ge=100, le=1700)
    hidden: Positive = 64
    epochs: Positive = 50
    batch_size: int = Field(200, ge=20)
    rate: float = Field(3e-3, ge=0)


KIND = Kind(
    name="label_noise",
    summary="one-hot √J against cross-entropy under label noise",
    metric="accuracy",
    higher_is_better=True,
    settings=LabelNoiseSettings,
    methods=dict.fromkeys(("jeffreys", "cross_entropy", "squared", "absolute"), CellMethod()),
    fingerprint=lambda data, settings: fingerprint(*_pictures(data)),
    run=_run,
    words={"jeffreys": "√J"},
    figures="vntransfer_lab.experiments.label_noise:figures",
)
