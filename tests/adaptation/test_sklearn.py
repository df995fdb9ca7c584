"""scikit-learn's own checks over every estimator, and what constructors must not do.

The checks know no domains: every network is plain regression there, with one objective for all.
The settings are small so that some ninety fits per estimator take a few seconds; the learning rate
is high so that they still learn.
"""

import inspect
from typing import Any

import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from vntransfer.adaptation import (
    METHODS,
    AutoTransferRegressor,
    ClosedFormClassifier,
    ClosedFormRegressor,
    DomainRegressor,
    PooledRegressor,
    SourceOnlyRegressor,
    WeightedSourceClassifier,
    WeightedSourceRegressor,
)

NEURAL = [name for name, entry in METHODS.items() if entry.neural]
SMALL: dict[str, Any] = {
    "hidden": (8,),
    "width": 8,
    "epochs": 1,
    "steps": 12,
    "batch_size": 32,
    "lr": 0.1,
}
NETWORK = SourceOnlyRegressor(**SMALL, random_state=0)

DENSE, SPARSE = (f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse"))
DRAWN = "rows are drawn at random by their weights: a row twice is not a row of weight two"
COUNTED = "leave-one-out and column scales count rows: a row twice is not a row of weight two"


def small(method: str) -> Any:
    """A method as the registry makes it; a network with few and short steps."""
    if not METHODS[method].neural:
        few = {"candidates": ["boosting", "ridge"], "random_state": 0} if method == "auto" else {}
        return METHODS[method].make(**few)
    fixed = {"trade_off": 1.0, "members": 2} if method == "align" else {}
    return METHODS[method].make(**SMALL, **fixed)


EVERY = [
    *map(small, METHODS),
    WeightedSourceRegressor(NETWORK),
    WeightedSourceRegressor(LinearRegression()),
    WeightedSourceClassifier(),
    WeightedSourceClassifier(LogisticRegression()),
    # the tiny ridges that "auto" may choose amplify rounding beyond the 1e-9 of the checks
    ClosedFormClassifier(ridge=1e-3),
    PooledRegressor(Ridge()),
    AutoTransferRegressor(["ridge", "boosting"], random_state=0),
]


def expected(model: Any) -> dict[str, str]:
    """Checks that an estimator fails, with the reason."""
    if isinstance(model, AutoTransferRegressor):  # without domains it is its first candidate
        return {DENSE: COUNTED, SPARSE: COUNTED} if model.candidates[0] == "ridge" else {}
    if isinstance(model, ClosedFormRegressor | ClosedFormClassifier):
        return {}
    if isinstance(model, DomainRegressor) or model.estimator is NETWORK:
        return {DENSE: DRAWN, SPARSE: DRAWN}
    if model.estimator == "ridge":
        return {DENSE: COUNTED, SPARSE: COUNTED}
    scaled = isinstance(model, WeightedSourceClassifier) and model.estimator is None
    return {DENSE: COUNTED} if scaled else {}


# scikit-learn before 1.8 cannot be strict
STRICT = "xfail_strict" in inspect.signature(parametrize_with_checks).parameters


@parametrize_with_checks(
    EVERY, expected_failed_checks=expected, **({"xfail_strict": True} if STRICT else {})
)
def test_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("method", NEURAL)
def test_constructors_only_store(method: str) -> None:
    model = METHODS[method].make(epochs=3)
    estimator_checks.check_parameters_default_constructible(method, model)
    estimator_checks.check_no_attributes_set_in_init(method, model)
    assert clone(model).get_params() == model.get_params()
    assert model.get_params().keys() >= METHODS[method].options.keys() | {"hidden", "epochs"}


SHOWN = {name: entry.make() for name, entry in METHODS.items()} | {
    "classifier": WeightedSourceClassifier(),
    "closed-form classifier": ClosedFormClassifier(),
    "nested": WeightedSourceRegressor(Ridge(alpha=2.0), sharpness=1.0),
}


@pytest.mark.parametrize("name", SHOWN)
def test_short_repr_and_html(name: str) -> None:
    model = SHOWN[name]
    kind = type(model).__name__
    text, default = repr(model), type(model)()
    assert text.startswith(f"{kind}(")
    assert repr(default) == f"{kind}()"
    for option, value in model.get_params(deep=False).items():
        changed = repr(value) != repr(default.get_params()[option])
        assert (f"{option}=" in text) == changed, option
    assert kind in model._repr_html_()
