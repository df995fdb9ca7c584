"""Draw the figures of README and docs: of the archived results and of short computations."""

import io
import re
import shutil
import tempfile
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from sklearn.linear_model import Ridge

from vntransfer import Moments, example_table, relate, response_divergence
from vntransfer.cli.relate import show
from vntransfer.closed_form import JITTER, fit_ridge, squared_error, without
from vntransfer.pages import MUTED, Axis, Lines, Series
from vntransfer.pages.picture import write_picture
from vntransfer.random_features import RandomFeatures
from vntransfer.tables import read_frame
from vntransfer_lab.reports.drawings import draw

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "img"
FIGURES = ROOT / "docs" / "experiments" / "figures"


def draw_demo() -> None:
    """Record the first part of what `vnt demo` prints."""
    console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True)
    show(relate(example_table(), domain="town", response="price"), console, ["Saltby"])
    svg = console.export_svg(title="vnt relate", unique_id="demo")
    # rich refers to fonts on the network; the picture should not
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.S)
    (IMAGES / "demo.svg").write_text(svg, encoding="utf-8")


def draw_ridge() -> None:
    """Plot √J against the ridge for full-rank and rank-deficient features."""
    generator = torch.Generator().manual_seed(0)
    ridges = torch.logspace(-9, 1, 41)
    series = []
    for samples, features in ((1000, 20), (300, 200), (300, 500), (50, 500)):
        z = torch.randn(samples, features, generator=generator, dtype=torch.float64).relu()
        heads = torch.randn(2, features, generator=generator, dtype=torch.float64) / features**0.5
        noise = torch.randn(2, samples, generator=generator, dtype=torch.float64)
        a, b = (z @ w + 0.3 * e for w, e in zip(heads, noise, strict=True))
        mean = float(z.var(0).mean())
        values = [
            float(response_divergence(z, a, b, ridge=float(r) * mean, sqrt=True)) for r in ridges
        ]
        name = f"{samples} samples, {features} features"
        series.append(Series(name, ridges.numpy(), values, marks=False))
    ends = [end(end(s.y) for s in series) for end in (min, max)]
    series.append(Series("ridge='auto'", [1e-3, 1e-3], ends, color=MUTED, marks=False))
    x = Axis("ridge / mean eigenvalue of the feature covariance", log=True)
    chart = Lines(series, x, Axis("√J of two noisy linear responses", log=True))
    write_picture(chart, "√J against the ridge", IMAGES / "ridge.svg", overwrite=True)


def draw_closed_form() -> None:
    """Plot errors of held-out towns against the ridge: lines from moments, marks from refits."""
    frame = read_frame(example_table())
    cells = {name: frame.columns[name].texts() for name in ("area", "rooms", "water_km", "income")}
    x = np.stack([column.astype(float) for column in cells.values()], 1)
    town, price = (frame.columns[name].texts() for name in ("town", "price"))
    known = town != "Saltby"
    x, town, y = x[known], town[known], price[known].astype(float)
    features = RandomFeatures.standardizing(x, 64, seed=0)
    z, names = features(x), sorted(set(town))
    parts = [Moments.from_samples(z[town == name], y[town == name]) for name in names]
    ridges, few = np.logspace(-6, 2, 65), np.logspace(-6, 2, 9)
    series = []
    for k, name in enumerate(names):
        rest, own = without(parts, [float(part.count) for part in parts], k), town == name
        exact = [squared_error(fit_ridge(rest, 1, ridge), parts[k]) ** 0.5 for ridge in ridges]
        size = float(rest.scatter[:-1, :-1].diagonal().mean())
        refits = (Ridge((ridge + JITTER) * size).fit(z[~own], y[~own]) for ridge in few)
        checked = [float(np.sqrt(np.mean((fit.predict(z[own]) - y[own]) ** 2))) for fit in refits]
        series.append(Series(name, ridges, exact, marks=False, color=k))
        series.append(Series(f"{name}, refit", few, checked, dash="none", color=k, thin=True))
    x_axis = Axis("ridge / mean diagonal entry of S_zz", log=True)
    chart = Lines(series, x_axis, Axis("error on the held-out town (RMSE)", log=True))
    write_picture(chart, "Errors of held-out towns", IMAGES / "closed_form.svg", overwrite=True)


def draw_results() -> None:
    """Draw those figures of the archived results again that a page shows."""
    shown = {path.name for path in FIGURES.glob("*.svg")}
    for folder in sorted(ROOT.glob("lab/results/*")):
        if any(name.startswith(f"{folder.name}-") for name in shown):
            with tempfile.TemporaryDirectory() as place:
                for path in draw(folder, place):
                    if path.name in shown:
                        shutil.copy(path, FIGURES)


if __name__ == "__main__":
    IMAGES.mkdir(parents=True, exist_ok=True)
    draw_demo()
    draw_ridge()
    draw_closed_form()
    draw_results()
    print("wrote docs/img and docs/experiments/figures")
