"""Pages without a browser: whole, escaped, self-contained, and right in their numbers."""

import base64
import hashlib
import re
import xml.etree.ElementTree as ET
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.gallery import HOSTILE, charts, gallery
from helpers.imports import HEAVY, loaded_after
from vntransfer.errors import ArgumentError
from vntransfer.pages import (
    Axis,
    Heatmap,
    Intervals,
    Lines,
    Page,
    Panels,
    Series,
    TableCell,
)
from vntransfer.pages import svg as shapes
from vntransfer.pages.alt_text import numbers, summary
from vntransfer.pages.draw import draw, short, value_text
from vntransfer.pages.figure import figure
from vntransfer.pages.layout import colors, extent, panels
from vntransfer.pages.scales import Scale, log_ticks, number, tick_text, ticks
from vntransfer.pages.table import fragment

FORBIDDEN = r"fetch\(|XMLHttpRequest|eval\(|innerHTML|https?://(?!www\.w3\.org)"
VOID = {"meta", "img", "br", "link", "input"}


class Reader(HTMLParser):
    """Elements of a page; complains when they are not nested."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.stack:
            self.texts.append((self.stack[-1], data))

    def tags(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.seen if tag == name]


@pytest.fixture(scope="module")
def hostile() -> str:
    return gallery(HOSTILE).html()


def test_pages_are_well_formed_and_nothing_of_a_user_becomes_markup(hostile: str) -> None:
    plain, read = Reader(gallery().html()), Reader(hostile)
    counts, expected = (Counter(tag for tag, _ in one.seen) for one in (read, plain))
    # longer names leave room for fewer ticks, and some charts are drawn again for a phone
    for name in ("path", "text", "g", "svg", "rect"):
        del counts[name], expected[name]
    assert counts == expected
    assert len(read.tags("script")) == 1
    assert read.tags("img") == []
    names = {name for _, attributes in read.seen for name in attributes}
    assert not [name for name in names if name.startswith("on")]
    # and yet the reader sees the name as it is
    assert ("h1", f"Gallery{HOSTILE}") in read.texts


def test_pages_need_nothing_from_elsewhere(hostile: str) -> None:
    read = Reader(hostile)
    for tag, attributes in read.seen:
        assert "style" not in attributes  # the policy forbids it
        for name in ("src", "href", "action", "xlink:href"):
            target = attributes.get(name)
            assert target is None or target.startswith("#"), (tag, target)
    style = "".join(text for tag, text in read.texts if tag == "style")
    assert "url(" not in style
    assert "@import" not in style
    script = "".join(text for tag, text in read.texts if tag == "script")
    assert not re.search(FORBIDDEN, script)


def test_the_policy_allows_the_inline_parts_alone() -> None:
    read = Reader(gallery().html())
    (policy,) = (str(a["content"]) for a in read.tags("meta") if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for kind in ("style", "script"):
        text = "".join(t for tag, t in read.texts if tag == kind)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_landmarks_labels_and_links() -> None:
    read = Reader(gallery().html())
    for name in ("header", "nav", "main", "footer"):
        assert len(read.tags(name)) == 1
    ids = [a["id"] for _, a in read.seen if "id" in a]
    assert len(ids) == len(set(ids))
    assert {str(a["href"])[1:] for a in read.tags("a")} <= set(ids)
    for svg in read.tags("svg"):
        assert svg.get("aria-hidden") == "true" or (svg["role"], svg["tabindex"]) == ("img", "0")
        assert svg.get("aria-hidden") or len(str(svg["aria-label"])) > 10
    assert all(a.get("scope") in ("row", "col") for a in read.tags("th"))
    figures = read.tags("figure")
    assert len(read.tags("details")) - 1 == len(figures) == len(charts())  # one table is folded


def test_tables_sort_by_value_and_say_what_is_text() -> None:
    page = Page("t")
    rows = [["a", TableCell("10 ± 1", 10.0), 1e-12], ["b", None, -3]]
    page.section("s").table(["name", "error", "p"], rows)
    cells = [a for tag, a in Reader(page.html()).seen if tag in ("td",)]
    assert [a.get("data-v") for a in cells] == ["10", "1e-12", None, "-3"]
    heads = Reader(page.html()).tags("th")[:3]
    assert [a.get("class") for a in heads] == ["text", None, None]
    assert {a["aria-sort"] for a in heads} == {"none"}


def test_mistakes_are_named() -> None:
    part = Page("t").section("s")
    with pytest.raises(ArgumentError, match="rows: 1 values for 2 columns"):
        part.table(["a", "b"], [["x"]])
    with pytest.raises(ArgumentError, match=r"kind: expected one of good, .* got 'great'"):
        part.note("x", kind="great")
    with pytest.raises(ArgumentError, match=r"values: shape \(1, 2\) for 2 rows"):
        Heatmap(["a", "b"], ["x", "y"], [[1.0, 2.0]])
    with pytest.raises(ArgumentError, match="side: 'rank' has 1 texts for 2 rows"):
        Heatmap(["a", "b"], ["x", "y"], np.eye(2), side=[("rank", ["1"])])
    with pytest.raises(ArgumentError, match="dash: expected one of none, solid"):
        Series("a", [], [], dash="wavy")


@pytest.mark.parametrize("name", charts())
def test_every_chart_is_drawn_said_and_tabulated(name: str) -> None:
    chart = charts(HOSTILE)[name]
    for panel in panels(chart):
        content, width, height = draw(panel, colors(chart), 480)
        root = ET.fromstring(f"<svg>{content}</svg>")
        assert "NaN" not in content
        assert "nan" not in content.replace("&", "")
        assert len(root.findall(".//text")) > 2
        for shape in root.iter("rect"):
            x, y = float(shape.attrib["x"]), float(shape.attrib["y"])
            assert -1 <= x <= width
            assert -1 <= y <= height
            assert float(shape.attrib["height"]) >= 0
        header, rows = numbers(panel)
        assert rows
        assert {len(row) for row in rows} == {len(header)}
    assert len(summary(chart)) > 20


def test_marks_stand_where_their_values_say() -> None:
    chart = Lines([Series("a", [0, 5, 10], [1.0, None, 3.0], [0.5, None, 2.5], [1.5, None, 3.5])])
    content, width, height = draw(chart, colors(chart), 480)
    root = ET.fromstring(f"<svg>{content}</svg>")
    (group,) = (g for g in root.iter("g") if "data-p" in g.attrib)
    (x1, y1), (x2, y2) = (map(float, p.split(",")) for p in group.attrib["data-p"].split(" "))
    assert x1 < x2 < width
    assert 0 < y2 < y1 < height  # larger values stand higher
    assert group.attrib["data-x"] == "0|10"
    assert group.attrib["data-v"] == "1 (0.5 to 1.5)|3 (2.5 to 3.5)"
    line = next(p for p in group.iter("path") if p.attrib["class"] == "line")
    assert line.attrib["d"].count("M") == 2  # a gap where the value is missing


def test_values_of_others_are_hollow_marks_within_the_axis() -> None:
    chart = Intervals(["a", "b"], [1.0, 2.0], others=[9.0, None], others_name="paper")
    content, _, _ = draw(chart, colors(chart), 480)
    root = ET.fromstring(f"<svg>{content}</svg>")
    assert [p.attrib["class"] for p in root.iter("path")].count("hollow") == 1
    assert [g.attrib["data-v"] for g in root.iter("g") if "data-v" in g.attrib] == [
        "1; paper: 9",
        "2",
    ]
    assert extent(chart, "x") == (1, 9)
    assert numbers(chart)[0][-1] == "paper"


def test_texts_beside_a_map_follow_its_rows() -> None:
    names = ["a", "b", "c"]
    plain = Heatmap(names, names, np.eye(3), mark="•", marks=np.eye(3) > 0)
    chart = Heatmap(
        names, names, np.eye(3), mark="•", marks=np.eye(3) > 0, side=[("rank", ["1", "2", "3"])]
    )
    content, width, _ = draw(chart, colors(chart), 480)
    assert width > draw(plain, colors(plain), 480)[1]
    assert content.count("•") == 3
    assert "rank" in content
    header, rows = numbers(chart)
    assert header[-1] == "rank"
    assert [(row[0], row[-1]) for row in rows] == [("a", "1"), ("b", "2"), ("c", "3")]


def test_log_axes_leave_out_what_has_no_logarithm() -> None:
    chart = Lines([Series("a", [1, 10, 100], [0.0, 0.1, 0.01])], Axis(log=True), Axis(log=True))
    content, _, _ = draw(chart, colors(chart), 480)
    assert 'data-x="10|100"' in content
    assert extent(chart, "y") == (0.01, 0.1)


def test_panels_share_axes_and_colors() -> None:
    left = Lines([Series("b", [0, 1], [0, 1])], y=Axis(low=0))
    right = Lines([Series("a", [0, 4], [0, 9]), Series("b", [0, 4], [2, 3])], y=Axis(low=0))
    chart = Panels([left, right])
    assert colors(chart) == {"b": 0, "a": 1}
    one, other = panels(chart)
    assert extent(one, "x") == extent(other, "x")
    assert extent(one, "y") == extent(other, "y") == (0, pytest.approx(9.45))
    assert panels(Panels([left, right], share=False)) == [left, right]


def test_limits_of_colors() -> None:
    assert Heatmap(["a"], ["b"], [[3.0]]).limits == (0, 3)
    assert Heatmap(["a"], ["b", "c"], [[-2.0, 3.0]]).limits == (-2, 3)
    assert Heatmap(["a"], ["b"], [[None]]).limits == (0, 1)
    assert Heatmap(["a"], ["b"], [[5.0]], low=5, high=5).limits == (5, 6)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-7.3, 12), (0.001, 0.0012), (1e5, 3e7), (2, 2)])
@pytest.mark.parametrize("log", [False, True])
def test_ticks_lie_between_the_ends(low: float, high: float, log: bool) -> None:
    if (log and low <= 0) or low == high:
        return
    scale = Scale(low, high, 0, 100, log)
    found = scale.ticks()
    assert 2 <= len(found) <= 12
    assert found == sorted(set(found))
    assert all(scale.shows(tick) for tick in found)
    places = [scale(tick) for tick in found]
    assert places == sorted(places)


def test_numbers_and_names_are_short() -> None:
    values = (0.123456, 12345.6, 1e-7, 2.0, None)
    assert [number(value) for value in values] == ["0.1235", "12346", "1e-07", "2", ""]
    assert value_text(2.0, (1.5, 2.5)) == "2 (1.5 to 2.5)"
    assert [short(0.1234, 0.9), short(12.34, 99), short(3.21, 5), short(-0.5, 1)] == [
        ".12", "12", "3.2", "−.50",
    ]  # fmt: skip
    assert ticks(-3, 12, 3) == [0.0, 5.0, 10.0]
    assert log_ticks(2, 30) == [2.0, 5.0, 10.0, 20.0]
    powers = [tick_text(value, log=True) for value in (1e5, 20, 1e-4)]
    assert powers == ["10⁵", "20", "10⁻⁴"]
    assert shapes.fitted("a name that is much too long", 60) == "a na…long"
    assert shapes.tag("rect", x=1.25, data_n='"<b>') == '<rect x="1.2" data-n="&quot;&lt;b&gt;"/>'


def test_fragments_are_escaped_and_say_how_much_they_show() -> None:
    shown = fragment(["A & B"], ["place"], [["<b>"]] * 30, 5000)
    assert "<p>A &amp; B</p>" in shown
    assert shown.count('<th scope="row">&lt;b&gt;</th>') == 20
    assert "20 of 5,000 rows" in shown


def test_empty_charts_are_drawn_too() -> None:
    page = Page("t")
    part = page.section("s")
    part.figure(Lines([]), "no lines")
    part.figure(Heatmap([], [], []), "no map").table(["a"], [])
    part.figure(Lines([Series("a", [1], [np.nan])]), "nothing")
    Reader(page.html())


def test_pages_are_written_whole(tmp_path: Path) -> None:
    path = gallery().write(tmp_path / "new" / "page.html")
    assert path.read_text("utf-8") == gallery().html()
    assert [file.name for file in path.parent.iterdir()] == ["page.html"]
    assert path.stat().st_size < 400_000


def test_the_toolkit_is_light() -> None:
    assert not loaded_after("import vntransfer.pages") & (HEAVY - {"torch", "scipy"})


@given(
    st.lists(st.floats(10, 11), min_size=3, max_size=12),
    st.integers(1, 3),
    st.sampled_from([1, -1]),
)
def test_outliers_do_not_squeeze_the_other_intervals(near: list[float], n: int, side: int) -> None:
    far = [10.5 + side * (50.0 + i) for i in range(min(n, (len(near) + 1) // 4) or 1)]
    values = [*near, *far]
    chart = Intervals([f"m{i}" for i in range(len(values))], values)
    low, high = extent(chart, "x") or (0.0, 0.0)
    if np.ptp(near) > 0:
        assert (low, high) == (min(near), max(near))
    drawn = draw(chart, colors(chart), 480)[0]
    assert drawn.count("beyond") == (len(far) if np.ptp(near) > 0 else 0)
    assert all(f"m{i}" in drawn for i in range(len(values)))  # every row can be pointed at


def test_a_given_end_or_reference_is_part_of_what_an_axis_shows() -> None:
    names, values = ["a", "b", "c"], [1.0, 1.01, 1.5]
    assert extent(Intervals(names, values), "x") == (1.0, 1.01)
    assert extent(Intervals(names, values, [0.8] * 3, [1.2, 1.2, 1.6]), "x") == (0.8, 1.6)
    assert extent(Intervals(names, values, x=Axis(low=0.0)), "x") == (0.0, 1.5)
    assert extent(Intervals(names, values, reference=1.4), "x") == (1.0, 1.5)


@pytest.mark.parametrize(("n", "most", "kind"), [(4, None, "pairs"), (6, None, "threes")])
def test_panels_leave_few_gaps(n: int, most: int | None, kind: str) -> None:
    panel = Lines([Series("a", [1, 2], [1, 2])])
    assert f'class="plot {kind}"' in figure(Panels([panel] * n, columns=most), "t", "", "a")


def test_ticks_stand_apart() -> None:
    for width in (120, 300, 760):
        chart = Lines([Series("a", [0, 12345.678], [0, 1])], x=Axis("x"))
        drawn = draw(chart, colors(chart), width)[0]
        places = [
            (float(x), len(label))
            for x, label in re.findall(r'<text x="([\d.]+)"[^>]*middle">([^<]+)</text>', drawn)
            if label != "x"
        ]
        for (x, n), (x2, n2) in pairwise(sorted(places)):
            assert x2 - x > 3 * (n + n2)
