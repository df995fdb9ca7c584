"""How results show themselves: one short line, whatever the user's names are."""

import builtins
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vntransfer import Ascent, Moments, relation_test
from vntransfer.adaptation import Selection
from vntransfer.adaptation.auto import AutoSelection
from vntransfer.adaptation.weighted import SharpnessSelection
from vntransfer.display import WIDTH, listed, one_line, plus_minus, rounded, short
from vntransfer.errors import ArgumentError
from vntransfer.relations.result import Interval, Relation
from vntransfer.tables.encoder import TableEncoder
from vntransfer.theory import bound_terms, convergence_terms, max_discrepancy
from vntransfer.workflows.continual_model import ContinualModel
from vntransfer.workflows.evidence import Evidence
from vntransfer.workflows.prediction_intervals import Calibration
from vntransfer.workflows.predictions import Predictions
from vntransfer.workflows.table_model import TableModel
from vntransfer.workflows.target_outcome import TargetOutcome
from vntransfer.workflows.task_network import TaskNetwork

HOSTILE = {
    "plain": "Saltby",
    "script": "<script>alert(1)</script>",
    "lines": "one\ntwo\r\n\tthree\x00\u2028four",
    "long": "x" * 200,
    "wide": "語" * 200,
    "quotes": "\"'&|[red]%s{0}\\",
    "empty": "",
    "broken": "\ud800\u202e",
}
HEAVY = ("pandas", "matplotlib", "sklearn", "scipy", "rich")


def relation(name: str, n: int = 3) -> Relation:
    names = tuple(f"{name}{i}" for i in range(n))
    D = np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(float)
    p = np.where(D > 1, 0.01, 0.6)
    ends = Interval(D / 2, 2 * D)
    settings = {"divergence": "conditional_von_neumann", "level": 0.95, "n_resamples": 999}
    settings["response"] = name
    rows = {own: (20, 1) if i else (0, 30) for i, own in enumerate(names)}
    p[0] = p[:, 0] = np.nan
    return Relation(names, rows, D, ends, D + 1, p, p / 2, D, settings)


def outcome(name: str, errors: dict[str, float]) -> TargetOutcome:
    weights = {f"{name} {i}": 0.25 for i in range(4)}
    every = {"auto": errors} if errors else {}
    evidence = Evidence("auto", every, weights, {name: 1.0})
    return TargetOutcome(name, 70, f"{name} leads", evidence)


def table_model(name: str, targets: int = 1, errors: bool = True) -> TableModel:
    own = {"a": 18.0, "b": 20.0, "c": 19.0} if errors else {}
    names = [f"{name}{i}" if i else name for i in range(targets)]
    half = Calibration(np.array([1.0, 2.0]), np.array([0.5, 0.5]))
    return TableModel(
        TableEncoder(()),
        (name, name),
        dict.fromkeys(names),
        {one: outcome(one, own) for one in names},
        dict.fromkeys(names, half) if errors else {},
    )


def continual(name: str, classes: bool) -> ContinualModel:
    R = np.array([[0.9, 0.5], [0.8, 0.9]])
    one = np.ones(1)
    return ContinualModel(
        TableEncoder(()),
        one,
        one,
        TaskNetwork((1, 1), 0, 0, {"0.weight": np.ones((1, 1)), "0.bias": np.zeros(1)}),
        (name, "other") if classes else (),
        name,
        name,
        (0.0, 1.0),
        (name, f"{name}2"),
        R,
        R[0],
        "covp",
    )


def domains(name: str) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, 20, 1))
    return {f"{name}{i}": (x, x[:, 0]) for i, x in enumerate(X)}


