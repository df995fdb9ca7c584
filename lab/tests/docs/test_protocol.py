"""What the page of the protocol says is what the presets and the code have."""

import importlib
import re

import pytest

from lab_helpers.docs_code import ROOT
from vntransfer.adaptation import METHODS
from vntransfer_lab.runner.preset import Preset, check, read_preset

PAGE = (ROOT / "docs" / "protocol.md").read_text("utf-8")
ROW = re.compile(r"^\| `(\w+)` \| (μ = .*) \|$", re.M)


def preset(name: str) -> Preset:
    return check(read_preset(name)[1], name)


def written(candidate: dict[str, object]) -> str:
    rest = dict(candidate)
    mu = f"μ = {rest.pop('trade_off'):g}"
    more = ", ".join(f"`{name}={value}`" for name, value in rest.items())
    return f"{mu} with {more}" if more else mu


def test_the_page_names_every_method_that_chooses() -> None:
    methods = preset("protocol-adaptation").methods
    choosing = {name for name, options in methods.items() if options.get("trade_off") == "auto"}
    assert {name for name, _ in ROW.findall(PAGE)} == choosing - {"source_only", "source_only_5"}


@pytest.mark.parametrize(("method", "said"), ROW.findall(PAGE))
def test_candidates_are_those_of_the_code(method: str, said: str) -> None:
    options = preset("protocol-adaptation").methods[method]
    assert said == "; ".join(written(dict(one)) for one in METHODS[method].make()._candidates())
    assert (options["epochs"], options["members"]) == (20, 5)


@pytest.mark.parametrize(
    ("method", "baseline"),
    [
        ("align", "source_only"),
        ("align", "source_only_5"),
        ("dann", "source_only"),
        ("coral", "source_only"),
        ("auto", "boosting"),
    ],
)
def test_verdicts_by_percentiles_are_those_of_the_page(
    method: str, baseline: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    percentiles = importlib.import_module("percentiles")
    found = percentiles.line(ROOT / "lab" / "results" / "protocol-adaptation", method, baseline)
    assert percentiles.HEADER in PAGE
    assert found in PAGE
