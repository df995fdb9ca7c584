"""Cost of adaptation compared with plain regression: steps, ensembles, memory, growth.

Writes docs/benchmarks/adaptation.md and its plot. Every ratio compares calls that take turns in one
process, the best of several. Run on an idle machine: `make bench-adaptation`.
"""

import argparse
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import torch

from measure import (
    DOCS,
    growth_picture,
    lifted_peak,
    live_peak,
    profile_table,
    resident,
    side_by_side,
    write_sections,
)
from vntransfer import SourceOnlyRegressor, response_divergence, stack
from vntransfer.adaptation import METHODS
from vntransfer.adaptation._objective import (
    NETWORK,
    Batch,
    SourceLoss,
    Step,
    source_errors,
)
from vntransfer.networks import Net


class Shape(NamedTuple):
    """Size of a problem."""

    features: int
    hidden: tuple[int, ...]
    width: int
    sources: int
    batch: int
    sparse: bool
    steps: int  # of one measurement


AMAZON = Shape(1000, (500,), 500, 6, 300, True, 6)
TABLE = Shape(20, (64,), 24, 5, 100, False, 60)


class SeesTarget(SourceLoss):
    """Source-only that also computes the features of the target's rows."""

    def forward(self, net: Net, batch: Batch) -> Iterator[Step]:
        """Give the one step of a batch."""
        z = batch.features(net)
        yield NETWORK, source_errors(self.error, batch, net.head(z[:, :-1])).mean(-1)


@dataclass(eq=False, repr=False, kw_only=True)
class SeeingRegressor(SourceOnlyRegressor):
    """Source-only whose batches hold the target too."""

    _needs_target = True
    _steps = SeesTarget


def world(shape: Shape) -> tuple[Any, ...]:
    """Sources and a target of equally many rows."""
    rng = np.random.default_rng(0)
    n = 2 * shape.batch

    def rows(seed: int) -> Any:
        if shape.sparse:
            return scipy.sparse.random(
                n, shape.features, density=0.02, format="csr", dtype=np.float32, rng=seed
            )
        return np.random.default_rng(seed).normal(seed / 5, 1, size=(n, shape.features))

    parts = {f"s{k}": (rows(k), rng.normal(size=n)) for k in range(shape.sources)}
    return stack(parts, target=rows(shape.sources))


def training(kind: Any, shape: Shape, data: tuple[Any, ...], **options: Any) -> Callable[[], Any]:
    """A fit of so many steps."""
    common = {
        "hidden": shape.hidden,
        "width": shape.width,
        "batch_size": shape.batch,
        "epochs": 1,
        "steps": shape.steps,
        "random_state": 0,
    }
    return lambda: kind(**{**common, **options}).fit(*data)


def divergence(shape: Shape, data: tuple[Any, ...]) -> Callable[[], None]:
    """Forward and backward of the divergence of one step, as often as a training has steps.

    On features of a network in training: what their spectrum is decides how much is computed in
    float64.
    """
    model = training(METHODS["mdd_paper"].make, shape, data, trade_off=1.0)()
    x = np.stack(
        [
            model._values.x_scaler.transform(data[0][data[2] == name][: shape.batch])
            for name in np.unique(data[2])
        ]
    )
    with torch.no_grad():
        z = model.net_.extractor(torch.from_numpy(x))[0]
        a = model.net_.head(z[None])[0]
        b = a + 0.1 * torch.randn(a.shape, generator=torch.Generator().manual_seed(0))

    def run() -> None:
        for _ in range(shape.steps):
            leaves = [t.detach().requires_grad_() for t in (z, a, b)]
            response_divergence(*leaves, sqrt=True).sum().backward()

    return run


FIXED: dict[str, dict[str, Any]] = {
    "align": {"trade_off": 1.0, "members": 1},
    "mdd_paper": {"trade_off": 1.0},
}


def runs(shape: Shape) -> dict[str, Callable[[], Any]]:
    """Trainings that are compared."""
    data = world(shape)
    named: dict[str, Callable[[], Any]] = {
        "source_only": training(SourceOnlyRegressor, shape, data),
        "seeing": training(SeeingRegressor, shape, data),
        "divergence": divergence(shape, data),
    }
    for method in ("align", "mdd_paper", "dann", "ahd_msda", "darn", "coral"):
        named[method] = training(METHODS[method].make, shape, data, **FIXED.get(method, {}))
    return named


def step_lines(title: str, shape: Shape, wanted: dict[str, str]) -> list[str]:
    """Table of steps."""
    named = runs(shape)
    times = dict(zip(named, side_by_side(list(named.values()), seconds=20), strict=True))
    base, both = times["source_only"], times["seeing"] + times["divergence"]
    lines = [
        "| step | ms | ratio to source-only | ratio to (source-only with the target's rows + "
        "divergence) | goal |",
        "| --- | --- | --- | --- | --- |",
    ]
    words = {"seeing": "source-only, with the target's rows", "divergence": "one divergence alone"}
    for name, seconds in times.items():
        lines.append(
            f"| {words.get(name, name)} | {1e3 * seconds / shape.steps:.2f} "
            f"| {seconds / base:.2f} | "
            f"{seconds / both:.2f} | {wanted.get(name, '')} |"
        )
        print(title, lines[-1], flush=True)
    return lines


