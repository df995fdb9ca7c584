"""The frame of a panel: size, margins, axes, ticks and titles."""

from dataclasses import dataclass

from vntransfer.pages.charts import Axis, Panel
from vntransfer.pages.layout import extent
from vntransfer.pages.scales import Scale, padded, tick_text
from vntransfer.pages.svg import (
    LONGEST,
    every,
    fitted,
    heading,
    name_below,
    room_below,
    tag,
    text,
    text_width,
    upright,
)

_GAP = 6.0


@dataclass(frozen=True)
class PanelFrame:
    """A panel's size, its scales, and the markup of its axes."""

    width: float
    height: float
    x: Scale
    y: Scale
    markup: str


def ends(panel: Panel, name: str) -> tuple[float, float]:
    """Return the ends of a scale: those of the axis, or those of the data, slightly widened."""
    axis: Axis = getattr(panel, name)
    if axis.names:
        return -0.5, len(axis.names) - 0.5
    low, high = extent(panel, name) or ((1.0, 10.0) if axis.log else (0.0, 1.0))
    wide_low, wide_high = padded(low, high, log=axis.log)
    low = wide_low if axis.low is None or low >= high else low
    return low, wide_high if axis.high is None or low >= high else high


def frame(panel: Panel, width: float, height: float, x: Axis, y: Axis) -> PanelFrame:
    """Lay out a panel with two axes."""
    y_low, y_high = ends(panel, "y") if not y.names else (len(y.names) - 0.5, -0.5)
    x_low, x_high = ends(panel, "x")
    top = 24.0 if panel.title else 10.0
    longest = min(LONGEST, 0.36 * width)
    names = [fitted(name, longest) for name in y.names]
    trial = Scale(y_low, y_high, 0, 1, y.log)
    labels = names or [tick_text(t, log=y.log) for t in ([] if y.hidden else trial.ticks())]
    left = max(map(text_width, labels), default=0.0) + _GAP + 2 + (16 if y.label else 0)
    right = 12.0
    step = (width - left - right) / max(1, len(x.names))
    slanted, room = room_below(x.names, step, longest)
    below = (4.0 if x.hidden else room) + (18 if x.label else 4)
    x_scale = Scale(x_low, x_high, left, width - right, x.log)
    y_scale = Scale(y_low, y_high, height - below, top, y.log)
    parts = [heading(panel.title, left, width)]
    parts += _x_axis(x, x_scale, y_scale, slanted, height, longest)
    parts += _y_axis(y, y_scale, x_scale, names)
    return PanelFrame(width, height, x_scale, y_scale, "".join(parts))


def _x_axis(
    axis: Axis, x: Scale, y: Scale, slanted: bool, height: float, longest: float
) -> list[str]:
    bottom, top = y.start, y.end
    line = f"M{x.start:.1f} {bottom:.1f}H{x.end:.1f}"
    parts = [] if axis.hidden else [tag("path", d=line, class_="axis")]
    if axis.label:
        middle = (x.start + x.end) / 2
        parts.append(text(axis.label, middle, height - 4, class_="label", text_anchor="middle"))
    if axis.hidden:
        return parts
    if axis.names:
        step = every(len(axis.names), abs(x(1) - x(0)))
        for place, name in list(enumerate(axis.names))[::step]:
            parts.append(name_below(name, x(place), bottom, slanted=slanted, longest=longest))
        return parts
    for tick in x.ticks(max(2, int((x.end - x.start) // 55))):
        if axis.whole and tick % 1:
            continue
        at = x(tick)
        parts.append(tag("path", d=f"M{at:.1f} {bottom:.1f}V{top:.1f}", class_="grid"))
        label = tick_text(tick, log=axis.log)
        parts.append(text(label, at, bottom + 14, text_anchor="middle"))
    return parts


def _y_axis(axis: Axis, y: Scale, x: Scale, names: list[str]) -> list[str]:
    parts = []
    if axis.label:
        parts.append(upright(axis.label, (y.start + y.end) / 2))
    if axis.hidden:
        return parts
    places = list(range(len(names))) if names else y.ticks(max(2, int((y.start - y.end) // 36)))
    for i, tick in enumerate(places):
        at = y(tick)
        parts.append(tag("path", d=f"M{x.start:.1f} {at:.1f}H{x.end:.1f}", class_="grid"))
        label = names[i] if names else tick_text(tick, log=axis.log)
        parts.append(text(label, x.start - _GAP, at + 4, text_anchor="end"))
    return parts
