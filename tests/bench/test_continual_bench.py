"""The continual experiment at tiny size: what its cells report, what the search may see."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from makers import MAKERS
from vntransfer.bench.cells import Cell, expand
from vntransfer.bench.experiments import continual
from vntransfer.bench.experiments.continual_methods import VARIANTS
from vntransfer.bench.figures import draw
from vntransfer.bench.preset import check, override, read_preset, shipped
from vntransfer.bench.report import load_report
from vntransfer.bench.store import Store
from vntransfer.bench.workers import compute
from vntransfer.continual import METHODS, as_tasks, dense, score
from vntransfer.data import load
from vntransfer.errors import PresetError

pytestmark = pytest.mark.filterwarnings("ignore::vntransfer.errors.DataWarning")
TINY: dict[str, Any] = {
    "n_tasks": 3,
    "n_train": 20,
    "n_test": 10,
    "search_tasks": 2,
    "search_train": 10,
    "search_test": 8,
    "hidden": [12, 8],
}
STREAM_PRESETS = ["mnistP", "mnistR", "fashionP", "notmnistP"]


@pytest.fixture(autouse=True)
def _made_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mnistP", "fashionP", "notmnistP", "omniglot"):
        MAKERS[name](tmp_path / "made")
    monkeypatch.setenv("VNT_DATA", str(tmp_path / "made"))
    for cached in (continual._files, continual._stream, continual._search):
        cached.cache_clear()


def cells(name: str, **changes: Any) -> list[Cell]:
    settings = {**TINY, **changes.pop("settings", {})}
    raw = override(read_preset(name)[1], settings=settings, **changes)
    return expand(check(raw, name))


def finished(name: str, folder: Path, **changes: Any) -> Path:
    settings = {**TINY, **changes.pop("settings", {})}
    preset = check(override(read_preset(name)[1], settings=settings, **changes), name)
    with Store(folder, write=True) as store:
        for cell in store.plan(preset, expand(preset)):
            outcome = compute(cell)
            assert not outcome.error, outcome.traceback
            store.finish(cell.key, outcome)
    return folder


def test_every_variant_is_a_method() -> None:
    model = dense([4, 3, 2], generator=torch.Generator().manual_seed(0))
    for name, variant in VARIANTS.items():
        tuned = {**variant.tuned, **variant.options}
        if "groups" in tuned:
            tuned["groups"] = 2
        assert METHODS[variant.id](model, **tuned).id == variant.id, name


@pytest.mark.parametrize("name", STREAM_PRESETS)
def test_every_method_has_as_many_candidates(name: str) -> None:
    settings = {"lr": 0.0, "strength": 0.0}
    preset = check(read_preset(name)[1], name)
    counts = Counter(
        len(continual.candidates(method, hyper, settings))
        for method, hyper in preset.methods.items()
        if method != "rsp_untuned"
    )
    assert set(counts) == {12}
    assert set(preset.paper["values"][name][name]) == {"agem", "mer", "rewc", "ewc", "rsp"}


def test_presets_of_the_issue_are_there() -> None:
    wanted = {*STREAM_PRESETS, "groups", "sensitivity", "forgetting", "omniglot", "omniglot-full"}
    assert wanted <= set(shipped())


def test_a_cell_is_what_the_parts_say() -> None:
    (cell,) = cells("streams", methods=["sgd"], seeds=[3], settings={"data": ["mnistP"]})
    steps = list(continual._run(cell))
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


def test_the_search_never_sees_the_stream_or_the_test_part(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, bool, int]] = []
    tasks = continual._tasks

    def watched(data: str, settings: Any, seed: int, *, held_out: bool = False) -> Any:
        seen.append((seed, held_out, settings["n_tasks"]))
        return tasks(data, settings, seed, held_out=held_out)

    monkeypatch.setattr(continual, "_tasks", watched)
    for cell in cells("mnistP", methods=["l2"], seeds=2):
        list(continual._run(cell))
    searched = [entry for entry in seen if entry[1]]
    assert searched == [(1000, True, 2)] * 12  # once for both seeds
    assert [entry for entry in seen if not entry[1]] == [(0, False, 3), (1, False, 3)]


def test_the_search_takes_the_best_on_its_stream() -> None:
    (cell,) = cells("mnistP", methods=["sgd"], seeds=1)
    chosen = continual.choose(cell)
    settings = {**cell.settings, "n_tasks": 2, "n_train": 10, "n_test": 8}
    tasks = continual._tasks("mnistP", settings, 1000, held_out=True)
    scores = []
    for hyper in continual.candidates("sgd", cell.hyper, cell.settings):
        *_, (last, _) = continual._learn("sgd", hyper, settings, tasks, 1000)
        scores.append((float(np.mean(last)), hyper["lr"]))
    assert chosen["lr"] == next(lr for value, lr in scores if value == max(scores)[0])


def test_untuned_rsp_takes_the_rate_of_ewc() -> None:
    (rsp,) = cells("mnistP", methods=["rsp_untuned"], seeds=1)
    (ewc,) = cells("mnistP", methods=["ewc"], seeds=1)
    chosen = continual.choose(rsp)
    assert chosen["lr"] == continual.choose(ewc)["lr"]
    assert chosen["strength"] == 3


def test_fixed_settings_cannot_be_lists() -> None:
    settings = {"selection": "fixed"}
    (cell,) = cells("mnistP", methods=["l2"], seeds=1, settings=settings)
    with pytest.raises(PresetError, match="12 candidates, but selection 'fixed' chooses none"):
        continual.choose(cell)


def test_settings_without_effect_do_not_make_new_cells() -> None:
    found = cells("forgetting", seeds=1)
    angles = Counter((cell.data, cell.settings["max_angle"]) for cell in found)
    assert angles["mnistR", 90.0] == angles["mnistR", 180.0] == angles["mnistP", 90.0] == 1
    assert ("mnistP", 180.0) not in angles


def test_report_with_the_papers_values(tmp_path: Path) -> None:
    methods = ["sgd", "ewc", "l2"]
    folder = finished("mnistP", tmp_path / "run", methods=methods, seeds=2)
    tables = load_report(folder).tables()
    head = tables[0]
    assert head.header[:5] == ["method", "RA", "LA", "BT", "paper RA"]
    rows = {row[0]: row for row in head.rows}
    assert rows["ewc"][4:7] == [66.1, 77.0, -12.0]
    assert rows["sgd"][4:7] == [None] * 3
    assert str(rows["l2"][-1]).startswith("lr 0.0")
    assert any("selection: short_stream" in note for note in head.notes)
    names = {path.stem for path in draw(folder, tmp_path / "figures")}
    assert names == {f"mnistP-{name}" for name in ("forgetting", "matrices-mnistP", "tasks-mnistP")}


def test_sensitivity_and_forgetting_tables(tmp_path: Path) -> None:
    sweep = {"data": ["mnistP"], "grid.lr": [0.01, 0.1], "grid.strength": [1, 10]}
    folder = finished("sensitivity", tmp_path / "s", methods=["ewc", "l2"], seeds=2, settings=sweep)
    titles = [table.title for table in load_report(folder).tables()]
    assert [title.partition(": ")[2] for title in titles] == [
        "RA of ewc on mnistP",
        "RA of l2 on mnistP",
        "summary",
    ]
    assert len(draw(folder, tmp_path / "figures")) == 2
    few = {"data": ["mnistR"], "n_tasks": 5, "grid.max_angle": [90.0]}
    folder = finished("forgetting", tmp_path / "f", seeds=2, settings=few)
    table = load_report(folder).tables()[-1]
    assert table.title.endswith("divergence and forgetting")
    assert -1 <= table.rows[0][2].mean <= 1  # type: ignore[union-attr]


def test_omniglot_has_a_head_per_alphabet() -> None:
    settings = {"n_tasks": 2, "n_train": 2, "epochs": 2, "channels": 4, "hidden": [6]}
    for cell in cells("omniglot", methods=["ewc", "mer"], seeds=1, settings=settings):
        *_, (_, last) = continual._run(cell)
        assert 0 <= last["ra"] <= 100
    (cell,) = cells(
        "omniglot",
        methods=["ewc"],
        seeds=1,
        settings={**settings, "selection": "short_stream", "methods.ewc.lr": [0.1, 0.2]},
    )
    with pytest.raises(PresetError, match="omniglot has no held-out part"):
        continual.choose(cell)
