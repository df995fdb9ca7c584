"""Saved models of every kind, for tests that damage them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from helpers.towns import towns
from helpers.worlds import easy
from vntransfer import (
    AutoTransferRegressor,
    ClosedFormClassifier,
    ClosedFormRegressor,
    MomentAlignmentRegressor,
    PooledRegressor,
    WeightedSourceRegressor,
    adapt,
    learn_tasks,
)
from vntransfer.storage import folder as storage

SHORT: dict[str, Any] = {"epochs": 1, "steps": 2, "hidden": (4,), "random_state": 0}
KINDS = (
    *("table", "tasks", "classes", "network", "pooled"),
    *("weighted", "auto", "boosting", "linear trees", "closed_form", "closed classes"),
)


def fitted(kind: str) -> Any:
    """Fit a small model of a kind."""
    if kind == "table":
        return adapt(towns(), domain="town", response="price", target="new", method="ridge")
    if kind in ("tasks", "classes"):
        rows = {k: v[:100] for k, v in towns().items()}  # without the town that has no prices
        response = "price" if kind == "tasks" else "garden"
        return learn_tasks(rows, task="town", response=response, method="sgd", random_state=0)
    X, y, domain = easy()
    model: Any = {
        "network": MomentAlignmentRegressor(**SHORT),
        "pooled": PooledRegressor("ridge"),
        "auto": AutoTransferRegressor(["ridge", "boosting"], random_state=0),
        "weighted": WeightedSourceRegressor("ridge"),
        "boosting": PooledRegressor("boosting"),
        "linear trees": PooledRegressor("linear_trees"),
        "closed_form": ClosedFormRegressor(8),
        "closed classes": ClosedFormClassifier(8),
    }.get(kind)
    if kind == "closed classes":
        y = np.nan_to_num(y) > 0
    return model.fit(X, y, domain)


def predictions(model: Any, kind: str) -> Any:
    """Give what a model of a kind predicts."""
    if kind == "table":
        found = model.predict(towns(), target=model.targets[0])
        return np.stack((found.value, found.low, found.high))
    rows = towns() if kind in ("tasks", "classes") else easy(20)[0]
    return model.predict(rows)


def contents(folder: Path) -> dict[str, bytes]:
    """Give all files of a folder by name."""
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def data_file(folder: Path, ending: str = "safetensors") -> Path:
    """Give the only file of a model with this ending."""
    (path,) = folder.glob(f"model-*.{ending}")
    return path


def edit(folder: Path, change: Callable[[dict[str, Any]], Any], *, sign: bool = True) -> None:
    """Change the record of a model by hand, with the digest that it should have then."""
    path = folder / "model.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    if sign:
        content.pop("sha256")
        content["sha256"] = storage._record_digest(content)
    path.write_text(json.dumps(content), encoding="utf-8")