def ensemble_lines() -> list[str]:
    """One network, five of them, and five fits."""
    lines = ["| shape | one network | ensemble of five | five fits |", "| --- | --- | --- | --- |"]
    for title, shape in (("table", TABLE), ("1000 sparse features", AMAZON._replace(batch=64))):
        shape = shape._replace(hidden=(64,), width=24)
        data = world(shape)
        one = training(SourceOnlyRegressor, shape, data)
        many = training(SourceOnlyRegressor, shape, data, members=5)
        times = side_by_side([one, many], seconds=5)
        lines.append(f"| {title} | 1 | {times[1] / times[0]:.2f} | 5 |")
        print(lines[-1], flush=True)
    return lines


def memory_lines() -> list[str]:
    """Peaks of whole trainings, each in a separate process."""
    lines = [
        "| method | tensors, MiB | ratio | resident above the start, MiB | ratio "
        "| whole process, MiB | ratio | goal |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    base: list[float] = []
    for name in ("source_only", "mdd_paper", "align"):
        command = [sys.executable, __file__, "--memory", name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks = [float(number) for number in done.stdout.split()]
        base = base or peaks
        cells = [f"{peak:.0f} | {peak / own:.2f}" for peak, own in zip(peaks, base, strict=True)]
        wanted = "" if name == "source_only" else "<= 1.5"
        lines.append(f"| {name} | {' | '.join(cells)} | {wanted} |")
        print(lines[-1], flush=True)
    return lines


def report_memory(name: str) -> None:
    """Print the peaks of a training on the Amazon shape, in MiB.

    Nothing else of that size is trained in the process, before or beside it.
    """
    kind = SourceOnlyRegressor if name == "source_only" else METHODS[name].make

    def alone(shape: Shape) -> Callable[[], Any]:
        return training(kind, shape, world(shape), **FIXED.get(name, {}))

    alone(TABLE)()  # libraries are loaded on first use
    run = alone(AMAZON)
    lifted, whole = lifted_peak(run), resident("VmHWM")
    print(live_peak(run) / 2**20, lifted / 2**10, whole / 2**10)


def growth_plot() -> list[str]:
    """Cost against the number of sources and the width of features."""
    sweeps = {
        "sources (24 features wide)": [TABLE._replace(sources=k) for k in (2, 4, 8, 16, 32)],
        "width of the features (5 sources)": [
            TABLE._replace(width=d) for d in (8, 16, 32, 64, 128, 256)
        ],
    }
    panels = {}
    for (title, shapes), field in zip(sweeps.items(), ("sources", "width"), strict=True):
        curves: dict[str, list[tuple[int, float]]] = {}
        for shape in (s._replace(steps=20) for s in shapes):
            data = world(shape)
            named = {
                name: training(METHODS[name].make, shape, data, **FIXED.get(name, {}))
                for name in ("source_only", "align", "mdd_paper", "darn")
            }
            times = side_by_side(list(named.values()), seconds=0.5)
            for name, seconds in zip(named, times, strict=True):
                point = getattr(shape, field), 1e3 * seconds / shape.steps
                curves.setdefault(name, []).append(point)
        panels[title] = curves
    growth_picture(panels, "step, ms", DOCS / "img" / "adaptation_growth.svg")
    return ["![cost of a step against sources and width, log-log](img/adaptation_growth.svg)"]


def main() -> None:
    """Measure everything and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", metavar="METHOD")
    options = parser.parse_args()
    if options.memory:
        report_memory(options.memory)
        return
    torch.set_num_threads(2)
    goal = "<= 1.2 of the sum; aim 1.5 source-only"
    amazon = step_lines("Amazon", AMAZON, dict.fromkeys(FIXED, goal))
    table = step_lines("table", TABLE, {"align": "<= 2 source-only"})
    sections = {
        "A step at the Amazon shape (1000 sparse features, 500-500, 6 sources, batch 300)": amazon,
        "A step at a table's shape (20 features, default network, 5 sources, batch 100)": table,
        "Ensembles: members are trained as one batched network": ensemble_lines(),
        "Peak memory of training at the Amazon shape": [
            "*Tensors* counts the bytes of all tensors alive at once, which is the same in every "
            "run. *Resident* is the memory that the process requests above libraries and data; "
            "*whole process* includes these.",
            "",
            *memory_lines(),
        ],
        "Where the time of an MDD step goes (Amazon shape)": profile_table(
            runs(AMAZON._replace(steps=1))["mdd_paper"], rows=8
        ),
        "How the cost grows": growth_plot(),
    }
    head = [
        "# Cost of adaptation",
        "",
        f"Written by `make bench-adaptation` (torch {torch.__version__}, {torch.get_num_threads()} "
        f"threads, {platform.machine()}). Each fit has one epoch; `align` has a fixed trade-off "
        "and one member. Ratios are measured side by side in one run and are the best of several "
        "rounds. Milliseconds come from a shared machine and are only a rough guide.",
    ]
    write_sections("adaptation.md", head, sections)


if __name__ == "__main__":
    main()
