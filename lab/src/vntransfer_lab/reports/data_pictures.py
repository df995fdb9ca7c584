"""Pictures of the data that a run reads: t-SNE and histograms of its domains."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.errors import VnError
from vntransfer.pages import Axis, Panels, Scatter, Series, histogram
from vntransfer_lab.reports.drawings import Drawing
from vntransfer_lab.reports.report import Report

POINTS = 400
"""Rows of a t-SNE."""

MOST_DOMAINS = 14
"""More are not told apart."""


def domain_drawings(loaded: Report, *, points: int = POINTS) -> Iterator[Drawing]:
    """t-SNE of the rows and histograms of the responses of each data set that is at hand.

    Parameters
    ----------
    loaded
        A run whose kind has domains; others give nothing, nor do data that are absent.
    points
        Rows of all domains together.
    """
    if loaded.kind.domains is None:
        return
    for data in loaded.preset.data:
        try:
            domains = loaded.kind.domains(data, loaded.preset.settings)
        except VnError:  # the files are not on this machine: the results are shown all the same
            continue
        shown = dict(list(domains.items())[:MOST_DOMAINS])
        responses = {name: np.asarray(y, dtype=np.float64) for name, (_, y) in shown.items()}
        axes = {"x": Axis("response"), "y": Axis("share of the rows")}
        right = histogram(responses, bins=_bins(responses), title="responses", **axes)
        chart = Panels([_embedded(shown, points), right], share=False)
        caption = (
            f"t-SNE of at most {points} rows, drawn at random with a fixed seed: distances between "
            "clusters mean nothing; histograms of y, each domain by itself."
        )
        yield Drawing(f"domains-{data}", f"Domains of {data}", chart, caption)


def _embedded(domains: dict[str, tuple[Any, Any]], points: int) -> Scatter:
    from vntransfer_lab.data.embedding import embed

    places, owner = embed(domains, points)
    series = [Series(name, *places[owner == g].T) for g, name in enumerate(domains)]
    return Scatter(series, Axis(hidden=True), Axis(hidden=True), title="t-SNE of the rows")


def _bins(responses: dict[str, NDArray[np.float64]]) -> int | NDArray[np.float64]:
    """Bins of a response: one per value where there are few."""
    values = np.unique(np.concatenate(list(responses.values())))
    if len(values) > 12:
        return 30
    gap = float(np.diff(values).min()) if len(values) > 1 else 1.0
    return np.arange(values[0] - gap / 2, values[-1] + gap, gap)
