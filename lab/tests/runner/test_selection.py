"""Selection: the rule sees what it may see, and ties never depend on luck."""

from typing import Any

import pytest

from vntransfer_lab.errors import PresetError
from vntransfer_lab.runner.records import Record
from vntransfer_lab.runner.selection import RULES, choose

COMMON: dict[str, Any] = {
    "experiment": "e",
    "version": "1.1",
    "data": "d",
    "data_hash": "h",
    "target": "t",
    "method": "m",
    "hyper": {},
    "seed": 0,
    "selection": "fixed",
    "settings": {},
    "status": "done",
}


def record(key: str, **metrics: dict[int, float]) -> Record:
    return Record(key=key, metrics=metrics, **COMMON)


A = record("a", mae={1: 3.0, 2: 1.0, 3: 2.0}, source_validation={1: 5.0, 2: 4.0, 3: 3.0})
B = record("b", mae={1: 9.0, 2: 0.5}, source_validation={1: 3.0, 2: 8.0})


@pytest.mark.parametrize("rule", ["fixed", "last_epoch"])
def test_without_a_choice_the_last_step_counts(rule: str) -> None:
    assert choose([A], rule, "mae") == (A, 3)
    with pytest.raises(PresetError, match=r"among 2 .* of m"):
        choose([A, B], rule, "mae")


def test_validation_chooses_setting_and_step_and_ties_go_to_the_first() -> None:
    assert choose([A, B], "source_validation", "mae") == (A, 3)
    assert choose([B, A], "source_validation", "mae") == (B, 1)


def test_only_the_oracle_looks_at_the_metric_itself() -> None:
    assert choose([A, B], "oracle", "mae") == (B, 2)
    assert choose([A, B], "oracle", "mae", higher_is_better=True) == (B, 1)
    worse = record("w", mae={1: 99.0}, source_validation={1: 0.0})
    for rule, (criterion, _) in RULES.items():
        if criterion == "source_validation":
            assert choose([A, B, worse], rule, "mae") == (worse, 1)


def test_steps_without_the_metric_are_not_chosen() -> None:
    sparse = record("s", mae={2: 1.0}, source_validation={1: 0.0, 2: 5.0})
    assert choose([sparse], "source_validation", "mae") == (sparse, 2)


def test_a_rule_without_its_metric_is_explained() -> None:
    with pytest.raises(
        PresetError, match=r"needs the metric 'leave_one_source_out'.*recorded: mae"
    ):
        choose([A, B], "leave_one_source_out", "mae")
