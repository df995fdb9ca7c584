"""Rules that choose settings of the experiment ``adaptation``: honest, and blind to the target."""

from typing import Any

import numpy as np
import pytest

from vntransfer_lab.data import Domains
from vntransfer_lab.experiments import adaptation
from vntransfer_lab.runner.cells import Cell, expand
from vntransfer_lab.runner.preset import check, override, read_preset
from vntransfer_lab.runner.workers import compute

RULES = ("source_validation", "leave_one_source_out")


def cell(method: str, rule: str) -> Cell:
    settings = {"data": "synthetic", "rows": 60, "common.epochs": 1, "selection": rule}
    raw = read_preset("adaptation")[1]
    changes: dict[str, Any] = {"methods": [method], "targets": ["s2"], "seeds": 1}
    return expand(check(override(raw, **changes, settings=settings), "adaptation"))[0]


def metrics(found: Cell) -> dict[str, dict[int, float]]:
    outcome = compute(found)
    assert not outcome.error, outcome.traceback
    own: dict[str, dict[int, float]] = {}
    for step, name, value in outcome.rows:
        own.setdefault(name, {})[step] = value
    return own


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("method", ["constant", "ridge", "weighted", "darn"])
def test_the_criterion_stands_beside_the_error(method: str, rule: str) -> None:
    own = metrics(cell(method, rule))
    assert own[rule].keys() == own["mae"].keys()


@pytest.mark.parametrize("rule", RULES)
def test_the_target_s_labels_change_the_error_and_nothing_else(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = metrics(cell("darn", rule))
    real = adaptation._domains("synthetic")
    x, y = real["s2"]
    other = Domains("synthetic", {**real, "s2": (x, 99 - 3 * y)}, provenance=real.provenance)
    monkeypatch.setattr(adaptation, "_domains", lambda data: other)
    after = metrics(cell("darn", rule))
    errors = {"mae", "rmse", "mae_raw", "rmse_raw"}
    assert {name for name in before if before[name] != after[name]} == errors


def test_leaving_one_source_out_is_what_it_says() -> None:
    found = cell("constant", "leave_one_source_out")
    sources = adaptation.problem(found).sources
    unit = np.concatenate([y for _, y in sources.values()]).std()
    errors = []
    for name, (_, y) in sources.items():
        others = np.concatenate([own for other, (_, own) in sources.items() if other != name])
        errors.append(np.abs(y - np.median(others)).mean() / unit)
    (whole,) = metrics(found)["leave_one_source_out"].values()
    assert whole == pytest.approx(np.mean(errors))


def test_held_out_rows_are_not_fitted() -> None:
    rows = adaptation.problem(cell("ridge", "source_validation"))
    split, _ = adaptation._split(rows, seed=0)
    assert split.x is rows.x
    assert len(split.y_test) == 5 * 12  # a fifth of the 60 rows of each of five sources
    for place, (name, (_, y)) in enumerate(rows.sources.items()):
        held = split.y_test[12 * place : 12 * (place + 1)]
        assert sorted([*split.sources[name][1], *held]) == sorted(y)


@pytest.mark.parametrize("rule", RULES)
def test_the_oracle_has_no_such_criterion(rule: str) -> None:
    error = compute(cell("oracle", rule)).error
    assert "methods.oracle: " in error
