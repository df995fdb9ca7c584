"""scikit-learn's own checks. They know no domains: every method is the same plain regression."""

from typing import Any

import pytest
from sklearn.base import clone
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from vntransfer.adaptation import METHODS, DomainRegressor

NEURAL = [name for name, entry in METHODS.items() if entry.neural]
FAILURES = {
    "check_methods_subset_invariance": "float32 sums depend on the number of rows; 1e-6 apart",
    "check_sample_weight_equivalence_on_dense_data": "rows are drawn at random by their weights",
    "check_sample_weight_equivalence_on_sparse_data": "rows are drawn at random by their weights",
}


def expected(estimator: DomainRegressor) -> dict[str, str]:
    return FAILURES


@parametrize_with_checks(
    [METHODS["source_only"].make(hidden=(16,), epochs=8, steps=16, batch_size=16)],
    expected_failed_checks=expected,
)
def test_checks_of_scikit_learn(estimator: DomainRegressor, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("method", NEURAL)
def test_constructors_only_store(method: str) -> None:
    model = METHODS[method].make(epochs=3)
    estimator_checks.check_parameters_default_constructible(method, model)
    estimator_checks.check_no_attributes_set_in_init(method, model)
    assert clone(model).get_params() == model.get_params()
    assert model.get_params().keys() >= METHODS[method].options.keys() | {"hidden", "epochs"}
