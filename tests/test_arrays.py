"""Bad input at every public door: an error of ours that names the argument, never a NaN."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import vntransfer as vn
from helpers.samples import normal, random_spd
from vntransfer import ArgumentError, NotPositiveDefiniteError, VnError
from vntransfer.arrays import take
from vntransfer.checks import number, whole


def responses(x: Tensor) -> Tensor:
    return x[:, 0]


def doors() -> dict[str, tuple[Callable[..., Any], dict[str, Tensor]]]:
    """Functions of arrays, with valid arguments by name."""
    pair = {"sigma": random_spd(3, 0), "rho": random_spd(3, 1)}
    x, y = normal(9, 3, seed=0), normal(9, seed=1)
    out: dict[str, tuple[Callable[..., Any], dict[str, Tensor]]] = {
        name: (entry.function, dict(pair)) for name, entry in vn.DIVERGENCES.items()
    }
    out["covariance"] = (vn.covariance, {"x": x, "y": y, "weights": y.abs()})
    out["correntropy"] = (vn.correntropy, {"x": x, "y": y})
    out["Moments"] = (vn.Moments.from_samples, {"x": x, "y": y, "weights": y.abs()})
    out["update"] = (vn.Moments.from_samples(x).update, {"x": x})
    out["response_divergence"] = (
        vn.response_divergence,
        {"features": x, "a": y, "b": normal(9, seed=2)},
    )
    out["discrepancy"] = (
        lambda **d: vn.discrepancy(**d, h=responses, h_prime=lambda z: z[:, 1]),
        {"source": x, "target": 2 * x},
    )
    out["max_discrepancy"] = (
        lambda **d: vn.max_discrepancy(**d, ascent=vn.Ascent(steps=1, restarts=1)),
        {"source": x, "target": 2 * x},
    )
    out["convergence_terms"] = (
        vn.convergence_terms,
        {**pair, "theta": random_spd(3, 2), "sigma_hat": random_spd(3, 3)},
    )
    out["convergence_terms"][1]["theta_hat"] = out["convergence_terms"][1].pop("rho")
    return out


DOORS = doors()
ARGUMENTS = [(name, argument) for name, (_, given) in DOORS.items() for argument in given]


def spoil_nan(t: Tensor) -> Any:
    t = t.clone()
    t.flatten()[0] = float("nan")
    return t


def spoil_inf(t: Tensor) -> Any:
    t = t.clone()
    t.flatten()[-1] = -float("inf")
    return t


SPOILS: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "NaN": (spoil_nan, "1 NaN"),
    "infinity": (spoil_inf, "1 infinite"),
    "integers": (lambda t: t.long(), "int64"),
    "booleans": (lambda t: t > 0, "bool"),
    "half precision": (lambda t: t.half(), "float16"),
    "complex": (lambda t: t.to(torch.complex128), "complex128"),
    "another dtype": (lambda t: t.float(), "float32"),
    "another kind": (lambda t: t.numpy(), "numpy"),
    "a list": (lambda t: t.tolist(), "list"),
    "a string": (lambda _: "x", "str"),
    "empty": (lambda t: t[:0], "empty"),
}


@pytest.mark.parametrize(("door", "argument"), ARGUMENTS)
@pytest.mark.parametrize("spoil", SPOILS)
def test_bad_arrays_are_named(door: str, argument: str, spoil: str) -> None:
    function, valid = DOORS[door]
    change, finding = SPOILS[spoil]
    if len(valid) == 1 and spoil in ("another dtype", "another kind"):
        pytest.skip("one array is of one kind")
    spoilt = {**valid, argument: change(valid[argument])}
    with pytest.raises(VnError) as caught:
        function(**spoilt)
    assert isinstance(caught.value, ValueError)
    assert argument in str(caught.value)
    assert finding in str(caught.value)


@pytest.mark.parametrize("door", [n for n in DOORS if "discrepancy" not in n])
@pytest.mark.parametrize("spoil", ["NaN", "infinity"])
def test_bad_numpy_arrays_are_named(door: str, spoil: str) -> None:
    function, valid = DOORS[door]
    change, finding = SPOILS[spoil]
    for argument in valid:
        spoilt = {**valid, argument: change(valid[argument])}
        with pytest.raises(ArgumentError, match=rf"{argument}.*{finding}"):
            function(**{name: t.numpy() for name, t in spoilt.items()})


@pytest.mark.parametrize("argument", ["sigma", "rho"])
@pytest.mark.parametrize("door", list(vn.DIVERGENCES))
def test_what_is_not_positive_definite_is_named(door: str, argument: str) -> None:
    function, valid = DOORS[door]
    eye = torch.eye(3).double()
    for bad in (
        torch.ones(3, 3).double(),  # singular
        -random_spd(3, 0),  # negative definite
        torch.diag(torch.tensor([1.0, 2.0, -1e-3]).double()),  # indefinite
        torch.zeros(3, 3).double(),
        eye + torch.triu(torch.ones(3, 3).double(), 1),  # not symmetric
    ):
        with pytest.raises(NotPositiveDefiniteError, match=f"^{argument}: "):
            function(**{**valid, argument: bad})
        stack = torch.stack((eye, bad))
        with pytest.raises(NotPositiveDefiniteError, match=f"^{argument}: "):
            function(**{**valid, argument: stack})


@pytest.mark.parametrize("door", list(vn.DIVERGENCES))
@pytest.mark.parametrize("shape", [(3,), (2, 3), (4, 4), (2, 4, 4), (), (3, 3, 2)])
def test_matrices_of_wrong_shape_are_named(door: str, shape: tuple[int, ...]) -> None:
    function, valid = DOORS[door]
    for argument in ("sigma", "rho"):
        with pytest.raises(ArgumentError, match=r"sigma|rho"):
            function(**{**valid, argument: torch.ones(shape).double()})


def test_batches_that_do_not_broadcast_are_named() -> None:
    sigma, rho = (torch.eye(2).double().expand(k, 2, 2) for k in (3, 4))
    for entry in vn.DIVERGENCES.values():
        with pytest.raises(ArgumentError, match="rho: batch dimensions"):
            entry.function(sigma, rho)


@pytest.mark.parametrize("name", ["conditional_von_neumann", "conditional_log_det"])
@pytest.mark.parametrize("n_response", [0, 3, -1, 1.0, "1", None, True])
def test_bad_numbers_of_responses_are_named(name: str, n_response: Any) -> None:
    sigma, rho = random_spd(3, 0), random_spd(3, 1)
    with pytest.raises(ArgumentError, match=r"^n_response: .*1 to 2"):
        vn.DIVERGENCES[name].function(sigma, rho, n_response=n_response)


SAMPLES = {
    "one sample": ({"features": (1, 3), "a": (1,), "b": (1,)}, "features"),
    "features of one dimension": ({"features": (9,), "a": (9,), "b": (9,)}, "features"),
    "too few responses": ({"features": (9, 3), "a": (8,), "b": (8,)}, "a, b"),
    "other batch": ({"features": (2, 9, 3), "a": (3, 9), "b": (3, 9)}, "a, b"),
    "no batch": ({"features": (2, 9, 3), "a": (9,), "b": (9,)}, "a, b"),
    "responses of too many dimensions": (
        {"features": (9, 3), "a": (9, 1, 1), "b": (9, 1, 1)},
        "a, b",
    ),
    "a unlike b": ({"features": (9, 3), "a": (9,), "b": (9, 1)}, "b"),
    "no features": ({"features": (9, 0), "a": (9,), "b": (9,)}, "features"),
    "no samples": ({"features": (0, 3), "a": (0,), "b": (0,)}, "features"),
}


@pytest.mark.parametrize("case", SAMPLES)
def test_samples_of_wrong_shape_are_named(case: str) -> None:
    shapes, named = SAMPLES[case]
    with pytest.raises(ArgumentError, match=f"^{named}"):
        vn.response_divergence(**{k: torch.ones(s).double() for k, s in shapes.items()})


@pytest.mark.parametrize("ridge", [-1.0, float("nan"), float("inf"), "none", None, True, [1.0]])
def test_bad_ridges_are_named(ridge: Any) -> None:
    x, y = normal(9, 3, seed=0), normal(9, seed=1)
    for call in (
        lambda: vn.response_divergence(x, y, -y, ridge=ridge),
        lambda: vn.covariance(x, y, ridge=ridge),
        lambda: vn.pairwise([(x, y), (x, -y)], ridge=ridge),
        lambda: vn.discrepancy(x, 2 * x, responses, responses, ridge=ridge),
        lambda: vn.JeffreysLoss(ridge=ridge)(x, y, -y),
    ):
        with pytest.raises(ArgumentError, match="ridge: expected"):
            call()


def test_bad_options_are_named() -> None:
    x, y = normal(9, 3, seed=0), normal(9, seed=1)
    with pytest.raises(ArgumentError, match=r"method: .*'nope'"):
        vn.response_divergence(x, y, y, method="nope")  # type: ignore[arg-type]
    for width in (0.0, -1.0, "mean", float("nan")):
        with pytest.raises(ArgumentError, match="width: expected"):
            vn.correntropy(x, width=width)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"width: 'median' is zero"):
        vn.correntropy(torch.ones(3, 2))


def test_shapes_of_moments_are_named() -> None:
    x, y = normal(9, 3, seed=0), normal(9, seed=1)
    cases: list[tuple[Callable[[], Any], str]] = [
        (lambda: vn.covariance(y), "x: expected samples"),
        (lambda: vn.covariance(x, y[:5]), r"y: expected shape \(9,\)"),
        (lambda: vn.covariance(x, x[:5]), r"y: expected shape \(9,\)"),
        (lambda: vn.covariance(x, weights=y[:5].abs()), r"weights: expected shape \(9,\)"),
        (lambda: vn.covariance(x, weights=y), "weights: expected non-negative"),
        (lambda: vn.covariance(x, weights=0 * y), "weights: .*positive sum"),
        (lambda: vn.covariance(x[:1]), "x: .*two samples"),
        (lambda: vn.covariance(x, weights=torch.eye(9).double()[0]), "two samples"),
        (lambda: vn.correntropy(x[:1], y[:1]), "x: .*two samples"),
        (lambda: vn.correntropy(normal(2, 9, 3, seed=0)), "x: .*two samples"),
        (
            lambda: vn.Moments.from_samples(x).merge(vn.Moments.from_samples(x[:, :2])),
            "other: has 2 columns",
        ),
        (lambda: vn.Moments.from_samples(x).update(x[:, :2]), "2 columns"),
        (lambda: vn.Moments.from_samples(x).merge(3), "other: expected Moments"),  # type: ignore[arg-type]
        *(
            (lambda f=f: vn.Moments.from_samples(x).scaled(f), "factor: expected positive")
            for f in (0, -1.0, np.nan, np.inf)
        ),
        (lambda: vn.Moments.weighted([], []), "parts: empty"),
        (lambda: vn.Moments.weighted([vn.Moments.from_samples(x)], [1.0, 2.0]), "weights: "),
        (lambda: vn.Moments.weighted([vn.Moments.from_samples(x)], [-1.0]), "weights: "),
        (lambda: vn.Moments.weighted([vn.Moments.from_samples(x)], [0.0]), "weights: "),
        (lambda: vn.Moments.weighted([vn.Moments.from_samples(x)], [np.nan]), "weights: 1 NaN"),
        (
            lambda: vn.Moments.weighted([vn.Moments.from_samples(x)], [np.inf]),
            "weights: .*infinite",
        ),
        (lambda: vn.Moments.weighted([vn.Moments.from_samples(x)], ["a"]), "weights: expected"),
    ]
    for call, message in cases:
        with pytest.raises(ArgumentError, match=message):
            call()


def test_take_gives_back_the_kind() -> None:
    (a,), back = take(x=np.ones(3, dtype=np.float32))
    assert a.dtype == torch.float32
    assert isinstance(back(a), np.ndarray)
    (a,), back = take(x=torch.ones(3))
    assert back(a) is a
    tensors, _ = take(optional=("y",), x=torch.ones(3), y=None)
    assert len(tensors) == 1


OPTIONAL = ("y", "weights")


@pytest.mark.parametrize(("door", "argument"), [a for a in ARGUMENTS if a[1] not in OPTIONAL])
def test_none_takes_no_other_arguments_place(door: str, argument: str) -> None:
    function, valid = DOORS[door]
    with pytest.raises(ArgumentError, match=f"^{argument}: expected .*got None"):
        function(**{**valid, argument: None})


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3).T,
        np.arange(12.0).reshape(6, 2)[::2],
        np.asfortranarray(np.arange(6.0).reshape(3, 2)),
        np.arange(6.0).reshape(3, 2)[::-1],  # torch has no negative strides
        np.arange(6.0).reshape(3, 2).astype(">f8"),  # nor foreign byte orders
    ],
)
def test_numpy_arrays_of_any_layout_are_taken(array: np.ndarray) -> None:
    assert np.allclose(vn.covariance(array), np.cov(array, rowvar=False))


def test_read_only_numpy_arrays_are_taken_without_a_warning() -> None:
    x = np.random.default_rng(0).standard_normal((5, 2))
    x.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.allclose(vn.covariance(x), np.cov(x, rowvar=False))


def test_long_double_is_named() -> None:
    """Torch has no such dtype: the error is ours, not torch's TypeError."""
    with pytest.raises(ArgumentError, match=r"^x: expected float32 or float64"):
        vn.covariance(np.ones((3, 2), np.longdouble))


@pytest.mark.parametrize("value", [0, 1, 0.5, np.float32(0.5), np.int64(2)])
def test_numbers_are_taken(value: Any) -> None:
    assert number("ridge", value) == float(value)


def test_numbers_are_checked() -> None:
    for value in (-1, float("nan"), float("inf"), "1", None, True, [1.0], 1j):
        with pytest.raises(ArgumentError, match=r"^ridge: expected a"):
            number("ridge", value)
    with pytest.raises(ArgumentError, match="above 0"):
        number("width", 0, exclusive=True)


@pytest.mark.parametrize("value", [2, np.int64(2), np.uint8(2)])
def test_whole_numbers_are_taken(value: Any) -> None:
    assert type(whole("memory", value, minimum=2, maximum=2)) is int
    sigma, rho = random_spd(4, 0), random_spd(4, 1)
    same = (vn.conditional_von_neumann(sigma, rho, n_response=n) for n in (2, value))
    assert next(same) == next(same)


@pytest.mark.parametrize("value", [1, 4, 2.0, "2", None, True, np.bool_(True), np.float64(2.0)])
def test_whole_numbers_are_checked(value: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^memory: .*2 to 3"):
        whole("memory", value, minimum=2, maximum=3)
