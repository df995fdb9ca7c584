"""``vnt demo``: what the package does, on embedded data, in about a minute on two cores."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

ADAPTATION, STREAM = "demo-synthetic", "demo-stream"
"""Presets of the second and the third part."""


def command(
    out: Annotated[Path, typer.Option(help="Folder for the runs and their pages.")] = Path("runs"),
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="Worker processes; by default one per core."),
    ] = None,
    samples: Annotated[int, typer.Option(min=20, help="Rows per domain of the first part.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the domains of the first part.")] = 0,
) -> None:
    """Relate domains, adapt to each of them, learn tasks one after another (embedded data).

    Six places, 12 features, one response whose inputs drift from place to place. How differently
    does the response depend on the features? Does a regressor for a place without labels gain from
    that? And how much of old tasks does a network keep that learns new ones? About a minute on two
    cores; a second time the finished runs are shown at once.
    """
    from rich.console import Console

    console = Console()
    console.rule("1. Relate: which domains are alike?")
    relate(samples, seed, console)
    console.rule("2. Adapt: a regressor for a domain without labels")
    adapt(out / ADAPTATION, jobs, console)
    console.rule("3. Continue: one network, task after task")
    learn(out / STREAM, jobs, console)


def relate(samples: int, seed: int, console: "Console") -> None:
    """Print how different six synthetic domains are."""
    import numpy as np

    from vntransfer.cli._show import heat_map, numbers
    from vntransfer.data.synthetic import friedman_domains
    from vntransfer.divergences import pairwise

    domains = friedman_domains(samples, seed=seed)
    scale = np.concatenate([y for _, y in domains.values()]).std()
    table = pairwise([(x, y / scale) for x, y in domains.values()])
    names = list(domains)
    console.print(f"Six synthetic domains, {samples} rows of 12 features each, seed {seed}.\n")
    console.print(numbers("Conditional von Neumann divergence (0 = same)", names, table))
    console.print()
    console.print(heat_map(names, table))
    console.print("\nfuller and redder = the response depends on the features more differently")
    far = table + np.diag([np.inf] * len(names))
    nearest = ", ".join(f"{n} - {names[int(k)]}" for n, k in zip(names, far.argmin(1), strict=True))
    console.print(f"nearest neighbour of each: {nearest}")


def adapt(folder: Path, jobs: int | None, console: "Console") -> None:
    """Run the adaptation to each of the synthetic domains and print its tables."""
    import numpy as np

    from vntransfer.bench.experiments.adaptation_weights import collect
    from vntransfer.bench.report import load_report
    from vntransfer.cli._show import heat_map

    _compute(ADAPTATION, folder, jobs)
    console.print(
        "Each domain is the target once: its responses are hidden, the other five are labelled. "
        "source_only ignores the target; the others weight the sources and align features. A "
        "method is worth its cost where its error is below that of source_only."
    )
    _show(folder, 2)
    loaded = load_report(folder)
    ((data, condition),) = loaded.chosen
    for method, weights in collect(loaded, data, condition).items():
        if method == "mdd":
            console.print("weights that MDD gives to the sources (columns) of each target (rows)")
            console.print(heat_map(weights.domains, np.nan_to_num(weights.mean)))


def learn(folder: Path, jobs: int | None, console: "Console") -> None:
    """Run a short stream of tasks and print its tables."""
    _compute(STREAM, folder, jobs)
    console.print(
        "Five tasks, each with the pixels of handwritten digits in another order, one pass each. "
        "LA is the accuracy on a task just after it was learnt, RA that on all tasks at the end, "
        "BT their difference: what was forgotten. sgd does nothing against it."
    )
    _show(folder, 1)


def _compute(preset: str, folder: Path, jobs: int | None) -> None:
    from vntransfer.bench import run
    from vntransfer.bench.display import Display

    with Display() as display:
        summary = run(preset, jobs=jobs, out=folder, watcher=display)
    if summary.failed:
        typer.echo(f"{summary.failed} cells failed: vnt bench report {folder}", err=True)
        raise typer.Exit(1)


def _show(folder: Path, tables: int) -> None:
    """Print the first tables of a run, write its page, and say where the rest is."""
    from vntransfer.bench.page import write_page
    from vntransfer.bench.report import load_report
    from vntransfer.bench.tables import render

    typer.echo(render(load_report(folder).tables()[:tables]))
    typer.echo(f"\nmore tables: vnt bench report {folder}")
    typer.echo(f"page: {write_page(folder).resolve()}")
