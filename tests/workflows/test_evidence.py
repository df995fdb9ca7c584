"""Sentences follow from numbers: over random outcomes they contradict neither them nor another."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vntransfer.display import rounded
from vntransfer.domains import Groups
from vntransfer.workflows.evidence import CONSTANT, REFERENCE, WILD, Caution, Evidence
from vntransfer.workflows.measure_place import measure_place
from vntransfer.workflows.target_outcome import TargetOutcome
from vntransfer.workflows.target_place import FAR, LEAST_COVERED, TargetPlace

OTHERS = (REFERENCE, "boosting", "ridge, sharpness 1", CONSTANT)
share = st.floats(0, 1)
positive = st.one_of(st.floats(0, 1), st.floats(0, 1e6), st.sampled_from([0.0, 1.0, 1e-9]))


@st.composite
def places(draw: st.DrawFn, sources: list[str]) -> TargetPlace:
    def each(values: st.SearchStrategy[float]) -> dict[str, float]:
        return {name: draw(values) for name in sources}

    numbers = st.floats(0, 100)
    return TargetPlace(
        draw(numbers),
        draw(numbers),
        draw(share),
        each(numbers),
        each(st.floats(0, 10)),
        each(share),
        draw(share),
        draw(share),
    )


@st.composite
def evidence(draw: st.DrawFn, least: int = 0) -> Evidence:
    """Any numbers that a fit could give."""
    sources = [f"s{i}" for i in range(draw(st.integers(max(least, 1), 6)))]
    weights = np.array([draw(share) + 1e-3 for _ in sources])
    w = dict(zip(sources, (weights / weights.sum()).tolist(), strict=True))
    rows = {name: draw(st.sampled_from([1, 3, 30, 300, 50_000])) for name in sources}
    method = draw(st.sampled_from(["auto", "ridge", REFERENCE, CONSTANT]))
    if len(sources) == 1 or (least == 0 and draw(st.booleans())):
        return Evidence(method, {}, w, {}, rows)
    names = dict.fromkeys((method, *draw(st.lists(st.sampled_from(OTHERS))), CONSTANT))
    errors = {name: {source: draw(positive) for source in sources} for name in names}
    shares: dict[str, float] = {}
    if method == "auto":
        shares = {name: float(draw(st.booleans())) for name in names if name != "auto"}
    near = {name: draw(share) for name in sources}
    place = draw(st.none() | places(sources))
    return Evidence(method, errors, w, shares, rows, near, place)


def by_code(found: tuple[Caution, ...]) -> dict[str, str]:
    codes = [own.code for own in found]
    assert len(set(codes)) == len(codes)
    return {own.code: own.text for own in found}


@given(evidence())
def test_every_sentence_follows_from_the_numbers(known: Evidence) -> None:
    found = known.findings()
    said = by_code(found)
    leading = [own.first for own in found]
    assert leading == sorted(leading, reverse=True) or "unlike" in said
    assert all(text.endswith(".") and "nan" not in text for text in said.values())
    if not known.errors:
        assert set(said) == {"one source"}
        return
    place = known.place
    far = place is not None and place.distance > FAR * max(*place.distances.values(), place.noise)
    assert ("unlike" in said) == ("optimistic" in said) == far
    if known.few_rows:  # nothing that was measured on held-out sources is concluded from
        assert set(said) - {"unlike", "optimistic"} == {"few rows"}
        return
    mean, constant = known.expected()[0], known.expected(CONSTANT)[0]
    assert ("constant" in said) == (known.method != CONSTANT and mean >= constant)
    if "constant" in said:
        assert rounded(mean) in said["constant"]
        assert rounded(constant) in said["constant"]
        assert ("better than" in said["constant"]) == (mean > 1.2 * constant)
    assert ("exact" in said) == (mean < 0.01 * constant)
    narrow = place is not None and place.typical_cover - place.disagreement / 2 < LEAST_COVERED
    assert ("narrow" in said) == narrow
    if "better" in said:
        name = said["better"].split(" has a lower")[0]
        assert name not in (*known.used, CONSTANT)
        assert known.expected(name)[0] < mean
        assert known.expected(name)[0] < constant
        assert rounded(known.expected(name)[0]) in said["better"]
    elif not known.shares and known.method != REFERENCE and REFERENCE in known.errors:
        gap = known.compared(REFERENCE)
        assert gap is not None
        assert not gap.clear or known.expected(REFERENCE)[0] >= constant
    own = known.errors[known.method]
    for name in known.wild():
        assert own[name] == max(own[name], mean)
    assert ("wild" in said) == bool(known.wild())


@given(evidence(least=2))
def test_the_first_sentence_is_the_worst_news(known: Evidence) -> None:
    outcome = TargetOutcome("Saltby", 10, "", known)
    first = outcome.summary(unit="price").splitlines()[0]
    news = [own.text for own in known.findings() if own.first]
    assert first == (news[0] if news else outcome.answer("price")[0])
    lines = outcome.summary().splitlines()
    assert any("Expected error at Saltby" in line for line in lines) == (not known.unlike)
    assert any("at Saltby it may be much larger" in line for line in lines) == known.unlike
    assert {*outcome.warnings} == {*news, *outcome.cautions()}


@given(evidence(least=2))
def test_the_expected_error_is_a_mean_that_ignores_the_order(known: Evidence) -> None:
    low, high = known.bounds()
    mean, spread = known.expected()
    assert low - 1e-9 <= mean <= high * (1 + 1e-9) + 1e-300
    assert not spread < 0
    turned = {name: dict(reversed(list(own.items()))) for name, own in known.errors.items()}
    again = Evidence(
        known.method, turned, known.source_weights, {}, known.source_rows, known.resemblance
    )
    np.testing.assert_allclose(
        again.expected(), (mean, spread), rtol=1e-9, atol=1e-12 * max(1, high)
    )
    assert set(again.wild()) == set(known.wild())


@given(evidence(least=3), st.floats(1, 1e12))
def test_one_wild_source_cannot_decide(known: Evidence, times: float) -> None:
    own, counts = known.errors[known.method], known.counts()
    name = min(counts, key=lambda source: counts[source])  # at most a third
    wild = {known.method: {**own, name: own[name] * times + times}}
    found = Evidence(known.method, wild, {}, {}, known.source_rows, known.resemblance)
    most = max(error for source, error in own.items() if source != name)
    assert found.expected()[0] <= WILD * most * (1 + 1e-9) + 1e-300


def test_a_single_wild_source_is_named_and_hardly_counts() -> None:
    errors = {
        "auto": {"a": 0.07, "b": 0.06, "c": 0.08, "d": 4.7},
        CONSTANT: dict.fromkeys("abcd", 1.0),
    }
    known = Evidence("auto", errors, dict.fromkeys("abcd", 0.25))
    assert known.expected()[0] < 0.12  # the mean is 1.23, and above the constant's error
    said = by_code(known.findings())
    assert set(said) == {"wild"}
    assert "d (4.7)" in said["wild"]


def test_a_source_of_three_rows_does_not_count_like_one_of_fifty_thousand() -> None:
    errors = {"ridge": {"tiny": 9.0, "large": 1.0, "other": 1.2}}
    rows = {"tiny": 3, "large": 50_000, "other": 400}
    known = Evidence("ridge", errors, {}, {}, rows)
    assert known.counts()["tiny"] < 0.05 < 0.4 < known.counts()["large"]
    assert known.expected()[0] < 1.3
    apart = Evidence("ridge", errors, {}, {}, rows, {"tiny": 0.0, "large": 1.0, "other": 1.0})
    assert apart.counts()["tiny"] == 0
    assert by_code(apart.findings()).keys() == {"wild"}


@pytest.mark.parametrize(
    ("weights", "rows", "said"),
    [
        ({"a": 0.5, "b": 0.5}, {"a": 5, "b": 500}, "count equally"),
        ({"a": 0.01, "b": 0.99}, {"a": 5, "b": 500}, "pooled"),
        ({"a": 0.8, "b": 0.2}, {"a": 5, "b": 500}, ""),
        ({"a": 1.0}, {"a": 5}, ""),
    ],
)
def test_weights_that_are_not_learned_are_said_to_be(
    weights: dict[str, float], rows: dict[str, int], said: str
) -> None:
    known = Evidence("ridge", {}, weights, {}, rows).weighting()
    assert (said in known) if said else known == ""


def test_optimism_is_that_of_held_out_sources_as_far_away() -> None:
    numbers: dict[str, Any] = {"distance": 50.0, "noise": 0.1, "outside": 0.4}
    far = {"a": 1.0, "b": 1.1, "c": 9.0}
    place = TargetPlace(
        **numbers,
        distances=far,
        ratios={"a": 1.0, "b": 0.9, "c": 2.5},
        covered=dict.fromkeys(far, 0.5),
    )
    assert place.unlike
    assert "are optimistic: for c" in place.optimism()
    assert "2.5 times" in place.optimism()
    near = TargetPlace(**numbers, distances={"a": 1.0, "b": 1.1, "c": 1.2}, ratios={}, covered={})
    assert "unknown" in near.optimism()


def test_a_candidate_that_failed_is_never_recommended() -> None:
    failed = {"a": np.inf, "b": 0.1, "c": 0.1}
    errors = {
        "ridge": dict.fromkeys("abc", 5.0),
        REFERENCE: failed,
        CONSTANT: dict.fromkeys("abc", 9.0),
    }
    known = Evidence("ridge", errors)
    assert np.isinf(known.expected(REFERENCE)[0])
    assert known.better() is None
    assert known.ranked() == ["ridge", REFERENCE, CONSTANT]


def test_a_source_that_few_rows_predict_does_not_count() -> None:
    errors = {
        "ridge": {"tiny": 0.3, "large": 9.0, "other": 0.4},
        CONSTANT: dict.fromkeys(("tiny", "large", "other"), 2.0),
    }
    rows = {"tiny": 3, "large": 50_000, "other": 4}
    known = Evidence("ridge", errors, {}, {}, rows)
    assert known.few_rows
    assert [own.code for own in known.findings()] == ["few rows"]
    enough = Evidence("ridge", errors, {}, {}, {**rows, "other": 400})
    assert not enough.few_rows
    assert known.counts()["large"] < 0.6 < enough.counts()["large"] + enough.counts()["other"]
    many = {str(i): 10 for i in range(60)}
    assert not Evidence("ridge", {"ridge": dict.fromkeys(many, 1.0)}, {}, {}, many).few_rows


def test_a_target_that_is_a_part_of_a_source_resembles_it() -> None:
    rng = np.random.default_rng(0)
    rows = [np.arange(i * 100, i * 100 + 100) for i in range(4)]
    X = np.column_stack((rng.normal(size=(400, 2)), rng.integers(0, 3, 400)))
    groups = Groups(dict(zip("abc", rows[:3], strict=True)), {"new": rows[3]})
    gaps = {name: rng.normal(size=100) for name in "abc"}
    errors = dict.fromkeys("abc", 0.8)

    def unlike(X: np.ndarray) -> bool:
        return measure_place(X, groups, gaps, errors).place.unlike

    part, far, wide = X.copy(), X.copy(), X.copy()
    part[rows[3], 2] = 1.0  # one value that the sources have
    part[rows[3], 0] *= 0.01
    far[rows[3], 0] += 10
    wide[rows[3], 0] *= 10
    assert [unlike(own) for own in (X, part, far, wide)] == [False, False, True, True]


def test_a_source_of_three_rows_does_not_decide_the_coverage() -> None:
    rng = np.random.default_rng(0)
    sizes = {"big": 1000, "mid": 400, "tiny": 3, "new": 300}
    ends = np.cumsum(list(sizes.values()))
    rows = [np.arange(end - n, end) for n, end in zip(sizes.values(), ends, strict=True)]
    names = list(sizes)
    groups = Groups(dict(zip(names[:3], rows[:3], strict=True)), {"new": rows[3]})
    gaps = {name: rng.normal(size=n) for name, n in sizes.items() if name != "new"}
    gaps["tiny"][:] = 0.01  # by luck
    errors = {name: float(np.abs(own).mean()) for name, own in gaps.items()}
    found = measure_place(rng.normal(size=(ends[-1], 2)), groups, gaps, errors)
    assert min(found.place.covered["big"], found.place.covered["mid"]) > 0.85
    assert not found.place.narrow
