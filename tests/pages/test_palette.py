"""Colors: enough contrast in both themes, distinct for the color-blind, and monotone."""

from itertools import combinations

import numpy as np
import pytest

from vntransfer.pages import palette

# Machado, Oliveira and Fernandes (2009), full severity, linear RGB
VISION = {
    "usual": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
# linear RGB -> cone responses -> OKLab (Björn Ottosson's matrices), where equal steps look equal
CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
both = pytest.mark.parametrize("theme", ["light", "dark"])


def oklab(rgb: np.ndarray) -> np.ndarray:
    return LAB @ np.cbrt(CONES @ rgb)


def seen(color: str, vision: str) -> np.ndarray:
    return oklab(np.clip(np.asarray(VISION[vision]) @ palette.linear(color), 0, 1))


@both
@pytest.mark.parametrize(("diverging", "bends"), [(False, 2), (True, 5)])
def test_scales_have_even_steps_but_for_a_few_bends(
    theme: str, diverging: bool, bends: int
) -> None:
    found = [oklab(palette.linear(color)) for color in palette.shades(theme, diverging=diverging)]
    assert len(found) == palette.LEVELS
    turns = np.linalg.norm(np.diff(found, 2, axis=0), axis=1)
    assert (turns > 0.01).sum() <= 2 * bends  # elsewhere colors are rounded to 8 bits


@both
def test_series_stand_out_from_the_ground(theme: str) -> None:
    for color in palette.SERIES[theme]:
        assert palette.contrast(color, palette.GROUND[theme]) >= 3


@both
@pytest.mark.parametrize("vision", VISION)
def test_series_differ_for_every_eye(theme: str, vision: str) -> None:
    found = [seen(color, vision) for color in palette.SERIES[theme]]
    assert min(np.linalg.norm(a - b) for a, b in combinations(found, 2)) > 0.1


@both
def test_text_is_readable(theme: str) -> None:
    ground, own = palette.GROUND[theme], palette.PAGE[theme]
    assert own["--back"] == ground
    for name in ("--soft", "--accent", "--good", "--bad", "--warning"):
        assert palette.contrast(own[name], ground) >= 4.5, name
        assert palette.contrast(own[name], own["--hover"]) >= 4.5, name
    assert palette.contrast(palette.INK[theme], ground) >= 7
    assert palette.contrast(own["--axis"], ground) >= 3


@both
def test_numbers_are_readable_in_every_cell(theme: str) -> None:
    for color in palette.shades(theme) + palette.shades(theme, diverging=True):
        assert palette.contrast(color, palette.on(color)) >= 4.5


@both
@pytest.mark.parametrize("vision", VISION)
def test_more_is_further_from_the_ground_for_every_eye(theme: str, vision: str) -> None:
    ground = seen(palette.GROUND[theme], vision)[0]
    q = [abs(seen(color, vision)[0] - ground) for color in palette.shades(theme)]
    assert (np.diff(q) > 0).all()


@both
@pytest.mark.parametrize("vision", VISION)
def test_signs_differ_for_every_eye(theme: str, vision: str) -> None:
    found = [seen(color, vision) for color in palette.shades(theme, diverging=True)]
    ground, middle = seen(palette.GROUND[theme], vision)[0], palette.LEVELS // 2
    far = [abs(color[0] - ground) for color in found]
    assert (np.diff(far[: middle + 1]) < 0).all()
    assert (np.diff(far[middle:]) > 0).all()
    for step in range(middle // 2, middle + 1):  # the outer halves: opposite signs
        assert np.linalg.norm(found[middle - step] - found[middle + step]) > 0.08


def test_both_themes_define_the_same_variables() -> None:
    assert palette.variables("light").keys() == palette.variables("dark").keys()