def bound(labels: bool) -> Any:
    x = torch.randn(3, 30, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    sources = [(x[0], x[0, :, 0]), (x[1], x[1, :, 0])]
    y = x[2, :, 0] if labels else None
    return bound_terms(
        sources, x[2], lambda z: 2 * z[:, 0], target_response=y, ascent=Ascent(steps=2, restarts=1)
    )


def convergence() -> Any:
    eye = torch.eye(2, dtype=torch.float64)
    return convergence_terms(eye, 2 * eye, 1.1 * eye, 2 * eye)


def most() -> Any:
    x = torch.randn(30, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return max_discrepancy(x, 2 * x, ascent=Ascent(steps=2, restarts=2))


value = np.array([100.0, 200.0])
RESULTS: dict[str, Callable[[str], Any]] = {
    "relation": relation,
    "relation of many": lambda name: relation(name, 30),
    "relation test": lambda name: relation_test(domains(name), n_resamples=99, random_state=0),
    "model": table_model,
    "model of many": lambda name: table_model(name, 30),
    "model without errors": lambda name: table_model(name, errors=False),
    "models without errors": lambda name: table_model(name, 3, errors=False),
    "outcome": lambda name: outcome(name, {"a": 18.0, "b": 20.0}),
    "outcome of one": lambda name: outcome(name, {}),
    "predictions": lambda name: Predictions(value, value - 1, value + 1),
    "predictions without intervals": lambda name: Predictions(
        value, np.nan * value, np.nan * value
    ),
    "no predictions": lambda name: Predictions(value[:0], value[:0], value[:0]),
    "classes": lambda name: continual(name, True),
    "numbers": lambda name: continual(name, False),
    "selection": lambda name: Selection(
        candidates=(name, "b"), options=({}, {}), shares={name: 0.3, "b": 0.7}, reason=name
    ),
    "auto": lambda name: AutoSelection(candidates=(name,), shares={name: 1.0}, reason=name),
    "bound": lambda name: bound(True),
    "bound without labels": lambda name: bound(False),
    "convergence": lambda name: convergence(),
    "maximum": lambda name: most(),
}
SILENT: dict[str, Callable[[str], Any]] = {
    "moments": lambda name: Moments.from_samples(np.zeros((3, 2))),
    "weighted moments": lambda name: Moments.from_samples(
        np.zeros((2, 1)), weights=np.array([1, 0.1])
    ),
    "moments of batches": lambda name: Moments.from_samples(np.zeros((4, 5, 3, 2))),
    "interval": lambda name: relation(name).intervals,
    "calibration": lambda name: Calibration(np.array([1.0]), np.array([1.0])),
    "sharpness": lambda name: SharpnessSelection(1.0, name, errors=((0.0,) * 9,) * 9),
}
"""What is no answer to a question, and has no summary."""

SHOWN = [
    kind
    for kind in RESULTS
    if kind.startswith(("model", "predictions", "no pred")) or kind in ("classes", "numbers")
] + ["relation", "relation of many"]


@pytest.mark.parametrize("name", HOSTILE.values(), ids=list(HOSTILE))
@pytest.mark.parametrize("kind", [*RESULTS, *SILENT])
def test_repr_is_one_short_line(kind: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    result = {**RESULTS, **SILENT}[kind](name)
    imported = []
    real = builtins.__import__

    def note(module: str, *args: Any, **options: Any) -> Any:
        imported.append(module)
        return real(module, *args, **options)

    monkeypatch.setattr(builtins, "__import__", note)
    text = repr(result)
    monkeypatch.undo()
    assert not {module.partition(".")[0] for module in imported} & set(HEAVY)
    assert text.splitlines() == [text]
    assert text.isprintable()
    assert len(text) < 120
    assert text.startswith(f"<{type(result).__name__}")
    assert text.endswith(">")
    assert "array(" not in text
    assert "tensor(" not in text


@pytest.mark.parametrize("name", HOSTILE.values(), ids=list(HOSTILE))
@pytest.mark.parametrize("kind", RESULTS)
def test_summary_is_a_few_lines(kind: str, name: str) -> None:
    text = RESULTS[kind](name).summary()
    lines = text.splitlines()
    assert 1 <= len(lines) <= 12
    assert all(0 < len(line) < 500 for line in lines)
    assert lines[0].endswith((".", "…"))
    assert "array(" not in text
    assert "nan" not in text.replace(name, "")


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", HOSTILE.values(), ids=list(HOSTILE))
@pytest.mark.parametrize("kind", SHOWN)
def test_html_is_plain_and_escaped(kind: str, name: str) -> None:
    html = RESULTS[kind](name)._repr_html_()
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    assert reader.seen <= {"div", "p", "table", "thead", "tbody", "tr", "th", "td"}
    assert "table" in reader.seen
    assert reader.attributes <= {"scope"}
    assert len(html) < 40_000


def test_what_a_notebook_shows_has_html() -> None:
    for kind in (Relation, TableModel, Predictions, ContinualModel):
        assert callable(kind._repr_html_)


def test_the_facts_are_there() -> None:
    assert repr(relation("a")) == "<Relation of 3 places: 0 of 1 tested pair differ>"
    assert repr(relation("a", 4)) == "<Relation of 4 places: 1 of 3 tested pairs differ>"
    model = table_model("Saltby")
    assert repr(model) == "<TableModel for Saltby: expected error 19.00 ± 0.58 Saltby>"
    assert model.summary().splitlines()[0].startswith("Expected error at Saltby: 19.00 ± 0.58")
    assert "expected error unknown" in repr(table_model("Saltby", errors=False))
    assert repr(table_model("a", 4)) == (
        "<TableModel for a, a1 and 2 more: expected error 19 to 19 a>"
    )
    assert repr(continual("a", True)).endswith("accuracy 0.85 in the end, forgetting 0.05>")
    assert repr(continual("a", False)).endswith("error 0.85 a in the end, no forgetting>")
    assert "<script" not in table_model(HOSTILE["script"])._repr_html_()


def test_frames() -> None:
    pandas = pytest.importorskip("pandas")
    frame = Predictions(value, value - 1, value + 1).to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame) == ["predicted", "low", "high"]
    np.testing.assert_array_equal(frame["high"], value + 1)
    found = relation("a")
    frame = found.to_frame()
    assert frame.to_dict("records")[-1] == found.table()[-1]
    assert list(frame)[:3] == ["a", "b", "divergence"]
    model = continual("a", True)
    frame = model.to_frame()
    assert list(frame) == list(frame.index) == list(model.names)
    np.testing.assert_array_equal(frame.to_numpy(), model.matrix)


@pytest.mark.parametrize(
    "result",
    [Predictions(value, value, value), relation("a"), continual("a", True)],
    ids=lambda own: type(own).__name__,
)
def test_frames_without_pandas(result: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ArgumentError, match=r"pandas.*pip install"):
        result.to_frame()


@given(st.text(), st.integers(2, 60))
def test_short_names_fit(text: str, length: int) -> None:
    shown = short(text, length)
    assert len(shown) <= length
    assert shown.isprintable()
    assert len(one_line(text)) <= WIDTH < 120


@given(st.floats(), st.floats())
def test_any_number_can_be_shown(mean: float, spread: float) -> None:
    for text in (rounded(mean), plus_minus(mean, spread)):
        assert 0 < len(text) < 40
        assert "nan" not in text


@given(st.floats(1e-3, 1e6))
def test_rounding_keeps_three_digits(number: float) -> None:
    shown = float(rounded(number).replace(",", ""))
    assert shown == pytest.approx(number, rel=0.0051)


def test_lists() -> None:
    assert listed([]) == ""
    assert listed(["x" * 99], length=5) == "xxxx…"
