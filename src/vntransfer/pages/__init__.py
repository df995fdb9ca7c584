"""Self-contained HTML pages with text, sortable tables and SVG charts.

>>> from vntransfer.pages import Lines, Page, Series
>>> page = Page("Results", lead="Error of one method.")
>>> part = page.section("Errors")
>>> _ = part.figure(Lines([Series("ridge", [1, 2, 3], [0.5, 0.4, 0.3])]), "Error per epoch")
>>> page.html().startswith("<!doctype html>")
True
"""

from vntransfer.pages.charts import MUTED as MUTED
from vntransfer.pages.charts import Axis as Axis
from vntransfer.pages.charts import Chart as Chart
from vntransfer.pages.charts import Heatmap as Heatmap
from vntransfer.pages.charts import Histogram as Histogram
from vntransfer.pages.charts import Intervals as Intervals
from vntransfer.pages.charts import Lines as Lines
from vntransfer.pages.charts import Panels as Panels
from vntransfer.pages.charts import Scatter as Scatter
from vntransfer.pages.charts import Series as Series
from vntransfer.pages.charts import histogram as histogram
from vntransfer.pages.document import Page as Page
from vntransfer.pages.document import Section as Section
from vntransfer.pages.table import TableCell as TableCell
