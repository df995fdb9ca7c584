"""Tables and figures of the experiment ``counting``: counts and densities, never photographs."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vntransfer.pages import Axis, Heatmap, Panels, Scatter, Series
from vntransfer_lab.reports.drawings import Drawing, standard
from vntransfer_lab.reports.report import Report, comparison_tables, value_table
from vntransfer_lab.reports.tables import ReportTable

SHOWN = ("source_only", "align", "mdd_paper", "oracle")
"""Methods whose counts and maps are drawn."""

_Maps = dict[str, NDArray[np.float64]]


def tables(loaded: Report) -> list[ReportTable]:
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


def figures(loaded: Report) -> Iterator[Drawing]:
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
        caption = "One mark per picture, of the first seed; on the dotted line the count is right."
        yield Drawing(
            "counts",
            "Predicted and true counts",
            count_panels(counts, list(loaded.preset.methods)),
            caption,
        )
        caption = "Mean vehicles in 8 x 8 parts of a picture, of the first seed, and their sum."
        yield Drawing("maps", "Density maps", map_panels(means), caption)


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


def count_panels(
    counts: Mapping[str, Mapping[str, tuple[list[float], list[float]]]], order: Sequence[str]
) -> Panels:
    """Predicted against true counts, a panel per target; a method has the color of its place."""
    x, y = Axis("vehicles"), Axis("predicted")
    return Panels(
        [
            Scatter(
                [
                    Series(m, true, guessed, color=order.index(m))
                    for m, (true, guessed) in methods.items()
                ],
                x,
                y,
                title=f"target {target}",
                diagonal=True,
            )
            for target, methods in counts.items()
        ]
    )


def map_panels(means: Mapping[str, Mapping[str, NDArray[np.float64]]]) -> Panels:
    """Mean vehicles in each part of a picture: a row per target, the truth first."""
    charts = []
    for target, maps in means.items():
        for name, values in maps.items():
            rows, columns = ([str(i + 1) for i in range(n)] for n in values.shape)
            title = f"{target}, {name}: {values.sum():.1f}"
            charts.append(
                Heatmap(rows, columns, values, title=title, label="mean vehicles", low=0.0)
            )
    most = max((len(maps) for maps in means.values()), default=1)
    return Panels(charts, columns=most)
