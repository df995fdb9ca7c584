"""Speed, accuracy and memory of the divergence core, side by side in one run.

Writes docs/benchmarks/core.md and its plot. Every ratio compares calls that alternate in one
process, the best of several, forward + backward. Run on an idle machine: `make bench-core`.
"""

import argparse
import platform
import subprocess
import sys
from collections.abc import Callable

import torch
from torch import Tensor

from measure import (
    DOCS,
    growth_picture,
    lifted_peak,
    profile_table,
    side_by_side,
    write_sections,
)
from vntransfer import (
    conditional_von_neumann,
    covariance,
    jeffreys,
    pairwise,
    response_divergence,
)

DOMAINS = 7
SAMPLES, FEATURES = (32, 100, 300, 1000), (8, 32, 100, 500)
HEADLINE = ((300, 500, 8.0), (300, 1000, 50.0))


def plain(features: Tensor, a: Tensor, b: Tensor, ridge: float | None = None) -> Tensor:
    """What one writes first: both full matrices, torch.linalg.eigh, autograd."""
    level = features.detach().var(-2).mean(-1)
    offset = 1e-3 * level if ridge is None else torch.full_like(level, ridge)

    def log_and_matrix(y: Tensor) -> tuple[Tensor, Tensor]:
        joint = torch.cat((features, y.unsqueeze(-1)), -1)
        joint = joint - joint.mean(-2, keepdim=True)
        matrix = joint.mT @ joint / (joint.shape[-2] - 1)
        matrix = matrix + offset[:, None, None] * torch.eye(matrix.shape[-1], dtype=matrix.dtype)
        values, vectors = torch.linalg.eigh(matrix)
        # rounded eigenvalues can be negative with a small ridge
        logs = values.clamp_min(torch.finfo(values.dtype).tiny).log()
        return (vectors * logs.unsqueeze(-2)) @ vectors.mT, matrix

    (log_x, X), (log_y, Y) = log_and_matrix(a), log_and_matrix(b)
    return 0.5 * ((X - Y) * (log_x - log_y)).sum((-1, -2))


def sample(n: int, d: int, dtype: torch.dtype, domains: int = DOMAINS) -> tuple[Tensor, ...]:
    """Correlated features and two noisy responses to them."""
    g = torch.Generator().manual_seed(n * 10_000 + d)
    z = torch.randn(domains, n, d, generator=g, dtype=torch.float64)
    z = z * torch.linspace(2, 0.2, d, dtype=torch.float64)
    noise = torch.randn(2, domains, n, generator=g, dtype=torch.float64)
    heads = torch.randn(2, d, 1, generator=g, dtype=torch.float64) / d**0.5
    a, b = ((z @ w).squeeze(-1) + 0.3 * e for w, e in zip(heads, noise, strict=True))
    return tuple(t.to(dtype) for t in (z, a, b))


def step(function: Callable[..., Tensor], arrays: tuple[Tensor, ...]) -> Callable[[], None]:
    def run() -> None:
        leaves = [t.detach().requires_grad_() for t in arrays]
        function(*leaves).sum().backward()

    return run


def value_and_gradients(
    function: Callable[..., Tensor], arrays: tuple[Tensor, ...]
) -> list[Tensor]:
    leaves = [t.detach().clone().requires_grad_() for t in arrays]
    value = function(*leaves)
    gradients = torch.autograd.grad(value.sum(), leaves)
    return [value.detach().double(), *(gradient.double() for gradient in gradients)]


def exact(*arrays: Tensor) -> Tensor:
    """J of full covariances in float64."""
    x, *responses = (array.double() for array in arrays)
    ridge = 1e-3 * covariance(x.detach()).diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None]
    joint = (covariance(x, y) for y in responses)
    sigma, rho = (matrix + ridge * torch.eye(matrix.shape[-1]).to(matrix) for matrix in joint)
    return jeffreys(sigma, rho)


def errors(arrays: tuple[Tensor, ...], truth: list[Tensor]) -> tuple[float, float]:
    ours = value_and_gradients(response_divergence, arrays)
    relative = [float((o - t).norm() / t.norm()) for o, t in zip(ours, truth, strict=True)]
    return relative[0], max(relative[1:])


