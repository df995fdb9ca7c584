"""Charts as SVG files: well formed, complete, and wide enough for what they show."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from helpers.gallery import charts
from vntransfer.pages import Axis, Heatmap, Histogram, Lines, Panels, Scatter, Series
from vntransfer.pages.layout import panels
from vntransfer.pages.picture import picture, write_picture

SVG = "{http://www.w3.org/2000/svg}"


def texts(markup: str) -> list[str]:
    return [one.text or "" for one in ElementTree.fromstring(markup).iter(f"{SVG}text")]


@pytest.mark.parametrize("name", charts())
def test_every_chart_is_one_file_that_needs_nothing_else(name: str, tmp_path: Path) -> None:
    chart = charts()[name]
    markup = write_picture(chart, name, tmp_path / "a.svg").read_text("utf-8")
    assert markup == picture(chart, name)
    root = ElementTree.fromstring(markup)
    assert root.tag == f"{SVG}svg"
    assert not re.search(r"url\(|href|<script| data-|@import", markup)
    shown = texts(markup)
    for panel in panels(chart):
        assert not panel.title or panel.title in shown


def test_names_are_escaped_and_stand_in_the_legend() -> None:
    series = [Series(name, [0, 1], [1, 2]) for name in ('<b>"', "plain & simple")]
    assert {'<b>"', "plain & simple"} <= set(texts(picture(Lines(series), "</title>")))


def test_a_legend_has_the_marks_of_the_first_panel() -> None:
    names = ("a", "b")
    dots = Scatter([Series(name, [0, 1], [1, 2]) for name in names], Axis(), Axis())
    middles = [Series(name, [0.5, 1.5], [1, 2], marks=False) for name in names]
    steps = Histogram(middles, edges=[0, 1, 2])
    markup = picture(Panels([dots, steps], share=False), "both")
    assert markup.count('class="mark"') == len(names)


def test_a_long_legend_widens_a_narrow_chart() -> None:
    small = Heatmap(["r"], ["c"], [[1.0]])
    wide = Heatmap(["r"], ["c"], [[1.0]], label="a label that is much wider than the map itself")
    widths = [float(ElementTree.fromstring(picture(c, "t")).attrib["width"]) for c in (small, wide)]
    assert widths[1] > widths[0] + 150
