"""Draw the figures of README and docs that need no benchmark (`make docs`)."""

import io
import re
from pathlib import Path

import torch
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from rich.console import Console

from vntransfer import example_table, relate, response_divergence
from vntransfer.cli.relate import show

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "img"


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
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    FigureCanvasSVG(figure)
    axis = figure.subplots()
    for samples, features in ((1000, 20), (300, 200), (300, 500), (50, 500)):
        z = torch.randn(samples, features, generator=generator, dtype=torch.float64).relu()
        heads = torch.randn(2, features, generator=generator, dtype=torch.float64) / features**0.5
        noise = torch.randn(2, samples, generator=generator, dtype=torch.float64)
        a, b = (z @ w + 0.3 * e for w, e in zip(heads, noise, strict=True))
        mean = float(z.var(0).mean())
        values = [
            float(response_divergence(z, a, b, ridge=float(r) * mean, sqrt=True)) for r in ridges
        ]
        axis.loglog(ridges, values, label=f"{samples} samples, {features} features")
    axis.axvline(1e-3, color="gray", linestyle=":", label="ridge='auto'")
    axis.set_xlabel("ridge / mean eigenvalue of the feature covariance")
    axis.set_ylabel("√J of two noisy linear responses")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    figure.savefig(IMAGES / "ridge.svg", metadata={"Date": None})


if __name__ == "__main__":
    IMAGES.mkdir(parents=True, exist_ok=True)
    draw_demo()
    draw_ridge()
    print("wrote docs/img")
