"""Every option of a command reaches the function that does the work, under its own name."""

import importlib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from vntransfer import adapt, example_table
from vntransfer.cli import app
from vntransfer.errors import DataError
from vntransfer.tables import ReadOptions
from vntransfer.tables.problem import TableColumns
from vntransfer.workflows.adapt_settings import AdaptSettings
from vntransfer.workflows.predict import WriteOptions
from vntransfer_lab import run
from vntransfer_lab.reports.report import View

TABLE = str(example_table())
ROLES = ["--domain", "town", "--response", "price"]
COLUMNS = ["--features", "area,kind", "--drop", "garden", "--category", "kind"]
FLAGS = ["--use-target-labels", "--decimal", ","]
JUDGED: dict[str, Any] = {"random_state": 5, "compare": (), "n_jobs": 3}
READ = {"features": ["area", "kind"], "drop": ["garden"], "category": ["kind"]}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "m"
    adapt(TABLE, domain="town", response="price", target="Saltby", method="ridge").save(folder)
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "r"
    run("smoke", methods=["constant"], targets=["s1"], seeds=1, jobs=1, out=folder)
    return folder


def seen(
    monkeypatch: pytest.MonkeyPatch, function: str, *arguments: str
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a command calls a function with."""
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def record(*args: Any, **options: Any) -> None:
        calls.append((args, options))
        raise DataError("seen")

    module, _, name = function.rpartition(".")
    monkeypatch.setattr(importlib.import_module(module), name, record)
    done = CliRunner().invoke(app, list(arguments))
    assert calls, done.output + done.stderr
    return calls[0]


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        (
            "vntransfer.workflows.adapt.read_problem",
            ["adapt", TABLE, *ROLES, *COLUMNS, "--target", "Saltby", *FLAGS],
            {"use_target_labels": True, "targets": ["Saltby"], "options": ReadOptions(decimal=",")},
        ),
        (
            "vntransfer.workflows.adapt.fit_problem",
            [
                "adapt",
                TABLE,
                *ROLES,
                "--target",
                "Saltby",
                "--seed",
                "5",
                "--no-compare",
                "--jobs",
                "3",
            ],
            {"settings": AdaptSettings(TableColumns("town", "price"), ["Saltby"], **JUDGED)},
        ),
        (
            "vntransfer.workflows.learn.learn_tasks",
            [
                *("learn", TABLE, "--task", "town", "--response", "price", "--epochs", "2"),
                *("--order", "sorted", "--held-out", "0.4", "--lr", "0.02", "--batch-size", "3"),
                *("--kind", "regression", "--seed", "5", "--method", "ewc"),
            ],
            {
                "order": "sorted",
                "held_out": 0.4,
                "lr": 0.02,
                "batch_size": 3,
                "epochs": 2,
                "kind": "regression",
                "random_state": 5,
                "method": "ewc",
            },
        ),
        (
            "vntransfer.workflows.relate.relate",
            [
                *("relate", TABLE, *ROLES, *COLUMNS),
                *("--divergence", "jeffreys", "--resamples", "99", "--seed", "5"),
                *("--engine", "dask", "--scheduler", "tcp://here", "--delimiter", "tab"),
                *("--thousands", " ", "--encoding", "latin-1", "--month-first", "--unit", "€"),
            ],
            {
                **READ,
                "divergence": "jeffreys",
                "n_resamples": 99,
                "random_state": 5,
                "engine": "dask",
                "scheduler": "tcp://here",
                "read_options": ReadOptions("\t", None, " ", "latin-1", False, ("€",)),
            },
        ),
        (
            "vntransfer_lab.data.fetch.fetch",
            ["data", "fetch", "--all", "--force"],
            {"force": True},
        ),
    ],
)
def test_options_arrive(
    function: str, arguments: list[str], expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, options = seen(monkeypatch, function, *arguments)
    assert {name: options[name] for name in expected} == expected


def test_options_of_predict_arrive(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = ["--only", "--escape-formulas", "--level", "0.5", "--target", "Saltby"]
    function = "vntransfer.workflows.predict.predict_file"
    out = str(tmp_path / "o.csv")
    args, options = seen(monkeypatch, function, "predict", str(model), TABLE, "--out", out, *more)
    assert args[1:] == (Path(TABLE), Path(out))
    written = WriteOptions(columns=False, escape_formulas=True)
    expected = {"write_options": written, "level": 0.5, "target": ["Saltby"]}
    assert {name: options[name] for name in expected} == expected


def test_options_of_verify_and_report_arrive(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    which = ["--data", "bike:k=8,seed=1,amazon4", "--targets", "a", "--methods", "align,darn"]
    more = ["--cells", "7", "--seed", "5", "-j", "1"]
    function = "vntransfer_lab.reports.verification.verify"
    _, options = seen(monkeypatch, function, "bench", "verify", str(small), *which, *more)
    assert options.pop("watcher") is not None
    assert options == {
        "data": ["bike:k=8,seed=1", "amazon4"],
        "targets": ["a"],
        "methods": ["align", "darn"],
        "cells": 7,
        "seed": 5,
        "jobs": 1,
    }
    more = ["--format", "csv", "--times", "--baseline", "ridge", "--methods", "constant"]
    function = "vntransfer_lab.reports.report.report"
    args, options = seen(monkeypatch, function, "bench", "report", str(small), *more)
    assert args == (small, "csv")
    assert options == {"times": True, "view": View("ridge", ["constant"])}


def test_options_of_run_arrive(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    which = ["--methods", "ridge", "--targets", "s2", "--seeds", "1", "--set", "rows=5"]
    where = ["--reuse", str(small), "--engine", "dask", "--scheduler", "tcp://here", "-j", "3"]
    more = ["--budget", "90m", "--out", str(tmp_path / "r")]
    function = "vntransfer_lab.runner.run.run"
    args, options = seen(monkeypatch, function, "bench", "run", "smoke", *which, *where, *more)
    assert args == ("smoke",)
    expected = {
        "methods": ["ridge"],
        "targets": ["s2"],
        "seeds": 1,
        "settings": {"rows": 5},
        "jobs": 3,
        "out": tmp_path / "r",
    }
    assert {name: options[name] for name in expected} == expected
    how = options["options"]
    assert (how.engine, how.scheduler) == ("dask", "tcp://here")
    assert (how.reuse, how.budget) == ([small], "90m")
