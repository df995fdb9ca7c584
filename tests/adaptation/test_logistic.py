"""Logistic regression on responses with few values predicts the median of their distribution."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from vntransfer import AutoTransferRegressor, PooledRegressor, stack
from vntransfer.adaptation.linear_learners import LogisticLearner
from vntransfer.adaptation.predictors import predictor_kind
from vntransfer.errors import DataError
from vntransfer.storage.folder import restore


def reviews(seed: int, n: int = 80, p: int = 12) -> tuple[Any, Any]:
    """Sparse counts of words and stars that depend on two of them."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.7, size=(n, p))
    stars = np.clip(3 + counts[:, 0] - counts[:, 1] + rng.integers(-1, 2, n), 1, 5).astype(float)
    return scipy.sparse.csr_matrix(counts.astype(float)), stars


@given(st.integers(0, 10_000), st.integers(2, 6))
def test_the_prediction_has_the_least_expected_error(seed: int, kinds: int) -> None:
    rng = np.random.default_rng(seed)
    x, values = rng.normal(size=(60, 3)), np.sort(rng.normal(size=kinds)) * 10
    y = values[rng.integers(0, kinds, 60)]
    found = LogisticLearner().fit(x, y).predict(x)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) == 1:
        assert (found == classes[0]).all()
        return
    scaled = StandardScaler().fit_transform(x)
    p = LogisticRegression(C=2.0, max_iter=500).fit(scaled, codes).predict_proba(scaled)
    expected = (p[:, None, :] * np.abs(classes[:, None] - classes)).sum(-1)
    own = expected[np.arange(60), np.searchsorted(classes, found)]
    np.testing.assert_allclose(own, expected.min(1), rtol=1e-6)


def test_sparse_rows_in_another_unit_give_the_same_predictions() -> None:
    x, y = reviews(0)
    one, other = LogisticLearner().fit(x, y), LogisticLearner().fit(1000 * x, y)
    np.testing.assert_array_equal(one.predict(x), other.predict(1000 * x))
    np.testing.assert_array_equal(one.predict(x), one.predict(x.toarray()))


def test_rows_of_weight_zero_do_not_count() -> None:
    x, y = reviews(1)
    weights = np.repeat([1.0, 0.0], 40)
    changed = np.where(weights > 0, y, y[::-1])
    scale = scipy.sparse.csr_matrix(x)
    one, other = (LogisticLearner().fit(scale, own, weights) for own in (y, changed))
    np.testing.assert_allclose(one.function_.coefficients, other.function_.coefficients, atol=1e-4)


@pytest.mark.parametrize("y", [np.arange(21.0).repeat(2), np.zeros((42, 2))])
def test_many_values_and_several_responses_are_refused(y: Any) -> None:
    with pytest.raises(DataError, match=r"y: .*at most 20.*boosting"):
        LogisticLearner().fit(np.ones((42, 2)), y)


@pytest.mark.parametrize(
    ("name", "value"), [("values", np.array([2.0, 1.0])), ("values", np.zeros(0))]
)
def test_unfit_values_are_refused(name: str, value: Any) -> None:
    x, y = reviews(2)
    saved = LogisticLearner().fit(x, np.minimum(y, 2))._saved()
    saved.arrays[name] = value
    with pytest.raises(DataError, match=r"arrays"):
        restore(saved, predictor_kind, {}, "folder")


def test_auto_tries_it_on_text_with_few_values_only() -> None:
    places = {name: reviews(i) for i, name in enumerate("abc")}
    X, y, domain = stack(places, target=reviews(9)[0])
    assert "logistic" in AutoTransferRegressor()._names(_rows(X, y, domain))
    assert "logistic" not in AutoTransferRegressor()._names(_rows(X.toarray(), y, domain))
    many = np.where(np.isnan(y), np.nan, np.arange(len(y)))
    assert "logistic" not in AutoTransferRegressor()._names(_rows(X, many, domain))


def _rows(X: Any, y: Any, domain: Any) -> Any:
    from vntransfer.adaptation._estimator import FitRows
    from vntransfer.domains import group

    return FitRows(X, y, group(domain, len(y)))


def test_a_saved_average_with_it_predicts_the_same(tmp_path: Any) -> None:
    from vntransfer import load

    places = {name: reviews(i) for i, name in enumerate("abc")}
    new = reviews(9)[0]
    X, y, domain = stack(places, target=new)
    model = AutoTransferRegressor(["logistic", "ridge"], random_state=0).fit(X, y, domain)
    model.save(tmp_path / "model")
    np.testing.assert_allclose(load(tmp_path / "model").predict(new), model.predict(new))
    pooled = PooledRegressor("logistic").fit(X, y, domain)
    assert set(pooled.predict(new)) <= set(y[~np.isnan(y)])
