"""The same charts by matplotlib: every kind of panel, with its numbers in the right place."""

import io

import numpy as np
import pytest

from helpers.gallery import charts
from vntransfer.pages import MUTED, Axis, Bars, Heatmap, Intervals, Lines, Panels, Series
from vntransfer.pages.layout import panels
from vntransfer_lab.reports.matplotlib_figures import COLORS, plot


@pytest.mark.parametrize("name", charts())
def test_every_chart_is_drawn(name: str) -> None:
    chart = charts()[name]
    figure = plot(chart)
    titles = [ax.get_title() for ax in figure.axes][: len(panels(chart))]
    assert titles == [panel.title for panel in panels(chart)]
    figure.savefig(io.BytesIO(), format="png", dpi=30)


def test_lines_have_their_values_errors_and_colors() -> None:
    series = [
        Series("a", [1, 2], [0.5, 0.7], [0.4, 0.6], [0.6, 0.9]),
        Series("b", [1, 2], [1.0, None], marks=False),
        Series("r", [1, 2], [0.1, 0.2], color=MUTED),
    ]
    chart = Lines(series, Axis("n", log=True), Axis("e", low=0, high=2), rules=[0.3])
    (ax,) = plot(chart).axes
    a, *_ = ax.containers[0].lines
    assert a.get_ydata().tolist() == [0.5, 0.7]
    assert a.get_color() == COLORS[0]
    (bars,) = ax.containers[0].lines[2]
    assert np.allclose([segment[:, 1] for segment in bars.get_segments()], [[0.4, 0.6], [0.6, 0.9]])
    assert (ax.get_xscale(), ax.get_ylim()) == ("log", (0, 2))
    assert ax.lines[-1].get_ydata() == [0.3, 0.3]
    assert [text.get_text() for text in ax.figure.legends[0].get_texts()] == ["a", "b", "r"]


def test_maps_share_a_scale_and_bars_stand_side_by_side() -> None:
    maps = [Heatmap(["r"], ["x", "y"], [[k, np.nan]], title=f"m{k}") for k in (1.0, 4.0)]
    first, second, _ = plot(Panels(maps)).axes
    assert first.images[0].get_clim() == second.images[0].get_clim() == (0, 4)
    assert [text.get_text() for text in second.texts] == ["4"]
    (ax,) = plot(Bars(["x", "y"], [Series("a", [0, 1], [1, 2]), Series("b", [0, 1], [3, 4])])).axes
    assert [bar.get_height() for bar in ax.patches] == [1, 2, 3, 4]
    assert ax.patches[0].get_x() < ax.patches[2].get_x() < ax.patches[1].get_x()


def test_intervals_run_from_top_to_bottom() -> None:
    chart = Intervals(["a", "b"], [1.0, None], [0.5, None], [2.0, None], reference=1.5)
    (ax,) = plot(chart).axes
    assert len(ax.containers) == 1
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"]
    assert ax.yaxis_inverted()
    assert ax.lines[-1].get_xdata() == [1.5, 1.5]
