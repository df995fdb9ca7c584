"""Colors of both themes: readable on their ground, distinct for the color-blind.

Charts name colors by class (``s0`` to ``s6`` for series, ``q0`` to ``q32`` for the scale of heat
maps, ``d0`` to ``d32`` for one around zero); this module gives the classes their values, once per
theme, as CSS variables.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

LEVELS = 33
"""Steps of a color scale: more than the eye can distinguish."""

GROUND = {"light": "#ffffff", "dark": "#16191d"}
"""Background of charts."""

INK = {"light": "#1c2024", "dark": "#e8eaed"}
"""Text."""

SERIES = {
    "light": ("#0346a3", "#b34a0b", "#358171", "#db54b5", "#ac8f36", "#408dfd", "#5e454c"),
    "dark": ("#3d7efc", "#e5481c", "#0dc37d", "#c989d1", "#dad022", "#aacdff", "#868686"),
}
"""One color per series; markers and dashes distinguish further ones."""

PAGE = {
    "light": {
        "--back": "#ffffff",
        "--soft": "#59616b",
        "--line": "#d5d9de",
        "--faint": "#e9ecef",
        "--axis": "#7f8791",
        "--hover": "#f3f5f8",
        "--accent": "#0346a3",
        "--good": "#0b6b3f",
        "--bad": "#a8321b",
        "--warning": "#7a5600",
    },
    "dark": {
        "--back": "#16191d",
        "--soft": "#a3abb5",
        "--line": "#3a4149",
        "--faint": "#262b31",
        "--axis": "#79828d",
        "--hover": "#20252b",
        "--accent": "#86b4ff",
        "--good": "#5cc98f",
        "--bad": "#f28b6c",
        "--warning": "#e0b55a",
    },
}
"""Further CSS variables of pages: text, lines and notes."""

# A single hue from near the ground to far from it; one scale runs from light to dark, the other
# from dark to light, so that "more" is always what stands out.
_SEQUENTIAL = {
    "light": ("#f2f6fa", "#a9cbe6", "#3f86bd", "#0b3c6b"),
    "dark": ("#20262d", "#1f4f7a", "#3f8fca", "#cfe8fb"),
}

# Two hues that the color-blind distinguish, both from near the ground: the middle is nothing.
_DIVERGING = {
    "light": ("#0b3c6b", "#3f86bd", "#a9cbe6", "#f4f5f7", "#f1c7a2", "#cf7a33", "#703204"),
    "dark": ("#8cc8f5", "#3f8fca", "#1f4f7a", "#22272d", "#74431c", "#d08745", "#fac48c"),
}

# linear RGB -> cone responses -> OKLab (Björn Ottosson's matrices)
_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)

_Array = NDArray[np.float64]


def linear(color: str) -> _Array:
    """Linear red, green and blue of ``#rrggbb``."""
    parts = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.asarray(np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4))


def _hexadecimal(rgb: _Array) -> str:
    rgb = rgb.clip(0, 1)
    parts = np.where(rgb <= 0.0031308, 12.92 * rgb, 1.055 * rgb ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{round(255 * float(part)):02x}" for part in parts)


def oklab(rgb: _Array) -> _Array:
    """OKLab of linear RGB: a space in which equal steps look equal."""
    return np.asarray(_LAB @ np.cbrt(_CONES @ rgb))


def mix(stops: Sequence[str], n: int = LEVELS) -> list[str]:
    """Colors between stops, evenly spaced in OKLab."""
    labs = np.array([oklab(linear(stop)) for stop in stops])
    places = np.linspace(0, len(stops) - 1, n)
    channels = [np.interp(places, np.arange(len(stops)), channel) for channel in labs.T]
    inverse, cones = np.linalg.inv(_LAB), np.linalg.inv(_CONES)
    return [_hexadecimal(cones @ (inverse @ lab) ** 3) for lab in np.transpose(channels)]


def contrast(a: str, b: str) -> float:
    """Contrast ratio of two colors by the rule of WCAG 2, 1 to 21."""
    light, dark = sorted((_luminance(a), _luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: str) -> float:
    return float(linear(color) @ (0.2126, 0.7152, 0.0722))


def shades(theme: str, *, diverging: bool = False) -> list[str]:
    """Colors of the scale of a theme, from little to much, or from less than nothing to more."""
    return mix((_DIVERGING if diverging else _SEQUENTIAL)[theme])


def on(color: str) -> str:
    """Black or white, whichever is more readable on a color."""
    return max(("#000000", "#ffffff"), key=lambda ink: contrast(ink, color))


def variables(theme: str) -> dict[str, str]:
    """CSS variables of a theme: colors of charts, then those of pages."""
    found = {"--ground": GROUND[theme], "--ink": INK[theme]}
    found |= {f"--s{i}": color for i, color in enumerate(SERIES[theme])}
    for scale, diverging in (("q", False), ("d", True)):
        for level, color in enumerate(shades(theme, diverging=diverging)):
            found |= {f"--{scale}{level}": color, f"--{scale}t{level}": on(color)}
    return found | PAGE[theme]


def declarations(values: Mapping[str, str]) -> str:
    """CSS declarations of variables."""
    return ";".join(f"{name}:{value}" for name, value in values.items())


def classes() -> str:
    """CSS rules that give the classes of series and shades their variables."""
    rules = [f".s{i}{{--c:var(--s{i})}}" for i in range(len(SERIES["light"]))]
    rules += [
        f"rect.{k}{i},path.{k}{i}{{fill:var(--{k}{i})}}text.{k}{i}{{fill:var(--{k}t{i})}}"
        for k in "qd"
        for i in range(LEVELS)
    ]
    return "".join(rules)
