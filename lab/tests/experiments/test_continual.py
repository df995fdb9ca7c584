"""The continual experiment at tiny size: what its cells report, what the search may see."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lab_helpers.makers import MAKERS, omniglot_files, zipped
from lab_helpers.runs import TINY_STREAM, changed, finished
from vntransfer.continual import METHODS, as_tasks, dense, score
from vntransfer.pages import Intervals, Panels
from vntransfer_lab import RunOptions, pack, run
from vntransfer_lab.data import load
from vntransfer_lab.errors import PresetError
from vntransfer_lab.experiments import continual
from vntransfer_lab.experiments.continual_methods import SHARED, VARIANTS, candidates, choose
from vntransfer_lab.reports.drawings import draw, drawings_of
from vntransfer_lab.reports.page import write_page
from vntransfer_lab.reports.report import load_report, report
from vntransfer_lab.reports.statistics import Estimate
from vntransfer_lab.reports.verification import verify
from vntransfer_lab.runner.cells import Cell, expand
from vntransfer_lab.runner.plan import RunPlan
from vntransfer_lab.runner.preset import Preset, check, override, read_preset, shipped
from vntransfer_lab.runner.records import CellOutcome
from vntransfer_lab.runner.store import Store, read_records
from vntransfer_lab.runner.workers import compute

pytestmark = pytest.mark.filterwarnings("ignore::vntransfer.errors.DataWarning")
FEW: dict[str, Any] = {
    "methods": ["l2"],
    "settings": {**TINY_STREAM, "methods.l2.lr": [0.01, 0.1], "methods.l2.strength": [1.0]},
}
STREAM_PRESETS = ["mnistP", "mnistR", "fashionP", "notmnistP"]


@pytest.fixture(autouse=True)
def _made_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mnistP", "fashionP", "notmnistP", "omniglot"):
        MAKERS[name](tmp_path / "made")
    monkeypatch.setenv("VNT_DATA", str(tmp_path / "made"))
    for cached in (continual._files, continual._stream):
        cached.cache_clear()


def tiny(name: str, **changes: Any) -> Preset:
    settings = {**TINY_STREAM, **changes.pop("settings", {})}
    return changed(name, settings=settings, **changes)


def cells(name: str, **changes: Any) -> list[Cell]:
    return expand(tiny(name, **changes))


def test_every_variant_is_a_method() -> None:
    model = dense([4, 3, 2], generator=torch.Generator().manual_seed(0))
    for name, variant in VARIANTS.items():
        tuned = {**variant.tuned, **variant.options}
        if "groups" in tuned:
            tuned["groups"] = 2
        assert METHODS[variant.id](model, **tuned).id == variant.id, name


def test_every_method_of_every_preset_learns() -> None:
    tiny = {**TINY_STREAM, "n_tasks": 2, "n_train": 4, "n_test": 5, "batch_size": 2, "epochs": 1}
    tiny |= {"size": 16, "channels": 3}
    done = set()
    for name in shipped():
        if read_preset(name)[1]["experiment"] != "continual":
            continue
        for cell in cells(name, seeds=1, settings=tiny):
            kind = cell.method, cell.data if cell.data in ("omniglot", "mnistS") else ""
            if kind in done:
                continue
            done.add(kind)
            values = candidates(cell.method, cell.hyper, cell.settings)[0]
            hyper = {key: v if key in SHARED else [v] for key, v in values.items()}
            hyper |= {"lr": [values["lr"]], "batch_size": 0, "epochs": 0}
            outcome = compute(replace(cell, hyper=hyper, selection="fixed"))
            assert not outcome.error, f"{name}: {cell.label}: {outcome.traceback}"
    assert {method for method, _ in done} >= {"covp_er", "covp_forgetting", "rsp_watching", "mer"}


@pytest.mark.parametrize("name", STREAM_PRESETS)
def test_every_method_has_as_many_candidates(name: str) -> None:
    settings = {"lr": 0.0, "strength": 0.0}
    preset = check(read_preset(name)[1], name)
    counts = Counter(
        len(candidates(method, hyper, settings))
        for method, hyper in preset.methods.items()
        if method not in ("rsp_untuned", "closed_form")
    )
    assert set(counts) == {12}
    assert len(candidates("closed_form", preset.methods["closed_form"], settings)) == 1
    assert set(preset.paper["values"][name][name]) == {"agem", "mer", "rewc", "ewc", "rsp"}


def test_presets_of_the_issue_are_there() -> None:
    wanted = {*STREAM_PRESETS, "groups", "sensitivity", "forgetting", "omniglot", "omniglot-full"}
    assert wanted <= set(shipped())


def test_a_cell_is_what_the_parts_say() -> None:
    (cell,) = cells("streams", methods=["sgd"], seeds=[3], settings={"data": ["mnistP"]})
    steps = list(continual._run(cell, None))
    last = {k: v for step, found in steps if step == 3 for k, v in found.items()}
    stream = as_tasks(load("mnistP", n_tasks=3, n_train=20, n_test=10, seed=3))
    model = dense([784, 12, 8, 10], generator=torch.Generator().manual_seed(3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    R = np.full((3, 3), np.nan)
    for i, task in enumerate(stream):
        for x, y in zip(task.x.split(1), task.y.split(1), strict=True):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        R[i, : i + 1] = [100 * score(model, seen) for seen in stream[: i + 1]]
    for i, (step, found) in enumerate(steps[:3]):
        assert step == i + 1
        assert [found[f"task/{j}"] for j in range(i + 1)] == pytest.approx(R[i, : i + 1].tolist())
    assert last["ra"] == pytest.approx(R[2].mean())
    assert last["la"] == pytest.approx(np.diag(R).mean())
    assert last["bt"] == pytest.approx(R[2].mean() - np.diag(R).mean())


@pytest.mark.parametrize("data", ["mnistP", "mnistC", "mnistS"])
def test_scores_from_features_computed_once_are_those_of_the_network(data: str) -> None:
    settings = {"data": [data], "n_tasks": 5, "n_train": 10, "n_test": 4}
    (cell,) = cells("streams", methods=["closed_form"], seeds=[3], settings=settings)
    steps = list(continual._run(cell, None))
    tasks = continual._tasks(data, cell.settings, 3)
    method = continual._make(cell, {"ridge": 0.03}, tasks)
    for i, task in enumerate(tasks):
        method.learn(task)
        expected = [100 * score(method.model, seen) for seen in tasks[: i + 1]]
        assert [steps[i][1][f"task/{j}"] for j in range(i + 1)] == pytest.approx(expected)
    last = steps[-1][1]
    assert last["kept"] == method.bytes_kept
    assert "chosen/lr" not in last


def test_tasks_of_class_incremental_streams_share_one_head() -> None:
    settings = {"n_tasks": 5, "n_train": 10, "n_test": 4}
    cell = cells("class-incremental", methods=["covp"], seeds=[3], settings=settings)[0]
    tasks = continual._tasks(cell.data, cell.settings, 3)
    assert [task.columns for task in tasks] == [None] * 5
    assert sorted(set(torch.cat([task.y for task in tasks]).tolist())) == list(range(10))
    assert continual._make(cell, {"lr": 0.01, "strength": 10.0}, tasks).model[-1].out_features == 10


@pytest.mark.parametrize(("own", "common"), [(3, 1), (1, 3)])
def test_passes_of_a_method_are_shuffled_as_those_of_all(own: int, common: int) -> None:
    found = []
    for settings in ({"epochs": common, "methods.sgd.epochs": own}, {"epochs": own}):
        chosen = {"data": ["mnistP"], **settings}
        (cell,) = cells("streams", methods=["sgd"], seeds=[3], settings=chosen)
        found.append(list(continual._run(cell, None)))
    assert found[0] == found[1]


def test_the_search_never_sees_the_stream_or_the_test_part() -> None:
    for rule, size in (("short_stream", (2, 10)), ("full_stream", (3, 20))):
        settings = {"selection": rule, "search_streams": 2}
        (cell,) = cells("mnistP", methods=["l2"], seeds=[3], settings=settings)
        trials = continual.KIND.first(cell)
        assert len({trial.key for trial in trials}) == 24
        assert {trial.seed for trial in trials} == {1000, 1001}
        for trial in trials:
            own = trial.settings
            assert (own["n_tasks"], own["n_train"], own["n_test"]) == (*size, 8)
            assert own["held_out"]
            assert trial.selection == "fixed"
        x = continual._tasks("mnistP", trials[0].settings, 1000)[0].x_test
        tested = continual._tasks("mnistP", cell.settings | {"n_test": 40}, 1000)[0].x_test
        assert not (x[:, None] == tested[None]).all(-1).any()


def test_all_seeds_and_methods_share_the_cells_of_a_search() -> None:
    found = cells("mnistP", methods=["ewc", "rsp_untuned", "sgd"], seeds=3)
    trials = {trial.key: trial for cell in found for trial in continual.KIND.first(cell)}
    assert Counter(trial.method for trial in trials.values()) == {"ewc": 12, "sgd": 12}
    elsewhere = cells("mnistP", methods=["ewc"], settings={"search_tasks": 3})
    assert not trials.keys() & {trial.key for trial in continual.KIND.first(elsewhere[0])}
    longer = {"selection": "full_stream"}
    a, b = (
        continual.KIND.first(cells("mnistP", methods=["ewc"], settings={**longer, **more})[0])
        for more in ({}, {"search_tasks": 4})  # which has no effect on a search of full length
    )
    assert [trial.key for trial in a] == [trial.key for trial in b]


def test_the_search_takes_the_best_on_its_stream() -> None:
    (cell,) = cells("mnistP", methods=["sgd"], seeds=1)
    settings = {**cell.settings, "n_tasks": 2, "n_train": 10, "n_test": 8, "held_out": True}
    searched = replace(cell, settings=settings, seed=1000)
    scores = []
    for hyper in candidates("sgd", cell.hyper, cell.settings):
        *_, last = continual._learn(searched, hyper)
        scores.append((float(np.mean(last.accuracies)), hyper["lr"]))
    best = next(lr for value, lr in scores if value == max(scores)[0])
    assert choose(cell, continual._final)["lr"] == best
    computed = [compute(trial) for trial in continual.KIND.first(cell)]
    ra = [next(v for _, name, v in outcome.rows if name == "ra") for outcome in computed]
    assert ra == [value for value, _ in scores]


def test_what_a_cell_is_given_decides() -> None:
    (cell,) = cells("mnistP", methods=["l2"], seeds=1)
    trials = continual.KIND.first(cell)
    for k in (0, 7):
        given = tuple((trial.key, 50.0 + (i == k)) for i, trial in enumerate(trials))
        chosen = choose(replace(cell, given=given), _never)
        assert [[chosen["lr"]], [chosen["strength"]]] == [
            trials[k].hyper[name] for name in ("lr", "strength")
        ]
    tie = tuple((trial.key, 50.0) for trial in trials)
    chosen = choose(replace(cell, given=tie), _never)
    assert [chosen["lr"]] == trials[0].hyper["lr"]
    asked: list[str] = []

    def learn(trial: Cell) -> float:
        asked.append(trial.key)
        return 60.0

    chosen = choose(replace(cell, given=tie[:5] + tie[6:]), learn)  # that one failed
    assert asked == [trials[5].key]
    assert [chosen["strength"]] == trials[5].hyper["strength"]


def test_a_candidate_that_diverges_is_not_taken() -> None:
    rates = {"methods.covp.lr": [1e30, 0.01], "methods.covp.strength": [10.0]}
    (cell,) = cells("mnistP", methods=["covp"], seeds=1, settings=rates)
    assert choose(cell, continual._final)["lr"] == 0.01
    outcomes = [compute(trial) for trial in continual.KIND.first(cell)]
    assert not any(outcome.error for outcome in outcomes)
    assert {name: v for _, name, v in outcomes[0].rows}["ra"] == 0
    (cell,) = cells("mnistP", methods=["covp"], seeds=1, settings={**rates, "lr": 1e30})
    outcome = compute(cell)
    assert (outcome.rows, outcome.error) == ([(0, "diverged", 1.0)], "")


def test_seeds_that_diverge_are_counted_and_never_averaged(tmp_path: Path) -> None:
    settings = {"per_data.mnistP.ewc_squared_mean.lr": [1e30], "data": ["mnistP", "mnistR"]}
    own = tiny("table3-published", methods=["sgd", "ewc_squared_mean"], seeds=2, settings=settings)
    folder = finished(tmp_path / "run", own)
    loaded = load_report(folder)
    stream, other, mean, *compared = loaded.tables()
    assert [row[:2] for row in stream.rows][1] == ["ewc_squared_mean", "diverged (2 of 2 seeds)"]
    assert stream.rows[1][-1] == "lr 1e+30, strength 100"
    assert isinstance(other.rows[1][1], Estimate)
    assert mean.rows[1][1] == "diverged (2 of 2 seeds)"
    assert mean.rows[1][3] is None
    assert any("ewc_squared_mean on mnistP: diverged" in note for note in stream.notes)
    assert {row[0] for row in compared[0].rows} == {"mnistR"}
    for form in ("terminal", "markdown", "csv"):
        assert "diverged (2 of 2 seeds)" in report(folder, form)
    assert "diverged (2 of 2 seeds)" in write_page(folder, tmp_path / "page.html").read_text()
    packed = tmp_path / "packed"
    pack(folder, packed)
    checked = verify(packed, cells=1, data=["mnistP"], methods=["ewc_squared_mean"], jobs=1)
    assert [(one.metric, one.before, one.now, one.problem) for one in checked] == [
        ("diverged", 1.0, 1.0, "")
    ]


def test_some_seeds_that_diverge_hide_the_mean_of_the_others(tmp_path: Path) -> None:
    own = tiny("table3-published", methods=["sgd"], seeds=3, settings={"data": ["mnistP"]})
    folder = tmp_path / "run"
    with Store(folder, write=True) as store:
        store.plan(own, expand(own))
        for cell in expand(own):
            ends = [(3, name, 50.0 + cell.seed) for name in ("ra", "la", "bt")]
            rows = [(1, "diverged", 1.0)] if cell.seed == 0 else ends
            store.finish(cell.key, CellOutcome(rows))
    (table,) = load_report(folder).tables()
    assert table.rows[0][1] == "diverged (1 of 3 seeds)"
    (note,) = (note for note in table.notes if note.startswith("sgd on mnistP"))
    assert note == "sgd on mnistP: diverged (1 of 3 seeds); ra of the others 51.5 ± 0.5"


def _never(trial: Cell) -> float:
    raise AssertionError(f"{trial.label} was given")


def test_untuned_rsp_takes_the_rate_of_ewc() -> None:
    (rsp,) = cells("mnistP", methods=["rsp_untuned"], seeds=1)
    trials = continual.KIND.first(rsp)
    for k in (0, 11):
        given = tuple((trial.key, float(i == k)) for i, trial in enumerate(trials))
        chosen = choose(replace(rsp, given=given), _never)
        assert [chosen["lr"]] == trials[k].hyper["lr"]
        assert chosen["strength"] == 3


def test_a_run_searches_once_for_all_seeds(tmp_path: Path) -> None:
    _search_once(tmp_path, seeds=3, engine="local")
    again = run("mnistP", seeds=4, jobs=1, out=tmp_path, **FEW)
    assert again.computed == 1  # one more seed, no more search


def test_a_cluster_searches_once(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    _search_once(tmp_path, seeds=1, engine="dask")


def _search_once(folder: Path, *, seeds: int, engine: str) -> None:
    options = RunOptions(engine)
    summary = run("mnistP", seeds=seeds, jobs=1, out=folder, options=options, **FEW)
    assert (summary.computed, summary.done, summary.failed) == (2 + seeds, 2 + seeds, 0)
    _, records, others = read_records(folder)
    assert [record.seed for record in records] == list(range(seeds))
    assert others == 0
    alone = compute(cells("mnistP", seeds=seeds, **FEW)[-1])  # searches by itself
    assert not alone.error, alone.traceback
    for step, name, value in alone.rows:
        assert records[-1].metrics[name][step] == value


def test_a_search_that_fails_is_made_again_by_the_cell(tmp_path: Path) -> None:
    preset = check(override(read_preset("mnistP")[1], seeds=1, **FEW), "mnistP")
    with Store(tmp_path, write=True) as store:
        plan = RunPlan(preset, expand(preset), store)
        first, second = plan.next(), plan.next()
        assert first is not None
        assert second is not None
        assert plan.next() is None  # the cell waits for both
        for trial, outcome in ((first, CellOutcome(error="lost")), (second, compute(second))):
            store.finish(trial.key, outcome)
            plan.tell(trial, outcome)
        cell = plan.next()
        assert cell is not None
        assert [key for key, _ in cell.given] == [second.key]
        assert compute(cell).rows == compute(expand(preset)[0]).rows
        counts = store.counts()
    assert counts == {"failed": 1, "done": 1, "pending": 1}


def test_fixed_settings_cannot_be_lists() -> None:
    settings = {"selection": "fixed"}
    (cell,) = cells("mnistP", methods=["l2"], seeds=1, settings=settings)
    with pytest.raises(PresetError, match=r"12 candidates.*'fixed'"):
        choose(cell, _never)


def test_settings_without_effect_do_not_make_new_cells() -> None:
    found = cells("forgetting", seeds=1)
    angles = Counter((cell.data, cell.settings["max_angle"]) for cell in found)
    assert angles["mnistR", 90.0] == angles["mnistR", 180.0] == angles["mnistP", 90.0] == 1
    assert ("mnistP", 180.0) not in angles


def test_report_with_the_papers_values(tmp_path: Path) -> None:
    methods = ["sgd", "ewc", "l2"]
    folder = finished(tmp_path / "run", tiny("mnistP", methods=methods, seeds=2))
    tables = load_report(folder).tables()
    head = tables[0]
    costs = ["kept (MB)", "processor (s)"]
    assert head.header[:7] == ["method", "RA", "LA", "BT", *costs, "paper RA"]
    rows = {row[0]: row for row in head.rows}
    assert rows["ewc"][6:9] == [66.1, 77.0, -12.0]
    assert rows["sgd"][6:9] == [None] * 3
    assert str(rows["l2"][-1]).startswith("lr 0.0")
    assert any("selection: short_stream" in note for note in head.notes)
    names = {path.stem for path in draw(folder, tmp_path / "figures")}
    assert names == {f"mnistP-{name}" for name in ("values", "bytes", "tasks-mnistP")}
    (beside,) = (own.chart for own in drawings_of(load_report(folder)) if own.name == "values")
    assert isinstance(beside, Panels)
    (panel,) = beside.charts
    assert isinstance(panel, Intervals)
    assert (panel.names, panel.others) == (methods, [None, 66.1, None])


def test_sensitivity_and_forgetting_tables(tmp_path: Path) -> None:
    sweep = {"data": ["mnistP"], "grid.lr": [0.01, 0.1], "grid.strength": [1, 10]}
    preset = tiny("sensitivity", methods=["ewc", "l2"], seeds=2, settings=sweep)
    folder = finished(tmp_path / "s", preset)
    assert [table.title for table in load_report(folder).tables()] == [
        "RA of ewc on mnistP",
        "RA of l2 on mnistP",
        "summary",
    ]
    assert len(draw(folder, tmp_path / "figures")) == 1
    few = {"data": ["mnistR"], "n_tasks": 5, "grid.max_angle": [90.0]}
    folder = finished(tmp_path / "f", tiny("forgetting", seeds=2, settings=few))
    table = load_report(folder).tables()[-1]
    assert table.title.endswith("divergence and forgetting")
    assert -1 <= table.rows[0][2].mean <= 1  # type: ignore[union-attr]


def test_ends_of_long_streams(tmp_path: Path) -> None:
    lengths = {"data": ["mnistP"], "grid.n_tasks": [3, 20, 21]}
    preset = tiny("covp-long", methods=["sgd"], seeds=2, settings=lengths)
    folder = finished(tmp_path / "long", preset)
    table = next(t for t in load_report(folder).tables() if t.title.endswith("newest tasks"))
    assert [row[0] for row in table.rows] == ["mnistP, n_tasks=20", "mnistP, n_tasks=21"]
    _, records, _ = read_records(folder)
    own = [r.metrics for r in records if r.settings["n_tasks"] == 21]
    final = np.array([[m[f"task/{j}"][21] for j in range(21)] for m in own])
    ends = [final[:, :10], final[:, 10:11], final[:, 11:]]
    found = [value.mean for value in table.rows[1][2:]]  # type: ignore[union-attr]
    np.testing.assert_allclose(found, [part.mean() for part in ends])
    assert table.rows[0][3] is None  # nothing between the first and the last ten of twenty


def test_omniglot_has_a_head_per_alphabet_and_searches_on_others(tmp_path: Path) -> None:
    files = omniglot_files(("Alpha", "Beta", "Gamma", "Delta"))
    zipped(tmp_path / "made" / "omniglot" / "images_background.zip", files)
    settings = {"n_tasks": 2, "n_train": 2, "epochs": 2, "channels": 4, "hidden": [6]}
    settings |= {"search_tasks": 2, "search_train": 2}
    for cell in cells("omniglot", methods=["ewc", "mer"], seeds=1, settings=settings):
        *_, (_, last) = continual._run(cell, None)
        assert 0 <= last["ra"] <= 100
    lists = {"methods.ewc.lr": [0.1], "methods.ewc.strength": [1.0, 10.0]}
    (cell,) = cells(
        "omniglot",
        methods=["ewc"],
        seeds=1,
        settings={**settings, **lists},
    )
    trials = continual.first(cell)
    assert len(trials) == 2
    for trial in trials:
        tasks = continual._tasks("omniglot", trial.settings, trial.seed)
        heads = [task.columns.stop - task.columns.start for task in tasks if task.columns]
        assert heads == [5, 4]  # characters of Delta and Gamma
    assert choose(cell, continual._final)["strength"] in (1.0, 10.0)


def test_tables_and_a_figure_show_bytes_and_processor_time(tmp_path: Path) -> None:
    preset = tiny(
        "class-incremental",
        methods=["sgd", "closed_form"],
        seeds=1,
        settings={"n_tasks": 5, "n_train": 10, "n_test": 4},
    )
    folder = finished(tmp_path / "run", preset)
    first, *_ = tables = load_report(folder).tables()
    assert first.header[4:6] == ["kept (MB)", "processor (s)"]
    kept = [row[4] for row in first.rows]
    assert 0 < kept[0] < kept[1]
    mean = next(table for table in tables if table.title.endswith("RA"))
    assert [row[-2] for row in mean.rows] == kept
    assert "bytes" in {path.stem.split("-")[-1] for path in draw(folder, tmp_path / "figures")}
