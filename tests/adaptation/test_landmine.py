"""Genuine fields of two terrains: the weights find the terrain, and that pays."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from vntransfer import WeightedSourceClassifier, source_weights, stack

data = pytest.importorskip("vntransfer_lab.data", reason="the laboratory is not installed")


@pytest.fixture(scope="module")
def fields(real: Path) -> Any:
    return data.load("landmine", folder=real)


def test_terrain_is_recovered(fields: Any) -> None:
    terrain = fields.extras["terrain"]
    shares = []
    for target in fields:
        others = {name: pair for name, pair in fields.items() if name != target}
        world = stack(others, target=fields[target][0])
        weights = source_weights(*world, sharpness=3.0)
        shares.append(sum(w for name, w in weights.items() if terrain[name] == terrain[target]))
    assert np.mean(shares) > 0.75  # pooling: 0.48


def test_weights_improve_logistic_regression(fields: Any) -> None:
    gains = []
    for target in list(fields)[::3]:
        others = {name: pair for name, pair in fields.items() if name != target}
        X, y = fields[target]
        world = stack(others, target=X)
        pooled, weighted = (
            roc_auc_score(
                y, WeightedSourceClassifier(sharpness=a).fit(*world).predict_proba(X)[:, 1]
            )
            for a in (0.0, 3.0)
        )
        gains.append(weighted - pooled)
    error = np.std(gains, ddof=1) / len(gains) ** 0.5
    assert np.mean(gains) > max(0.02, 2 * error)
