"""The experiments about the divergence itself, at small size, against independent calculations."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.linalg import logm

from lab_helpers.runs import cells, changed, finished
from vntransfer.errors import DataError
from vntransfer_lab.data.regression import NOISE, two_d_planes
from vntransfer_lab.errors import PresetError
from vntransfer_lab.experiments import convergence, robustness
from vntransfer_lab.reports.drawings import draw
from vntransfer_lab.reports.report import load_report
from vntransfer_lab.runner.kinds import load_kind
from vntransfer_lab.runner.preset import read_preset

VNT = [sys.executable, "-c", "from vntransfer.cli import main; main()", "bench"]
SMALL = {"n_train": 300, "n_test": 500, "epochs": 3, "data": "2dplanes"}


def test_robustness_runs_every_reading_once() -> None:
    found = cells("robustness", seeds=1, settings={"data": ["2dplanes"]})
    readings = {
        tuple(cell.settings[k] for k in ("noise_on", "spread", "response", "strength"))
        for cell in found
    }
    # without noise, kind and place of the noise do not matter: 2 responses, else 2 x 2 x 2
    strengths = len(read_preset("robustness")[1]["grid"]["strength"]) - 1
    assert len(readings) == 2 + 8 * strengths
    assert len(found) == 4 * len(readings)


@pytest.mark.parametrize("noise_on", ["y", "x"])
@pytest.mark.parametrize("response", ["raw", "standardized"])
def test_noise_goes_where_the_reading_says(noise_on: str, response: str) -> None:
    settings = SMALL | {"grid.strength": [2.0], "grid.noise_on": [noise_on]}
    settings |= {"grid.response": [response], "grid.spread": ["std"]}
    cell = cells("robustness", seeds=1, methods=["mse"], settings=settings)[0]
    x, y, y_clean, x_test, y_test = robustness._split(cell)
    assert (len(x), len(x_test)) == (300, 500)
    assert x.mean(0) == pytest.approx(np.zeros(10), abs=1e-9)
    assert x.std(0) == pytest.approx(np.ones(10))
    if response == "standardized":
        assert (y_clean.mean(), y_clean.std()) == pytest.approx((0.0, 1.0))
    else:
        assert y_clean.std() == pytest.approx(two_d_planes()[1].std(), rel=0.2)
    noise = y - y_clean
    if noise_on == "x":
        assert not noise.any()
        assert (x_test.mean(0) < -0.5).all()  # the noise has a mean of about 4 λ
    else:
        mixture = NOISE["2dplanes"]
        mean = 2 * np.dot(mixture.weights, mixture.means)
        assert noise.mean() == pytest.approx(mean, rel=0.1)
        assert abs(x_test.mean()) < 0.1
    assert y_test.std() == pytest.approx(y_clean.std(), rel=0.2)


def test_robustness_losses_are_what_they_are_called() -> None:
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(50, 3, generator=rng).double()
    y, p = (torch.randn(50, generator=rng).double() for _ in range(2))
    gap = (p - y).numpy()
    delta = 2.0 * 0.5
    expected = {
        "mse": (gap**2).mean(),
        "absolute": np.abs(gap).mean(),
        "huber": np.where(
            np.abs(gap) < delta, gap**2 / 2, delta * (np.abs(gap) - delta / 2)
        ).mean(),
    }
    changes = {"seeds": 1, "settings": SMALL | {"methods.huber.delta": 0.5}}
    for cell in cells("robustness", **changes):
        if cell.method in expected:
            value = float(robustness._loss(cell, 2.0)(x, p, y))
            assert value == pytest.approx(expected[cell.method])
        else:
            joint = [np.cov(np.column_stack([x, column]).T) for column in (p, y)]
            ridge = 1e-3 * np.trace(joint[0][:3, :3]) / 3 * np.eye(4)
            a, b = (matrix + ridge for matrix in joint)
            j = np.trace((a - b) @ (logm(a) - logm(b))).real / 2
            assert float(robustness._loss(cell, 2.0)(x, p, y)) == pytest.approx(
                np.sqrt(j), rel=1e-4
            )


def test_robustness_tables_and_figures(tmp_path: Path) -> None:
    settings = SMALL | {"grid.strength": [0.0, 1.0], "grid.spread": ["std"], "epochs": 1}
    folder = finished(tmp_path / "run", changed("robustness", seeds=1, settings=settings))
    first, second = load_report(folder).tables()
    assert len(first.rows) == 4 * 4
    assert first.header[-3:] == ["vs mse", "vs huber", "vs absolute"]
    assert len(second.rows) == 2 + 4
    names = sorted(path.name for path in draw(folder, tmp_path / "figures"))
    assert names == ["robustness-raw.svg", "robustness-standardized.svg"]


def test_label_noise_flips_the_share_it_says_and_tells_right_from_wrong(tmp_path: Path) -> None:
    settings = {"grid.flipped": [0.0, 0.8], "epochs": 30, "batch_size": 100, "rate": 1e-2}
    preset = changed("robustness-labels", seeds=1, methods=["cross_entropy"], settings=settings)
    folder = finished(tmp_path / "run", preset)
    clean, wrong = (record.metrics["accuracy"][30] for record in load_report(folder).records)
    assert clean > 0.85
    assert wrong < clean - 0.2
    assert len(draw(folder, tmp_path / "figures")) == 1


@pytest.mark.parametrize("family", convergence.FAMILIES)
@pytest.mark.parametrize("d", [2, 6])
def test_convergence_families_are_positive_definite_and_sampled_right(family: str, d: int) -> None:
    rng = np.random.default_rng(0)
    for matrix in convergence._pair(family, d):
        assert np.linalg.eigvalsh(matrix)[0] > 0
        sample = convergence._covariance(matrix, 200_000, family == "heavy-tailed", rng)
        assert np.abs(sample - matrix).max() < 0.05 * matrix.max()


def test_convergence_errors_shrink_and_are_reported(tmp_path: Path) -> None:
    settings = {"sizes": [50, 200, 800, 3200], "grid.dimension": [3]}
    preset = changed("convergence", seeds=8, methods=["von_neumann"], settings=settings)
    folder = finished(tmp_path / "run", preset)
    rates, bounds = load_report(folder).tables()
    assert len(rates.rows) == 5
    assert {row[-1] for row in rates.rows} <= {"1/√n", "faster than 1/√n", "slower than 1/√n"}
    slopes = {(row[0], row[2]): row[6].mean for row in rates.rows}  # type: ignore[union-attr]
    assert all(slope < -0.25 for slope in slopes.values())
    assert slopes["equal", "von_neumann"] < -0.8  # second order at Σ = Θ
    assert len(bounds.rows) == 5
    assert len(draw(folder, tmp_path / "figures")) == 1


def test_convergence_refuses_singular_covariances() -> None:
    with pytest.raises(PresetError, match=r"4 samples.* 5 dimensions"):
        cells("convergence", settings={"grid.dimension": [5], "sizes": [4, 100]})


@pytest.mark.parametrize(
    ("preset", "data"),
    [("robustness", "boston"), ("robustness-labels", "cifar"), ("convergence", "mnist")],
)
def test_unknown_data_is_named(preset: str, data: str) -> None:
    with pytest.raises(PresetError, match=f"got '{data}'"):
        cells(preset, settings={"data": data})


def test_a_missing_data_set_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="bank8FM"):
        cells("robustness", settings={"data": "bank8FM"})
    done = subprocess.run(
        [*VNT, "run", "robustness", "--out", str(tmp_path / "run")], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "vnt data fetch bank8FM" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["smoke", "robustness", "label_noise", "convergence"])
def test_kinds_know_their_name_and_methods(name: str) -> None:
    kind = load_kind(name)
    assert kind.name == name
    assert kind.methods
