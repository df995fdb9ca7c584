"""pairwise: the double loop's numbers from K decompositions; the Landmine oracle."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from helpers.samples import normal, orthogonal, random_spd, seeds
from vntransfer import (
    DIVERGENCES,
    ArgumentError,
    DomainError,
    Moments,
    NotPositiveDefiniteError,
    conditional_log_det,
    conditional_von_neumann,
    covariance,
    log_det,
    pairwise,
)

every = pytest.mark.parametrize("name", DIVERGENCES)
RIDGE = 0.2


def domains(count: int = 4, m: int | None = None) -> list[tuple[Tensor, Tensor]]:
    out = []
    for k in range(count):
        x = normal(20 + k, 3, seed=k) * (1 + 0.3 * k)
        y = x @ normal(3, m or 1, seed=100 + k) + 0.2 * normal(20 + k, m or 1, seed=200 + k)
        out.append((x, y if m else y[:, 0]))
    return out


def looped(matrices: list[Tensor], name: str, n_response: int) -> Tensor:
    entry = DIVERGENCES[name]
    options: dict[str, Any] = {"n_response": n_response} if entry.conditional else {}
    return torch.stack(
        [torch.stack([entry.function(s, r, **options) for r in matrices]) for s in matrices]
    )


@every
@pytest.mark.parametrize("m", [None, 1, 2])
def test_samples_equal_the_double_loop(name: str, m: int | None) -> None:
    given_domains = domains(m=m)
    matrices = [covariance(x, y, ridge=RIDGE) for x, y in given_domains]
    want = looped(matrices, name, m or 1)
    # the number of response columns comes from y, not from n_response
    got = pairwise(given_domains, divergence=name, ridge=RIDGE)
    assert torch.allclose(got, want, rtol=1e-8, atol=1e-6 if DIVERGENCES[name].metric else 1e-10)
    named = pairwise(dict(zip("abcd", given_domains, strict=True)), divergence=name, ridge=RIDGE)
    assert torch.equal(named, got)
    arrays = [(x.numpy(), y.numpy()) for x, y in given_domains]
    table = pairwise(arrays, divergence=name, ridge=RIDGE)
    assert isinstance(table, np.ndarray)
    assert np.allclose(table, got.numpy(), rtol=1e-12, atol=1e-12)


@every
def test_moments_equal_samples(name: str) -> None:
    given_domains = domains(m=2)
    streams = [Moments.from_samples(x[:5], y[:5]).update(x[5:], y[5:]) for x, y in given_domains]
    got = pairwise(streams, divergence=name, n_response=2, ridge=RIDGE)
    want = pairwise(given_domains, divergence=name, ridge=RIDGE)
    assert torch.allclose(got, want, rtol=1e-8, atol=1e-9)


@every
@pytest.mark.parametrize("n_response", [1, 2])
def test_ready_matrices_equal_the_double_loop_and_get_no_ridge(name: str, n_response: int) -> None:
    stack = torch.stack([random_spd(4, k, decades=0.7) for k in range(5)])
    want = looped(list(stack), name, n_response)
    got = pairwise(stack, divergence=name, n_response=n_response)
    assert torch.allclose(got, want, rtol=1e-8, atol=1e-6 if DIVERGENCES[name].metric else 1e-10)
    table = pairwise(stack.numpy(), divergence=name, n_response=n_response)
    assert isinstance(table, np.ndarray)
    assert np.allclose(table, got.numpy(), rtol=1e-12, atol=1e-12)


@every
def test_no_responses(name: str) -> None:
    if DIVERGENCES[name].conditional:
        pytest.skip("needs a response")
    samples = [x for x, _ in domains()]
    got = pairwise([(x, None) for x in samples], divergence=name, ridge=RIDGE)
    want = looped([covariance(x, ridge=RIDGE) for x in samples], name, 1)
    assert torch.allclose(got, want, rtol=1e-8, atol=1e-6 if DIVERGENCES[name].metric else 1e-10)


@given(seed=seeds, n=st.integers(2, 5), k=st.integers(1, 5))
@every
def test_laws(name: str, seed: int, n: int, k: int) -> None:
    stack = torch.stack([random_spd(n, seed + i) for i in range(k)])
    table = pairwise(stack, divergence=name)
    assert table.shape == (k, k)
    assert (table.diagonal() == 0).all()
    assert (table >= 0).all()
    if DIVERGENCES[name].symmetric:
        assert torch.allclose(table, table.mT, rtol=1e-12, atol=0)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(k))
    turned = pairwise(stack[order], divergence=name)
    assert torch.allclose(turned, table[order][:, order], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "per_domain"),
    [
        ("von_neumann", 1),
        ("jeffreys", 1),
        ("log_euclidean", 1),
        ("log_det", 1),
        ("conditional_von_neumann", 2),
        ("conditional_log_det", 2),
    ],
)
def test_decompositions_grow_with_domains_not_pairs(
    name: str, per_domain: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 0

    def counting(matrix: Tensor, *args: Any, **options: Any) -> Any:
        nonlocal count
        count += matrix.shape[:-2].numel()
        return eigh(matrix, *args, **options)

    eigh = torch.linalg.eigh
    monkeypatch.setattr(torch.linalg, "eigh", counting)
    stack = torch.stack([random_spd(4, k) for k in range(9)])
    pairwise(stack, divergence=name)
    assert 0 < count <= 9 * per_domain


def test_auto_ridge_is_the_same_for_all_domains() -> None:
    given_domains = domains()
    variances = torch.stack([covariance(x).diagonal().mean() for x, _ in given_domains])
    ridge = 1e-3 * float(variances.mean())
    assert torch.allclose(
        pairwise(given_domains), pairwise(given_domains, ridge=ridge), rtol=1e-8, atol=1e-12
    )


@pytest.mark.parametrize("name", ["conditional_von_neumann", "jeffreys", "log_euclidean"])
def test_is_differentiable(name: str) -> None:
    x = normal(3, 15, 2, seed=0).requires_grad_()
    y = normal(3, 15, seed=1)
    table = pairwise([(x[k], y[k]) for k in range(3)], divergence=name, ridge=RIDGE)
    table.sum().backward()
    other = x.detach().clone().requires_grad_()
    looped([covariance(other[k], y[k], ridge=RIDGE) for k in range(3)], name, 1).sum().backward()
    assert torch.allclose(x.grad, other.grad, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "name",
    ["von_neumann", "jeffreys", "conditional_von_neumann", "log_det", "conditional_log_det"],
)
def test_near_equal_float32_matrices_are_near_float64(name: str) -> None:
    """From K decompositions a small divergence is a difference of large traces."""
    base = covariance(normal(300, 64, seed=0))
    stack = torch.stack([base + 1e-3 * torch.diag(normal(64, seed=k).abs()) for k in range(4)])
    stack = stack.float()
    want = pairwise(stack.double(), divergence=name)
    assert torch.allclose(pairwise(stack, divergence=name).double(), want, rtol=1e-3, atol=1e-12)


def test_dtype_of_samples_is_kept() -> None:
    samples = [(x.float(), y.float()) for x, y in domains()]
    assert pairwise(samples).dtype == torch.float32


def test_relatedness_is_seen() -> None:
    x = normal(3, 500, 2, seed=0)
    y = x[..., 0] + 0.1 * normal(3, 500, seed=1)
    y[2] = -y[2]
    table = pairwise([(x[k], y[k]) for k in range(3)])
    assert table[0, 1] < table[0, 2] / 20


def test_input_that_does_not_fit_is_named() -> None:
    x, y = domains()[0]
    cases: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
        ([(x, y)], {"divergence": "nope"}, ArgumentError, "divergence: .*'nope'.*jeffreys"),
        ([(x, y)], {"ridge": -1.0}, ArgumentError, "ridge"),
        ([(x, y)], {"ridge": float("nan")}, ArgumentError, "ridge"),
        ([], {}, DomainError, "domains: .*at least one"),
        (None, {}, DomainError, "domains: .*got None"),
        (3, {}, DomainError, "domains: .*got 3"),
        ([(x.tolist(), y.tolist())], {}, ArgumentError, r"domains\[0\].*list"),
        ([(x.expand(3, -1, -1), y.expand(3, -1))] * 2, {}, DomainError, r"domains\[0\]: .*shapes"),
        ([(x, y), (x.numpy(), y.numpy())], {}, ArgumentError, r"domains\[1\]\[0\] is numpy"),
        ([(x, y), (x * float("nan"), y)], {}, ArgumentError, r"domains\[1\]\[0\]: .*NaN"),
        ([(None, y), (x, y)], {}, ArgumentError, r"domains\[0\]\[0\]: expected .* got None"),
        ([x], {}, DomainError, r"domains\[0\].*Tensor"),
        ([(x, y), (x[:, :2], y)], {}, DomainError, "domains: columns differ"),
        ([(x, y), (x[:, :2], torch.stack((y, y), -1))], {}, DomainError, "domains: columns"),
        (torch.eye(3), {}, ArgumentError, "domains: expected .K, n, n"),
        (torch.ones(2, 3, 3), {}, NotPositiveDefiniteError, "domains: .*ridge"),
        (torch.eye(3).expand(2, 3, 3), {"n_response": 3}, ArgumentError, "n_response"),
        (torch.eye(3).expand(2, 3, 3), {"n_response": 0}, ArgumentError, "n_response"),
        ([(x, x[:, 0] + x[:, 1])] * 2, {"ridge": 0.0}, NotPositiveDefiniteError, "domains"),
    ]
    for value, options, error, message in cases:
        with pytest.raises(error, match=message):
            pairwise(value, **options)


# the real data

LANDMINE = Path(__file__).parents[3] / "shared" / "data" / "landmine" / "LandmineData.mat"


@pytest.fixture(scope="module")
def tasks() -> list[tuple[np.ndarray, np.ndarray]]:
    if not LANDMINE.exists():
        pytest.skip("the Landmine file is not there")
    from scipy.io import loadmat

    raw = loadmat(LANDMINE)
    return [
        (x.astype(float), y[:, 0].astype(float))
        for x, y in zip(raw["feature"][0], raw["label"][0], strict=True)
    ]


def test_landmine_von_neumann(tasks: list[tuple[np.ndarray, np.ndarray]]) -> None:
    table = pairwise(tasks, ridge=0.0)
    assert table.shape == (29, 29)
    assert table[0, 1] == pytest.approx(0.005207, abs=5e-7)
    assert table[0, 20] == pytest.approx(0.064719, abs=5e-7)
    assert table.max() == pytest.approx(0.1321, abs=5e-5)
    assert {i + 1 for i in np.unravel_index(table.argmax(), table.shape)} == {4, 26}
    off = ~np.eye(29, dtype=bool)
    first, second = np.arange(29) < 15, np.arange(29) >= 15
    within = [table[np.outer(b, b) & off].mean() for b in (first, second)]
    assert within == pytest.approx([0.00788, 0.01726], abs=5e-6)
    assert table[np.outer(first, second)].mean() == pytest.approx(0.06907, abs=5e-6)
    one = conditional_von_neumann(covariance(*tasks[0]), covariance(*tasks[20]))
    assert float(one) == pytest.approx(table[0, 20], rel=1e-9)


def test_landmine_log_det(tasks: list[tuple[np.ndarray, np.ndarray]]) -> None:
    table = pairwise(tasks, ridge=0.0, divergence="conditional_log_det")
    assert table[0, 1] == pytest.approx(0.085272, abs=5e-7)
    assert table[0, 20] == pytest.approx(0.415036, abs=5e-7)
    assert table.max() == pytest.approx(64.36, abs=5e-3)
    assert {i + 1 for i in np.unravel_index(table.argmax(), table.shape)} == {4, 26}
    pair = covariance(*tasks[0]), covariance(*tasks[1])
    assert float(conditional_log_det(*pair)) == pytest.approx(table[0, 1], rel=1e-8)
    assert float(log_det(*pair)) >= 0


def test_invariance_under_rotation_of_features() -> None:
    q = torch.from_numpy(orthogonal(3, 0))
    given_domains = domains()
    turned = [(x @ q + 4, y - 2) for x, y in given_domains]
    assert torch.allclose(pairwise(turned), pairwise(given_domains), rtol=1e-8, atol=1e-12)
