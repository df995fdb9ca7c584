"""Colors of both themes: readable on their ground, distinct for the color-blind.

Charts name colors by class (``s0`` to ``s6`` for series, ``q0`` to ``q32`` for the scale of heat
maps, ``d0`` to ``d32`` for one around zero); this module gives the classes their values, once per
theme, as CSS variables.
"""

from collections.abc import Mapping

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

_SEQUENTIAL = {
    "light": (
        "f2f6fa ebf2f8 e4eef6 ddeaf5 d7e6f3 d0e2f1 c9deef c2daed bbd6eb b4d2e9 aecee7 "
        "a6c9e5 9cc2e1 93bcdd 89b5d9 7fafd6 75a8d2 6ca2ce 629bca 5895c6 4d8fc2 4388be "
        "3c81b8 377ab0 3273a8 2d6ca0 286598 235e91 1e5789 1a5081 15497a 104372 0b3c6b"
    ),
    "dark": (
        "20262d 212a34 212e3b 223142 223549 223950 223d57 22415e 214566 21486d 204c75 "
        "20517c 235784 265c8b 296292 2c689a 2f6ea1 3274a9 357ab0 3880b8 3b87c0 3e8dc7 "
        "4995cd 589dd2 66a5d7 73aedb 81b6e0 8ebee5 9bc7e9 a8cfee b5d7f2 c2e0f7 cfe8fb"
    ),
}
"""A single hue from near the ground to far from it, evenly spaced in OKLab between four colors; one
scale runs from light to dark, the other from dark to light: "more" is always what stands out."""

_DIVERGING = {
    "light": (
        "0b3c6b 15497a 1e5789 286598 3273a8 3c81b8 4d8fc2 629bca 75a8d2 89b5d9 9cc2e1 "
        "aecee7 bcd6ea caddee d8e5f1 e6edf4 f4f5f7 f4ece7 f3e4d7 f3dbc7 f2d3b7 f1caa7 "
        "edbd95 e7af81 e1a16e da9259 d48443 c97530 b66727 a4591f 934c16 813f0d 703204"
    ),
    "dark": (
        "8cc8f5 7ebded 70b2e5 62a8dd 539dd5 4493cd 3b87c0 357ab0 2f6ea1 296292 235784 "
        "204c75 224566 233d57 233649 232e3b 22272d 312d2c 40322b 503828 5f3d24 6f411f "
        "7f4b21 905728 a16430 b27138 c47e40 d38b4a db9657 e3a165 eaad72 f2b87f fac48c"
    ),
}
"""Two hues that the color-blind distinguish, both from near the ground: the middle is nothing."""


def linear(color: str) -> NDArray[np.float64]:
    """Linear red, green and blue of ``#rrggbb``."""
    parts = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.asarray(np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4))


def contrast(a: str, b: str) -> float:
    """Contrast ratio of two colors by the rule of WCAG 2, 1 to 21."""
    light, dark = sorted((_luminance(a), _luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: str) -> float:
    return float(linear(color) @ (0.2126, 0.7152, 0.0722))


def shades(theme: str, *, diverging: bool = False) -> list[str]:
    """Colors of the scale of a theme, from little to much, or from less than nothing to more."""
    scale = (_DIVERGING if diverging else _SEQUENTIAL)[theme]
    return [f"#{color}" for color in scale.split()]


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
