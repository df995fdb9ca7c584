"""Self-contained HTML pages with text, sortable tables and SVG charts.

>>> from vntransfer.pages import Lines, Page, Series
>>> page = Page("Results", lead="Error of one method.")
>>> part = page.section("Errors")
>>> _ = part.figure(Lines([Series("ridge", [1, 2, 3], [0.5, 0.4, 0.3])]), "Error per epoch")
>>> page.html().startswith("<!doctype html>")
True
"""

from vntransfer.pages.charts import (
    MUTED,
    Axis,
    Bars,
    Chart,
    Heatmap,
    Histogram,
    Intervals,
    Lines,
    Panels,
    Scatter,
    Series,
    histogram,
)
from vntransfer.pages.document import Page, Section
from vntransfer.pages.table import TableCell

__all__ = [
    "MUTED",
    "Axis",
    "Bars",
    "Chart",
    "Heatmap",
    "Histogram",
    "Intervals",
    "Lines",
    "Page",
    "Panels",
    "Scatter",
    "Section",
    "Series",
    "TableCell",
    "histogram",
]
