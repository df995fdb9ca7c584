"""Tables and figures of the experiment ``counting``: counts and densities, never photographs."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.bench.figures import COLOURS, MARKERS, grid, legend, standard
from vntransfer.bench.report import Report, comparison_tables, value_table
from vntransfer.bench.tables import Table

SHOWN = ("source_only", "mdd", "mdd_paper", "oracle")
"""Methods whose counts and maps are drawn."""

_Maps = dict[str, NDArray[np.float64]]


def tables(loaded: Report) -> list[Table]:
    """Give errors of counts, of places (GAME) and of the training pictures, then the tests."""
    found = []
    for data in loaded.preset.data:
        found += [value_table(loaded, data, m) for m in ("mae", "game2", "train_mae")]
    return found + (comparison_tables(loaded) if loaded.preset.baseline else [])


def collect(loaded: Report, start: str) -> dict[str, dict[str, dict[str, float]]]:
    """Target -> method -> metrics that begin so, of the first data set and seed, start cut off."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    if not loaded.chosen:
        return found
    cells = next(iter(loaded.chosen.values()))
    first = min(seed for _, _, seed in cells)
    for (method, target, seed), (record, step) in cells.items():
        if seed == first:
            own = {
                name.removeprefix(start): steps[step]
                for name, steps in record.metrics.items()
                if name.startswith(start)
            }
            found.setdefault(target, {})[method] = own
    return found


def figures(loaded: Report) -> Iterator[tuple[str, Any]]:
    """Errors per target; predicted against true counts; mean densities, true and predicted."""
    yield from standard(loaded)
    true, guessed = collect(loaded, "true/"), collect(loaded, "predicted/")
    maps, guesses = collect(loaded, "true_map/"), collect(loaded, "predicted_map/")
    counts: dict[str, dict[str, tuple[list[float], list[float]]]] = {}
    means: dict[str, _Maps] = {}
    for target, methods in true.items():
        for method in (m for m in SHOWN if m in methods):
            pair = true[target][method], guessed[target][method]
            counts.setdefault(target, {})[method] = list(pair[0].values()), list(pair[1].values())
            own = means.setdefault(target, {"true": as_map(maps[target][method])})
            own[method] = as_map(guesses[target][method])
    if counts:
        yield "counts", count_panels(counts)
        yield "maps", map_panels(means)


def as_map(values: Mapping[str, float]) -> NDArray[np.float64]:
    """Put values of ROW/COLUMN in their places.

    Examples
    --------
    >>> as_map({"0/0": 1.0, "0/1": 2.0}).tolist()
    [[1.0, 2.0]]
    """
    places = {tuple(map(int, name.split("/"))): value for name, value in values.items()}
    found = np.zeros(np.max(list(places), axis=0) + 1)
    for place, value in places.items():
        found[place] = value
    return found


def count_panels(counts: Mapping[str, Mapping[str, tuple[list[float], list[float]]]]) -> Any:
    """Predicted against true counts, a panel per target and a mark per picture.

    Parameters
    ----------
    counts
        Target -> method -> true and predicted counts.
    """
    figure, axes = grid(1, len(counts), width=2.6, height=2.8)
    every = [v for m in counts.values() for pair in m.values() for side in pair for v in side]
    low, high = min(0.0, *every), max(every)
    for ax, (target, methods) in zip(axes.flat, counts.items(), strict=True):
        ax.plot([low, high], [low, high], color="#888888", linestyle=":", linewidth=1)
        for index, (method, (true, guessed)) in enumerate(methods.items()):
            style = {"color": COLOURS[index], "marker": MARKERS[index], "label": method}
            ax.scatter(true, guessed, s=9, alpha=0.6, **style)
        ax.set_title(f"target {target}", fontsize=9)
        ax.set_xlabel("vehicles", fontsize=8)
    axes[0, 0].set_ylabel("predicted", fontsize=8)
    legend(figure, axes)
    return figure


def map_panels(means: Mapping[str, Mapping[str, NDArray[np.float64]]]) -> Any:
    """Mean vehicles in each part of a picture: a row per target, the truth first, one colour scale.

    Parameters
    ----------
    means
        Target -> "true" or method -> map.
    """
    columns = list(dict.fromkeys(name for maps in means.values() for name in maps))
    figure, axes = grid(len(means), len(columns), width=1.7, height=1.5)
    largest = max(float(m.max()) for maps in means.values() for m in maps.values())
    image = None
    for row, (target, maps) in enumerate(means.items()):
        for ax, name in zip(axes[row], columns, strict=True):
            ax.set_xticks([])
            ax.set_yticks([])
            ax.grid(visible=False)
            if name in maps:
                image = ax.imshow(maps[name], cmap="magma", vmin=0, vmax=largest, aspect=0.75)
                ax.set_title(f"{name}: {maps[name].sum():.1f}", fontsize=8)
        axes[row, 0].set_ylabel(target, fontsize=8)
    figure.colorbar(image, ax=axes, shrink=0.7, label="mean vehicles")
    return figure
