"""Searches: fair, blind to the target's labels, the same however often they are interrupted."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from vntransfer_lab import report, retry, run
from vntransfer_lab.errors import PresetError, StoreError
from vntransfer_lab.runner.cells import Cell, expand
from vntransfer_lab.runner.preset import check, override, read_preset
from vntransfer_lab.runner.records import CellOutcome, Record
from vntransfer_lab.runner.search import Search, Study, size
from vntransfer_lab.runner.store import read_records

VNT = [sys.executable, "-c", "from vntransfer.cli import main; main()"]
SMOKE = read_preset("smoke")[1]
RIDGE = {"title": "t", "experiment": "smoke", "data": "synthetic", "methods": {"ridge": {}}}
ALPHAS = {"ridge": {"alpha": [0.1, 1.0, 10.0, 100.0]}}


def searched(**search: Any) -> dict[str, Any]:
    """The preset smoke with a search in place of its grid."""
    methods = {"constant": {}, "ridge": {}, "boosting": {}}
    space = ALPHAS | {"boosting": {"rounds": [20, 40, 60, 80]}}
    return SMOKE | {"methods": methods, "search": {"sampler": "grid", "space": space} | search}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"selection": "oracle"}, ["search: selection 'oracle' looks at the target's labels"]),
        ({"selection": "fixed"}, ["search: selection 'fixed' cannot choose among trials"]),
        ({"selection": "short_stream"}, ["searches inside its cells"]),
        ({"methods.ridge.grid.alpha": [1.0]}, ["search", "the grid of ridge"]),
        ({"search.sampler": "genetic"}, ["search.sampler: ", "'random'", "got 'genetic'"]),
        ({"search.trails": 3}, ["search: ", "'trails'", "did you mean 'trials'?"]),
        ({"search.trials": 5}, ["the space of ridge has 4 points, but every method gets 5 trials"]),
        ({"search.trials": 3}, ["has 4 points, but every method gets 3 trials; set trials"]),
        ({"search.trials": 0}, ["search.trials: ", "equal to 1", "got 0"]),
        ({"search.sampler": "tpe"}, ["search: trials is missing"]),
        ({"search.space.ridge.alfa": [1.0]}, ["search.space.ridge: ", "'alfa'", "'alpha'"]),
        ({"search.space.rige.alpha": [1.0]}, ["search: ", "'rige'", "did you mean 'ridge'?"]),
        ({"search.space.ridge.alpha": [1.0, 1.0]}, ["ridge.alpha: ", "given twice"]),
        ({"search.space.ridge.alpha": []}, ["ridge.alpha: ", "at least 1 item"]),
        ({"search.space.ridge.alpha": {"low": 1}}, ["ridge.alpha.high: is missing"]),
        ({"search.space.ridge.alpha": {"low": 2, "high": 1}}, ["expected low < high"]),
        (
            {"search.space.ridge.alpha": {"low": 0, "high": 1, "log": True}},
            ["expected 0 < low < high"],
        ),
        (
            {"search.space.ridge.alpha": {"low": 0.1, "high": 1.0}},
            ["the grid of ridge has a range; give lists, or use 'random'"],
        ),
        ({"search.space.ridge.alpha": [1.0, -1.0]}, ["ridge.alpha: ", "equal to 0", "got -1.0"]),
        ({"search.space.boosting": {}}, ["search.space.boosting: names no option"]),
        ({"search.fixed": ["boosting"]}, ["boosting is both searched and fixed"]),
        ({"search.space": ALPHAS}, ["search: boosting has no space; every method gets the same"]),
        ({"search": 3}, ["search: ", "got 3"]),
    ],
)
def test_unfair_and_impossible_searches_are_refused(
    changes: dict[str, Any], named: list[str]
) -> None:
    with pytest.raises(PresetError) as caught:
        check(override(searched(), settings=changes), "mine")
    for words in named:
        assert words in str(caught.value)


def test_a_grid_counts_its_trials_and_left_out_methods_need_none() -> None:
    preset = check(searched(), "mine")
    assert preset.search is not None
    assert preset.search.trials == 4
    fewer = check(override(searched(fixed=["boosting"]), methods=["ridge", "constant"]), "mine")
    assert fewer.search is not None
    assert list(fewer.search.space) == ["ridge"]
    assert fewer.search.fixed == ()


def study(**search: Any) -> Study:
    return Study(template(), Search(**{"space": ALPHAS} | search), "mae")


def template() -> Cell:
    return expand(check(RIDGE | {"selection": "source_validation"}, "mine"))[0]


def scored(value: float, *curve: float) -> CellOutcome:
    rows = [(i, "source_validation", v) for i, v in enumerate((*curve, value), start=1)]
    return CellOutcome([*rows, (len(rows), "mae", 5.0)])


def all_cells(own: Study, score: Any = lambda alpha: alpha) -> list[Cell]:
    while (cell := own.pending) is not None:
        own.tell(scored(score(cell.hyper["alpha"])))
    return own.cells


def test_a_grid_tries_every_point_once() -> None:
    cells = all_cells(study(sampler="grid", trials=4))
    assert sorted(cell.hyper["alpha"] for cell in cells) == ALPHAS["ridge"]["alpha"]
    lists = {"ridge": {"alpha": [1.0, 2.0, 3.0]}}
    assert len(all_cells(study(sampler="grid", trials=3, space=lists))) == 3


@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_points_of_a_small_space_are_never_repeated(sampler: str) -> None:
    cells = all_cells(study(sampler=sampler, trials=4))
    assert len({cell.key for cell in cells}) == 4
    numbers = {"ridge": {"alpha": {"low": 1.0, "high": 9.0, "log": True}}}
    drawn = [c.hyper["alpha"] for c in all_cells(study(sampler=sampler, trials=9, space=numbers))]
    assert len(set(drawn)) == 9
    assert all(1 <= alpha <= 9 for alpha in drawn)


def test_tpe_learns_from_results_and_random_does_not() -> None:
    space = {"ridge": {"alpha": {"low": 0.0, "high": 1.0, "log": False}}}

    def last(sampler: str, best: float) -> list[float]:
        own = study(sampler=sampler, trials=30, space=space)
        cells = all_cells(own, lambda alpha: (alpha - best) ** 2)
        return [abs(cell.hyper["alpha"] - best) for cell in cells[15:]]

    assert sum(last("tpe", 0.2)) < 0.7 * sum(last("random", 0.2))
    assert all_cells(study(sampler="random", trials=9, space=space)) == all_cells(
        study(sampler="random", trials=9, space=space), lambda alpha: -alpha
    )


def test_seeds_of_cells_and_of_the_search_draw_other_points() -> None:
    space = {"ridge": {"alpha": {"low": 0.0, "high": 1.0, "log": False}}}
    search = Search("random", 3, space)
    first = [
        Study(replace(template(), seed=seed), replace(search, seed=s), "mae")
        .cells[0]
        .hyper["alpha"]
        for seed, s in product((0, 1), (0, 1))
    ]
    assert len(set(first)) == 4


def test_a_study_follows_from_the_finished_trials_alone() -> None:
    space = {"ridge": {"alpha": {"low": 0.0, "high": 1.0, "log": False}}}
    search = Search("tpe", 12, space)
    whole = study(sampler="tpe", trials=12, space=space)
    store: dict[str, CellOutcome] = {}
    while (cell := whole.pending) is not None:
        store[cell.key] = scored((cell.hyper["alpha"] - 0.3) ** 2)
        whole.tell(store[cell.key])
    for n in range(12):
        known = {cell.key: store[cell.key] for cell in whole.cells[:n]}
        resumed = Study(template(), search, "mae", known.get)
        assert resumed.pending == whole.cells[n]
    assert Study(template(), search, "mae", store.get).pending is None


def test_failed_trials_count_as_trials() -> None:
    own = study(sampler="tpe", trials=4)
    own.tell(CellOutcome(error="it broke"))
    own.tell(CellOutcome(error="it broke again"))
    own.tell(scored(1.0))
    assert own.tell(scored(2.0)) is None
    assert len(own.cells) == 4


def test_a_rule_that_a_method_does_not_record_is_named() -> None:
    with pytest.raises(PresetError, match="needs the metric 'source_validation', which ridge"):
        study(sampler="grid", trials=4).tell(CellOutcome([(1, "mae", 1.0)]))


def cells_of(folder: Path) -> list[Record]:
    return read_records(folder)[1]


def test_every_method_gets_its_trials_and_tables_say_so(tunable: Path, tmp_path: Path) -> None:
    tables = []
    for jobs in (1, 2):
        summary = run(tunable, jobs=jobs, out=tmp_path / str(jobs))
        assert (summary.done, summary.failed) == (2 * 2 * (8 + 8 + 1), 0)
        tables.append(report(tmp_path / str(jobs)))
    assert tables[0] == tables[1]
    assert "search: tpe, 8 trials of every method" in tables[0]
    assert "not searched: plain" in tables[0]
    assert "MISSING" not in tables[0]
    made = [record for record in cells_of(tmp_path / "1") if record.method == "one"]
    by_study: dict[tuple[str, int], list[Record]] = {}
    for record in made:
        by_study.setdefault((record.target, record.seed), []).append(record)
    assert {len(trials) for trials in by_study.values()} == {8}
    again = run(tunable, jobs=2, out=tmp_path / "1")
    assert again.computed == 0


def test_the_target_s_labels_have_no_say(tunable: Path, tmp_path: Path) -> None:
    """The target's error is smallest where the held-out error is largest."""
    from vntransfer_lab.reports.report import load_report

    run(tunable, methods=["one"], targets=["a"], seeds=1, jobs=1, out=tmp_path / "run")
    loaded = load_report(tmp_path / "run")
    ((record, step),) = loaded.chosen["none", ()].values()
    errors = [abs(other.hyper["x"] - 0.3) for other in loaded.records]
    assert abs(record.hyper["x"] - 0.3) == min(errors)
    assert step == 3
    assert record.metrics["error"][step] == max(
        max(other.metrics["error"].values()) for other in loaded.records
    )


