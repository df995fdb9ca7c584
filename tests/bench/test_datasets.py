"""Names of data sets with parameters, as presets give them."""

import numpy as np
import pytest

from vntransfer.bench.datasets import load_data, parse_data
from vntransfer.errors import ArgumentError, PresetError


def test_values_are_read_as_what_they_look_like() -> None:
    assert parse_data("x: a=1, b=0.5,c=true,d=word") == (
        "x",
        {"a": 1, "b": 0.5, "c": True, "d": "word"},
    )


@pytest.mark.parametrize("text", ["x:a", "x:=1", "x:a=", "x:a=1,a=2", "x:a=1,"])
def test_what_cannot_be_read_is_said(text: str) -> None:
    with pytest.raises(PresetError, match="data: expected NAME or NAME:PARAMETER=VALUE"):
        parse_data(text)


def test_parameters_reach_the_loader() -> None:
    one, other = (load_data(f"families:n_samples=20,seed={seed}") for seed in (1, 2))
    assert one["w1"][0].shape == (20, 8)
    assert not np.array_equal(one["w1"][0], other["w1"][0])
    with pytest.raises(ArgumentError, match="sead: families has no such parameter"):
        load_data("families:sead=1")
