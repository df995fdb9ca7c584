"""Pieces of SVG as text; every string of a user passes through `escape`."""

import math
from collections.abc import Iterable, Sequence
from html import escape
from unicodedata import east_asian_width

LONGEST = 180.0
"""Widest name beside an axis."""

LETTERS = 11.0
"""Size of letters; a page never shrinks a chart."""

_NARROW, _BROAD = set("iljtfrI.,:;'|!()[]{}/ -"), set("mwMWOQ@%−±")


def coordinate(value: float) -> str:
    """Coordinate with one decimal, as short as it goes."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def tag(name: str, content: str = "", /, **attributes: str | float | None) -> str:
    """Element of SVG or HTML; ``content`` is markup, attributes are escaped.

    Underscores of attribute names become hyphens, trailing ones disappear; None leaves one out.
    """
    parts = [name]
    for key, value in attributes.items():
        if value is not None:
            text = coordinate(value) if isinstance(value, int | float) else escape(value)
            parts.append(f'{key.rstrip("_").replace("_", "-")}="{text}"')
    head = " ".join(parts)
    return f"<{head}>{content}</{name}>" if content else f"<{head}/>"


def shape(commands: str, kind: str) -> str:
    """Path whose class says what it is."""
    return tag("path", d=commands, class_=kind)


def text(content: str, x: float, y: float, **attributes: str | float | None) -> str:
    """Text of a user at a place."""
    return tag("text", escape(content) or " ", x=x, y=y, **attributes)


def text_width(content: str, size: float = LETTERS) -> float:
    """About how wide a text is: no font is known before the page is shown."""
    return size * sum(
        1.0
        if east_asian_width(letter) in "WF"
        else 0.39
        if letter in _NARROW
        else 0.96
        if letter in _BROAD
        else 0.64
        for letter in content
    )


def fitted(content: str, width: float, size: float = LETTERS) -> str:
    """Text that is no wider, shortened by an ellipsis in the middle if necessary."""
    if text_width(content, size) <= width:
        return content
    keep = len(content)
    while keep > 2:
        keep -= 1
        head, tail = content[: -(-keep // 2)], content[len(content) - keep // 2 :]
        if text_width(f"{head}…{tail}", size) <= width:
            return f"{head}…{tail}"
    return content[:1] + "…"


def joined(texts: Iterable[str]) -> str:
    """Texts as one attribute, for the script of a page to split."""
    return "|".join(text.replace("|", "¦") for text in texts)


def path(points: list[tuple[float, float]]) -> str:
    """Commands of a line through points."""
    return "M" + "L".join(f"{coordinate(x)} {coordinate(y)}" for x, y in points) if points else ""


def mark(shape: int, x: float, y: float, r: float = 3.2) -> str:
    """Commands of a mark: circle, square, triangle, diamond, triangle down, plus, cross."""
    n = coordinate
    shape %= 7
    if shape == 0:
        return (
            f"M{n(x - r)} {n(y)}a{n(r)} {n(r)} 0 1 0 {n(2 * r)} 0a{n(r)} {n(r)} 0 1 0 {n(-2 * r)} 0"
        )
    corners: dict[int, list[tuple[float, float]]] = {
        1: [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        2: [(0, -1.2), (1.1, 0.9), (-1.1, 0.9)],
        3: [(0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)],
        4: [(0, 1.2), (1.1, -0.9), (-1.1, -0.9)],
        5: [
            *((-0.4, -1.2), (0.4, -1.2), (0.4, -0.4), (1.2, -0.4), (1.2, 0.4), (0.4, 0.4)),
            *((0.4, 1.2), (-0.4, 1.2), (-0.4, 0.4), (-1.2, 0.4), (-1.2, -0.4), (-0.4, -0.4)),
        ],
        6: [
            *((0, -0.5), (0.7, -1.2), (1.2, -0.7), (0.5, 0), (1.2, 0.7), (0.7, 1.2)),
            *((0, 0.5), (-0.7, 1.2), (-1.2, 0.7), (-0.5, 0), (-1.2, -0.7), (-0.7, -1.2)),
        ],
    }
    return path([(x + r * dx, y + r * dy) for dx, dy in corners[shape]]) + "Z"


def label(content: str, x: float, y: float, **attributes: str) -> str:
    """Label of an axis around a place; nothing if it is empty."""
    words = {"class_": "label", "text_anchor": "middle", **attributes}
    return text(content, x, y, **words) if content else ""


def heading(content: str, left: float, width: float) -> str:
    """Title of a panel, moved to the left as far as it must and shortened if that is not enough."""
    bold = 14.0  # of which 12.5 px bold are as wide
    left = max(2.0, min(left, width - text_width(content, bold) - 2))
    return text(fitted(content, width - left, bold), left, 14, class_="title") if content else ""


def upright(content: str, middle: float) -> str:
    """Label along the left side, read from below; nothing if it is empty."""
    return label(content, 11, middle, transform=f"rotate(-90 11 {middle:.1f})")


def name_below(name: str, x: float, foot: float, *, slanted: bool, longest: float) -> str:
    """Name below a place of an axis; slanted where names are wider than their places."""
    shown = fitted(name, longest)
    if not slanted:
        return text(shown, x, foot + 16, text_anchor="middle")
    turn = f"rotate(-45 {x + 3:.1f} {foot + 11:.1f})"
    return text(shown, x + 3, foot + 11, text_anchor="end", transform=turn)


def room_below(names: Sequence[str], place: float, longest: float) -> tuple[bool, float]:
    """Return whether names must be slanted to fit side by side, and the room they take."""
    widest = max(map(text_width, names), default=0.0)
    slanted = widest > place - 4
    return slanted, 14 + 0.72 * min(widest, longest) if slanted else 20.0


def every(n: int, step: float) -> int:
    """Return k such that every k-th of n names has room if they are this far apart."""
    return max(1, min(n, math.ceil((LETTERS + 2) / step))) if step > 0 else 1
