"""A chart as one SVG file with all panels and the legend, in light and dark."""

import re
from html import escape
from pathlib import Path

from vntransfer.pages import palette
from vntransfer.pages.alt_text import summary
from vntransfer.pages.charts import Chart, Heatmap, Panel, Panels
from vntransfer.pages.document import resource
from vntransfer.pages.draw import PANEL, color_bar, draw
from vntransfer.pages.figure import common_scale, legend_entries
from vntransfer.pages.layout import colors, panels
from vntransfer.pages.svg import coordinate, tag, text, text_width
from vntransfer.storage.files import atomic_write
from vntransfer.storage.places import GENERATOR, PICTURES, check_file

WIDEST = 960.0
"""Width that panels are set side by side in, unless the chart says how many."""

_RIM, _GAP, _LINE = 10.0, 14.0, 18.0
_SPOKEN = re.compile(r' data-[a-z]+="[^"]*"')  # what only the script of a page reads


def picture(chart: Chart, title: str, *, width: float = 480.0) -> str:
    """SVG of a chart, named by ``title`` for screen readers: panels in rows below one legend.

    A panel alone has this ``width``, unless it is a heat map.
    """
    shown = panels(chart)
    alone, places = len(shown) == 1, colors(chart)
    drawn = [draw(panel, places, _width(panel, width if alone else None)) for panel in shown]
    rows: list[list[tuple[str, float, float]]] = [[]]
    most = chart.columns if isinstance(chart, Panels) else None
    for one in drawn:
        used = sum(width + _GAP for _, width, _ in rows[-1])
        full = len(rows[-1]) >= most if most else used + one[1] > WIDEST
        if rows[-1] and full:
            rows.append([])
        rows[-1].append(one)
    wide = max(sum(width + _GAP for _, width, _ in row) - _GAP for row in rows)
    parts, top, reach = _legend(places, shown, wide)
    wide = max(wide, reach)
    for row in rows:
        left = _RIM
        for content, width, _ in row:
            parts.append(_at(left, top, _SPOKEN.sub("", content)))
            left += width + _GAP
        top += max(height for _, _, height in row) + _GAP
    size = {"width": f"{wide + 2 * _RIM:.0f}", "height": f"{top - _GAP + _RIM:.0f}"}
    ground = tag("rect", width="100%", height="100%", class_="ground")
    head = f"<title>{escape(title)}</title><desc>{escape(summary(chart))}</desc>"
    inner = f"{head}<style>{_style()}</style>{ground}{''.join(parts)}"
    names = {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "generator": GENERATOR}
    return tag("svg", inner, viewBox=f"0 0 {' '.join(size.values())}", **size, **names) + "\n"


def _width(panel: Panel, alone: float | None) -> float:
    """Return the width of a panel, or of one of several if ``alone`` is None."""
    if isinstance(panel, Heatmap):
        return 450.0 if alone is None else 640.0
    return PANEL if alone is None else alone


def write_picture(
    chart: Chart, title: str, path: str | Path, *, width: float = 480.0, overwrite: bool = False
) -> Path:
    """Write the SVG of a chart; see `picture` and `write_svg`."""
    return write_svg(picture(chart, title, width=width), path, overwrite=overwrite)


def write_svg(content: str, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write an SVG file atomically and return its path.

    An existing file is replaced if it is a picture of vntransfer, or with ``overwrite``.
    """
    check_file("path", path, PICTURES, overwrite=overwrite)
    with atomic_write(path, "w") as file:
        file.write(content)
    return Path(path)


def _at(left: float, top: float, content: str) -> str:
    return tag("g", content, transform=f"translate({coordinate(left)} {coordinate(top)})")


def _legend(
    places: dict[str, int], shown: list[Panel], wide: float
) -> tuple[list[str], float, float]:
    """Scale of the heat maps and names of the series in lines, where they end below and right."""
    parts, left, top, reach = [], _RIM, _RIM, 0.0
    if scale := common_scale(shown):
        bar, reach, height = color_bar(scale)
        if scale.label:
            parts.append(text(scale.label, left, top + 11))
            left += text_width(scale.label) + 8
        parts.append(_at(left, top, bar))
        left, top, reach = _RIM, top + height + 10, reach + left - _RIM
    entries = legend_entries(places, shown)
    for name, swatch, space in entries:
        room = space + 5 + text_width(name, 11.5)
        if left > _RIM and left + room > _RIM + wide:
            left, top = _RIM, top + _LINE
        parts.append(_at(left, top, swatch))
        parts.append(text(name, left + space + 5, top + 10))
        reach = max(reach, left + room - _RIM)
        left += room + 16
    return parts, top + (_LINE + 6 if entries else 0), reach


def _style() -> str:
    light, dark = (palette.declarations(palette.variables(theme)) for theme in ("light", "dark"))
    return (
        f"svg{{{light}}}@media (prefers-color-scheme:dark){{svg{{{dark}}}}}"
        f".ground{{fill:var(--ground)}}{resource('chart.css')}{palette.classes()}"
    )