def response_table() -> list[str]:
    lines = [
        "| samples | features | plain, ms | ours, ms | ratio | at least "
        "| value f64 | gradient f64 | value f32 | gradient f32 |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    cases = [(n, d, 1 / 1.1) for n in SAMPLES for d in FEATURES if (n, d) != HEADLINE[0][:2]]
    for n, d, least in (*HEADLINE, *cases):
        single, double = sample(n, d, torch.float32), sample(n, d, torch.float64)
        slow, fast = side_by_side([step(plain, single), step(response_divergence, single)])
        truth = value_and_gradients(exact, double)
        v64, g64 = errors(double, truth)
        rounded = value_and_gradients(exact, tuple(t.double() for t in single))
        v32, g32 = errors(single, rounded)
        lines.append(
            f"| {n} | {d} | {1e3 * slow:.2f} | {1e3 * fast:.2f} | {slow / fast:.2f} | "
            f"{least:.2f} | {v64:.0e} | {g64:.0e} | {v32:.0e} | {g32:.0e} |"
        )
        print(lines[-1], flush=True)
    return lines


def plain_conditional(sigma: Tensor, rho: Tensor) -> Tensor:
    def one(x: Tensor, y: Tensor) -> Tensor:
        logs = []
        for matrix in (x, y):
            values, vectors = torch.linalg.eigh(matrix)
            logs.append((vectors * values.log()) @ vectors.mT)
        return 0.5 * ((x - y) * (logs[0] - logs[1])).sum()

    return one(sigma, rho) - one(sigma[:-1, :-1], rho[:-1, :-1])


def pairwise_lines(count: int = 200, size: int = 64) -> list[str]:
    g = torch.Generator().manual_seed(0)
    x = torch.randn(count, 4 * size, size + 1, generator=g, dtype=torch.float64)
    stack = x.mT @ x / (4 * size)

    def loop() -> Tensor:
        return torch.stack(
            [torch.stack([plain_conditional(s, r) for r in stack]) for s in stack[:4]]
        )

    (part, whole) = side_by_side([loop, lambda: pairwise(stack)], seconds=0)
    slow = part * count / 4
    gap = (pairwise(stack)[:4] - loop()).abs().max() / loop().max()
    print(f"pairwise {slow / whole:.0f}x", flush=True)
    check = abs(float(conditional_von_neumann(stack[0], stack[1]) - pairwise(stack)[0, 1]))
    return [
        f"For {count} domains with {size} features and a response, `pairwise` takes "
        f"{1e3 * whole:.0f} ms. A double loop over the plain function takes {slow:.1f} s (four of "
        f"its {count} rows timed), which is **{slow / whole:.0f} x** as long (goal: at least 50). "
        f"The largest difference from the loop is {float(gap):.0e} of the largest entry, and from "
        f"`conditional_von_neumann` {check:.0e}."
    ]


def neighbor_lines(n: int = 300, d: int = 100) -> list[str]:
    from neighbors import neighbors  # needs more packages than the rest

    lines = ["| what | ms | ratio to ours |", "| --- | --- | --- |"]
    z, a, b = sample(n, d, torch.float32, 2)
    named: dict[str, Callable[[], object]] = {
        "response_divergence (ours)": step(response_divergence, (z, a, b)),
        **dict(neighbors(z[0], z[1])),
    }
    times = side_by_side(list(named.values()), seconds=4)
    for name, seconds in zip(named, times, strict=True):
        lines.append(f"| {name} | {1e3 * seconds:.2f} | {seconds / times[0]:.2f} |")
        print(lines[-1], flush=True)
    return lines


def profile_lines(n: int = 300, d: int = 500) -> list[str]:
    return profile_table(step(response_divergence, sample(n, d, torch.float32)))


def growth_plot() -> list[str]:
    sweeps = {
        "samples (100 features, 7 domains)": [
            (n, 100, 7) for n in (32, 64, 128, 256, 512, 1024, 2048)
        ],
        "features (300 samples, 7 domains)": [
            (300, d, 7) for d in (8, 16, 32, 64, 128, 256, 512, 1024)
        ],
        "domains (300 samples, 100 features)": [(300, 100, k) for k in (1, 2, 4, 8, 16, 32)],
    }
    panels = {}
    for position, (title, cases) in enumerate(sweeps.items()):
        curves: dict[str, list[tuple[int, float]]] = {"plain": [], "vntransfer": []}
        for case in cases:
            arrays = sample(*case[:2], torch.float32, case[2])
            runs = [step(response_divergence, arrays)]
            if case[1] <= 512:
                runs.append(step(plain, arrays))
            times = side_by_side(runs, 0.5)
            for name, seconds in zip(("vntransfer", "plain"), times, strict=False):
                curves[name].append((case[position], 1e3 * seconds))
        panels[title] = curves
    growth_picture(panels, "forward + backward, ms", DOCS / "img" / "core_growth.svg")
    return ["![cost against samples, features and domains, log-log](img/core_growth.svg)"]


def memory_lines() -> list[str]:
    lines = ["| work | ours, MiB | plain, MiB |", "| --- | --- | --- |"]
    for n, d in ((300, 500), (300, 1000), (1000, 100)):
        peaks = []
        for which in ("ours", "plain"):
            command = [sys.executable, __file__, "--memory", which, str(n), str(d)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            peaks.append(int(done.stdout) / 1024)
        lines.append(f"| {DOMAINS} x {n} x {d}, float32 | {peaks[0]:.0f} | {peaks[1]:.0f} |")
        print(lines[-1], flush=True)
    return lines


def report_memory(which: str, n: int, d: int) -> None:
    """Print how far one step lifts the peak of resident memory, in KiB (Linux)."""
    function = plain if which == "plain" else response_divergence
    step(function, sample(8, 4, torch.float32))()  # libraries are loaded on first use
    run = step(function, sample(n, d, torch.float32))
    print(lifted_peak(run))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", nargs=3, metavar=("WHICH", "N", "D"))
    options = parser.parse_args()
    if options.memory:
        report_memory(options.memory[0], *map(int, options.memory[1:]))
        return
    torch.set_num_threads(2)
    sections = {
        "`response_divergence` against the plain formulation": response_table(),
        "Where the time goes (7 domains of 300 samples, 500 features)": profile_lines(),
        "`pairwise`": pairwise_lines(),
        "Compared with other measures of two samples (300 x 100, float32)": neighbor_lines(),
        "How the cost grows": growth_plot(),
        "Peak memory beyond the data": memory_lines(),
    }
    head = [
        "# The divergence core: speed, accuracy, memory",
        "",
        f"Written by `make bench-core` (torch {torch.__version__}, {torch.get_num_threads()} "
        f"threads, {platform.machine()}). Times are for forward and backward passes with {DOMAINS} "
        "domains in float32. *Plain* is `torch.linalg.eigh` of both full matrices with autograd. "
        "Ratios are measured side by side in one run and are the best of several rounds. "
        "Milliseconds come from a shared machine and are only a rough guide. Errors are relative "
        "to the exact method in float64.",
    ]
    write_sections("core.md", head, sections)


if __name__ == "__main__":
    main()
