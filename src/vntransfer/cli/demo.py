"""``vnt demo``: the main job on embedded data."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console


def command(
    samples: Annotated[int, typer.Option(min=20, help="Rows per domain.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the synthetic domains.")] = 0,
) -> None:
    """Relate the paper's six synthetic domains to each other (embedded data, seconds).

    Six places, 12 features, one response whose inputs drift from place to place: how differently
    does the response depend on the features? Neighbours should come out close.
    """
    from rich.console import Console

    demo(samples, seed, Console())


def demo(samples: int, seed: int, console: "Console") -> None:
    """Print the demo to a console."""
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
    console.print("\ndarker = the response depends on the features more differently")
    far = table + np.diag([np.inf] * len(names))
    nearest = ", ".join(f"{n} - {names[int(k)]}" for n, k in zip(names, far.argmin(1), strict=True))
    console.print(f"nearest neighbour of each: {nearest}")