def wait_for_cells(folder: Path, count: int) -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        with suppress(StoreError):
            if sum(record.status == "done" for record in cells_of(folder)) >= count:
                return
        time.sleep(0.02)
    raise AssertionError(f"{folder}: not {count} cells within two minutes")


def test_a_killed_search_loses_and_doubles_no_trial(tunable: Path, tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    command = [*VNT, "bench", "run", str(tunable), "--jobs", "2", "--out", str(folder)]
    command += ["--set", "seconds=0.05", "--targets", "a"]
    for count in (3, 12):
        process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
        wait_for_cells(folder, count)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    settings = {"seconds": 0.05}
    run(tunable, targets=["a"], settings=settings, jobs=2, out=tmp_path / "alone")
    assert report(folder) == report(tmp_path / "alone")
    assert [r.key for r in cells_of(folder)] == [r.key for r in cells_of(tmp_path / "alone")]
    connection = sqlite3.connect(folder / "store.sqlite")
    (rows,) = connection.execute("SELECT count(*) FROM cells").fetchone()
    connection.close()
    assert rows == 2 * (8 + 8 + 1)


def test_failed_trials_can_be_retried(tunable: Path, tmp_path: Path) -> None:
    text = tunable.read_text().replace('sampler = "tpe"\ntrials = 8', 'sampler = "grid"')
    text = text.replace("{low = 0.0, high = 1.0}", "[0.1, 0.2, 0.3]")
    text = text.replace("{low = 0.001, high = 1.0, log = true}", "[0.4, 0.5, 0.6]")
    tunable.write_text(text + "bad = [0.4]\n")
    summary = run(tunable, jobs=1, out=tmp_path / "run")
    assert (summary.done, summary.failed) == (24, 4)
    again = retry(tmp_path / "run", jobs=1)
    assert (again.done, again.failed, again.computed) == (24, 4, 4)


def test_shipped_searches_give_every_method_six_points() -> None:
    raw = read_preset("amazon4-search")[1]
    preset = check(raw, "amazon4-search")
    assert preset.search is not None
    assert {size(own) for own in preset.search.space.values()} == {6}
    assert set(preset.methods) - set(preset.search.space) == {"constant"}
