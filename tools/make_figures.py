"""Draw the figures of README and docs: of the archived results and of short computations."""

import io
import re
import shutil
import tempfile
from pathlib import Path

import torch
from rich.console import Console

from vntransfer import example_table, relate, response_divergence
from vntransfer.cli.relate import show
from vntransfer.pages import MUTED, Axis, Lines, Series
from vntransfer.pages.picture import write_picture
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
    draw_results()
    print("wrote docs/img and docs/experiments/figures")
