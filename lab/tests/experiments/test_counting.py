"""The experiment ``counting`` on tiny pictures in the official format."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab_helpers.makers import make_trancos
from lab_helpers.runs import changed, final
from vntransfer.adaptation import METHODS, TrainedNetwork
from vntransfer.step_times import StepTimes
from vntransfer_lab.errors import PresetError
from vntransfer_lab.experiments import counting
from vntransfer_lab.experiments.hourglass import grid_of
from vntransfer_lab.reports.drawings import draw
from vntransfer_lab.reports.report import report
from vntransfer_lab.runner.cells import Cell, expand
from vntransfer_lab.runner.kinds import load_kind
from vntransfer_lab.runner.run import run
from vntransfer_lab.runner.workers import compute

TINY = {"size": [32, 32], "blocks": 2, "channels": 4, "pictures": 3, "common.epochs": 1}
NAMES = ["dom1", "dom2", "dom3", "dom4", "dom5"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    make_trancos(folder)
    return folder


@pytest.fixture(autouse=True)
def found(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VNT_DATA", str(root))
    monkeypatch.setenv("VNT_CACHE", str(root / "derived"))
    # an epoch has at least 25 steps
    monkeypatch.setattr("vntransfer.adaptation._base.MIN_STEPS", 2)
    for cached in (counting._domains, counting.pictures):
        cached.cache_clear()


preset = partial(changed, "trancos")


def cell(method: str, *, target: str = "dom2", **settings: Any) -> Cell:
    changes = {"methods": [method], "targets": [target], "seeds": [0]}
    (one,) = expand(preset(**changes, settings=TINY | settings))
    return one


def pictures(name: str) -> Any:
    return counting.pictures("trancos", (32, 32), 3, name)


@pytest.mark.parametrize("method", load_kind("counting").methods)
def test_every_method_gives_finite_errors(method: str) -> None:
    row = final(cell(method))
    assert np.isfinite(list(row.values())).all()
    assert row["mae"] <= row["game1"] + 1e-9 <= row["game2"] + 2e-9 <= row["game3"] + 3e-9
    true = pictures("dom2").masked_density().sum((1, 2))
    counts = [value for name, value in row.items() if name.startswith("true/")]
    guessed = [value for name, value in row.items() if name.startswith("predicted/")]
    np.testing.assert_allclose(counts, true, rtol=1e-5)
    assert row["mae"] == pytest.approx(np.abs(np.subtract(guessed, counts)).mean(), rel=1e-6)
    assert row["bias"] == pytest.approx(np.subtract(guessed, counts).mean(), rel=1e-6)
    whole = sum(value for name, value in row.items() if name.startswith("true_map/"))
    assert whole == pytest.approx(np.mean(counts), rel=1e-5)
    weights = {name: value for name, value in row.items() if name.startswith("weight/")}
    if method in METHODS:
        assert list(weights) == ["weight/dom1", "weight/dom3", "weight/dom4", "weight/dom5"]
        assert sum(weights.values()) == pytest.approx(1)


def test_methods_are_those_of_the_registry_that_train_networks() -> None:
    kind = load_kind("counting")
    neural = {name for name, method in METHODS.items() if method.neural}
    assert set(kind.methods) == {*neural, "constant", "area", "oracle"}
    for name in neural:
        assert not {"hidden", "members", "random_state"} & set(
            kind.methods[name].options.model_fields
        )
    assert kind.methods["align"].options.model_fields["trade_off"].default == 1.0


def test_game_adds_up_absolute_errors_of_parts() -> None:
    rng = np.random.default_rng(0)
    true, guessed = rng.random((2, 3, 8, 16))
    total = 0.0
    for i in range(3):
        for r in range(4):
            for c in range(4):
                part = np.s_[i, 2 * r : 2 * r + 2, 4 * c : 4 * c + 4]
                total += abs(guessed[part].sum() - true[part].sum())
    assert counting.game(true, guessed, 2) == pytest.approx(total / 3)
    counts = np.abs(guessed.sum((1, 2)) - true.sum((1, 2))).mean()
    assert counting.game(true, guessed, 0) == pytest.approx(counts)


def test_plain_predictions_are_the_sources_mean_count_and_mean_density() -> None:
    sources = {name: pictures(name) for name in NAMES if name != "dom2"}
    counts = np.concatenate([own.masked_density().sum((1, 2)) for own in sources.values()])
    row = final(cell("constant"))
    guessed = [value for name, value in row.items() if name.startswith("predicted/")]
    np.testing.assert_allclose(guessed, counts.mean(), rtol=1e-5)
    mask = pictures("dom2").mask
    row = final(cell("area"))
    guessed = [value for name, value in row.items() if name.startswith("predicted/")]
    dense = counts.sum() / sum(own.mask.sum() for own in sources.values())
    np.testing.assert_allclose(guessed, dense * mask.sum((1, 2)), rtol=1e-5)


def test_the_target_s_densities_reach_only_the_score(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}
    original = counting.train_counter

    def spy(method: Any, sources: Any, target: Any, **options: Any) -> Any:
        given.update(sources=list(sources), target=target)
        return original(method, sources, target, **options)

    monkeypatch.setattr(counting, "train_counter", spy)
    final(cell("mdd_paper"))
    assert given["target"].density is None
    assert "dom2" not in given["sources"]


def test_the_oracle_is_never_scored_on_pictures_it_was_trained_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Memory:
        def __init__(self, known: Any) -> None:
            self.known = {picture.tobytes() for picture in known.density}
            self.trained = TrainedNetwork({}, [], StepTimes())

        def density(self, asked: Any) -> Any:
            seen = [picture.tobytes() in self.known for picture in asked.density]
            return np.array(seen, dtype=np.float32)[:, None, None] * np.ones((32, 32))

    monkeypatch.setattr(
        counting, "_train", lambda one, method, sources, *_: Memory(sources["dom2"])
    )
    row = final(cell("oracle"))
    guessed = [value for name, value in row.items() if name.startswith("predicted/")]
    assert guessed == [0.0] * len(guessed)


def test_history_holds_every_epoch() -> None:
    for method in ("darn", "dann"):  # the second merges its sources
        rows = compute(cell(method, history=True, **{"common.epochs": 2})).rows
        assert {step for step, name, _ in rows if name == "loss"} == {1, 2}
        assert {step for step, name, _ in rows if name == "weight/dom1"} == {1, 2}
        assert {step for step, name, _ in rows if name == "mae"} == {2}


def test_other_data_and_sizes_are_refused() -> None:
    with pytest.raises(PresetError, match=r"densities and masks.*'synthetic'"):
        expand(preset(settings={"data": "synthetic"}))
    with pytest.raises(PresetError, match=r"settings.size: .* 2 items.*\[32\]"):
        expand(preset(settings={"size": [32]}))


def test_the_presets_have_the_paper_s_numbers_and_network() -> None:
    full = changed("trancos-full")
    reduced = preset()
    assert reduced.paper == full.paper
    assert full.paper["values"]["trancos"]["dom4"]["mdd_paper"] == {"mae": 14.25}
    assert (full.settings["blocks"], full.settings["channels"]) == (6, 32)
    assert full.settings["size"] == [4 * side for side in reduced.settings["size"]]
    for own in (full, reduced):
        assert grid_of(*own.settings["size"], own.settings["blocks"]) == (8, 10)
    assert full.methods["mdd_paper"]["batch_size"] == 2
    assert full.methods["mdd_paper"]["epochs"] == 30


def test_a_run_ends_in_tables_and_figures_without_photographs(tmp_path: Path) -> None:
    methods = ["constant", "source_only", "mdd_paper"]
    run(
        "trancos",
        methods=methods,
        targets=["dom1"],
        settings=TINY,
        jobs=1,
        out=tmp_path / "run",
    )
    text = report(tmp_path / "run", "markdown")
    for expected in ("game2", "train_mae", "14.7", "difference to source_only"):
        assert expected in text
    files = {file.name for file in draw(tmp_path / "run", tmp_path / "figures")}
    assert {f"trancos-{name}.svg" for name in ("values", "counts")} == files
