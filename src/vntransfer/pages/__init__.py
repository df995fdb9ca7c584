"""Self-contained pages: text, tables that sort, and charts as SVG; nothing else is needed.

>>> from vntransfer.pages import Lines, Page, Series
>>> page = Page("Results", lead="What came out.")
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
    Dendrogram,
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
    "Dendrogram",
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
