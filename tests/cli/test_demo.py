"""``vnt demo`` as a newcomer runs it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from vntransfer.cli import app, demo, main
from vntransfer.cli.heat_maps import heat_map
from vntransfer.divergences import pairwise
from vntransfer_lab import run as bench_run
from vntransfer_lab.data.synthetic import friedman_domains
from vntransfer_lab.runner.cells import expand
from vntransfer_lab.runner.kinds import load_kind
from vntransfer_lab.runner.preset import check, read_preset
from vntransfer_lab.runner.run import RunSummary


def test_demo_relates_adapts_and_learns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all parts, at a small size."""
    sizes = {"demo-synthetic": {"targets": ["s1", "s2"]}, "demo-stream": {"seeds": 1}}
    small = {"rows": 40, "n_tasks": 2, "n_train": 20, "n_test": 50}

    def run(preset: str, **more: Any) -> RunSummary:
        settings = {"common.epochs": 1} if preset == "demo-synthetic" else {}
        kind = load_kind(read_preset(preset)[1]["experiment"])
        settings |= {name: value for name, value in small.items() if name in kind.settings}
        return bench_run(preset, **sizes[preset], settings=settings, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("vntransfer_lab.run", run)
    command = ["demo", "--samples", "200", "--seed", "3", "--jobs", "1", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert result.output.count("s6") >= 3
    assert "██" in result.output
    assert f"{related(200, seed=3)[0, 5]:.3g}" in result.output
    for words in ("source_only", "mdd", "ahd_msda", "darn", "weights that MDD gives"):
        assert words in result.output
    for words in ("sgd", "ewc", "rsp", "covp", "RA", "BT"):
        assert words in result.output
    for name in sizes:
        assert f"more tables: vnt bench report {tmp_path / name}" in result.output
        page = tmp_path / name / "report.html"
        assert f"page: {page}" in result.output
        assert "<svg" in page.read_text(encoding="utf-8")
    again = CliRunner().invoke(app, command)
    assert "8 of 8 cells were finished before" in again.stderr


def test_the_presets_of_the_demo_need_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VNT_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in (demo.ADAPTATION, demo.STREAM):
        assert expand(check(read_preset(name)[1], name))


def related(samples: int, seed: int) -> np.ndarray:
    domains = friedman_domains(samples, seed=seed)
    scale = np.concatenate([y for _, y in domains.values()]).std()
    return np.asarray(pairwise([(x, y / scale) for x, y in domains.values()]))


@pytest.mark.parametrize("seed", range(3))
def test_divergence_grows_with_distance_between_synthetic_domains(seed: int) -> None:
    for row, others in enumerate(related(1000, seed)):
        assert (np.diff(others[row:]) > 0).all()


def test_heat_map_of_equal_domains_is_blank() -> None:
    assert "█" not in str(heat_map(["a", "b"], np.zeros((2, 2))))


def test_foreseen_errors_are_a_sentence_not_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from vntransfer.errors import DataError

    def fail() -> None:
        raise DataError("data: nothing here; put something there")

    monkeypatch.setattr("vntransfer.cli.app", fail)
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 1
    assert capsys.readouterr().err == "vnt: data: nothing here; put something there\n"
