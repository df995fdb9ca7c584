"""Values that no model can be fitted to, in every estimator: huge ones, unknown ones."""

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin

from helpers.worlds import easy
from vntransfer.adaptation import METHODS, PooledRegressor, WeightedSourceClassifier, source_weights
from vntransfer.errors import ArgumentError, DataError, DomainError

every_estimator = pytest.mark.parametrize("method", METHODS)
SHORT: dict[str, Any] = {"epochs": 2, "steps": 8, "batch_size": 16, "random_state": 0}


def short(method: str) -> Any:
    if method == "auto":
        return METHODS[method].make(candidates=["boosting", "ridge", "constant"], random_state=0)
    entry = METHODS[method]
    fixed = {"trade_off": 1.0} if method == "align" else {}
    return entry.make(**({**SHORT, **fixed} if entry.neural else {"random_state": 0}))


@every_estimator
@pytest.mark.parametrize("size", [1e150, 1e200, 1e300, 1e308])
@pytest.mark.parametrize("many", [False, True])
def test_huge_values_are_refused_by_row_and_column(method: str, size: float, many: bool) -> None:
    X, y, domain = easy(20)
    source = int(np.flatnonzero(domain == "b")[3])
    aimed = int(np.flatnonzero(domain == "target")[2])
    rows = np.arange(len(y)) == source
    big = np.where(rows | many, -size, y)
    first = int(np.flatnonzero(domain != "target")[0]) if many else source
    with pytest.raises(ArgumentError, match=rf"y: row {first} \(source '{domain[first]}'\) is -1e"):
        short(method).fit(X, np.where(domain == "target", np.nan, big), domain)
    for row in (source, aimed):  # rows of the target are fitted to as well
        wild = np.array(X)
        wild[row, 2] = size
        with pytest.raises(ArgumentError, match=rf"X: row {row}, column 2 is 1e.*rescale"):
            short(method).fit(wild, y, domain)
        with pytest.raises(ArgumentError, match=rf"X: row {row}, column 2 is 1e.*rescale"):
            short(method).fit(scipy.sparse.csr_matrix(wild), y, domain)


@every_estimator
@pytest.mark.parametrize("size", [1e-90, 1e50, 1e96])
def test_large_and_small_units_are_no_trouble(method: str, size: float) -> None:
    """What is not refused is predicted at its own scale."""
    X, y, domain = easy(20)
    plain = short(method).fit(X, y, domain).predict(X) * size
    for scaled in (
        short(method).fit(X, y * size, domain).predict(X),
        short(method).fit(X * size, y * size, domain).predict(X * size),
    ):
        assert np.isfinite(scaled).all()
        assert np.abs(scaled - plain).max() < 5 * np.abs(plain).max()


@every_estimator
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_single_outlier_leaves_predictions_finite(method: str, dtype: Any) -> None:
    X, y, domain = easy(20)
    X = X.astype(dtype)
    X[5, 1] = 1e99 if dtype is np.float64 else 1e38
    y = np.where(np.arange(len(y)) == 7, 1e99, y)
    assert np.isfinite(short(method).fit(X, y, domain).predict(X)).all()


@every_estimator
def test_single_precision_raises_no_warning_of_numpy(method: str) -> None:
    X, y, domain = easy(20)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        short(method).fit(X.astype(np.float32), y.astype(np.float32), domain).predict(X)


@every_estimator
def test_unknown_responses_of_sources_are_named(method: str) -> None:
    X, y, domain = easy(20)
    for value, called in ((np.nan, "NaN"), (np.inf, "infinity")):
        bad = np.array(y)
        bad[[2, 25]] = value
        said = rf"y: .*{called} in 2 rows of sources, row 2 \(source 'a'\), row 25 \(source 'b'\)"
        with pytest.raises(DomainError, match=said) as error:
            short(method).fit(X, bad, domain)
        assert "sample_domain" not in str(error.value)


@every_estimator
def test_a_forgotten_sample_domain_is_named(method: str) -> None:
    X, y, domain = easy(20)
    unlabeled = np.where(domain == "target", np.nan, y)
    with pytest.raises(DomainError, match=r"y: .*NaN in 20 rows.*row \d+.*sample_domain.*target="):
        short(method).fit(X, unlabeled)


def test_the_classifier_and_the_weights_refuse_huge_inputs_too() -> None:
    X, y, domain = easy(20)
    X[4, 1] = 1e200
    with pytest.raises(ArgumentError, match=r"X: row 4, column 1 is 1e\+200"):
        WeightedSourceClassifier().fit(X, y > 1, domain)
    with pytest.raises(ArgumentError, match=r"X: row 4, column 1 is 1e\+200"):
        source_weights(X, sample_domain=domain)


def test_columns_of_a_data_frame_are_named() -> None:
    pandas = pytest.importorskip("pandas")
    X, y, domain = easy(20)
    X[4, 1] = 1e200
    with pytest.raises(ArgumentError, match=r"X: row 4, column 'rooms' is 1e\+200"):
        short("ridge").fit(pandas.DataFrame(X, columns=["a", "rooms", "c", "d"]), y, domain)


class Odd(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Predicts infinity where the first column is above nine."""

    def fit(self, X: Any, y: Any) -> "Odd":
        self.fitted_ = True
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        return np.where(X[:, 0] > 9, np.inf, 1.0)


def test_a_prediction_that_is_not_finite_names_its_row() -> None:
    X, y, domain = easy(20)
    model = PooledRegressor(Odd()).fit(X, y, domain)
    assert (model.predict(X) == 1).all()
    X[6, 0] = 10
    with pytest.raises(DataError, match=r"X: the prediction of row 6 is inf.*units"):
        model.predict(X)
    _, y, domain = easy(20)
    ridge = short("ridge").fit(easy(20)[0], 1e10 * y, domain)
    X[6, 0] = 1e308
    with pytest.raises(DataError, match=r"X: the prediction of row 6 is -?inf"):
        ridge.predict(X)
