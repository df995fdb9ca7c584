"""Weighted and pooled sources: any learner, the right weights, a guarded choice."""

from typing import Any

import joblib
import numpy as np
import pytest
import scipy.sparse
import sklearn
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from helpers.worlds import World, easy, hard
from vntransfer import (
    ArgumentError,
    DomainError,
    PooledRegressor,
    SourceOnlyRegressor,
    WeightedSourceClassifier,
    WeightedSourceRegressor,
    source_weights,
    stack,
)
from vntransfer.adaptation._learners import DenseScaler


def curved(seed: int = 0, n: int = 120, sources: int = 5) -> World:
    """A curve in pieces: a straight line fits each source, but not all of them."""
    rng = np.random.default_rng(seed)
    parts = {}
    for i in range(sources):
        x = rng.normal(1.5 * i, 0.6, size=(n, 2))
        parts[f"s{i}"] = (x, x[:, 0] ** 2 + 0.1 * rng.normal(size=n))
    return stack(parts, target=rng.normal(1.6, 0.6, size=(n, 2)))


def kinds(seed: int = 0, n: int = 150) -> World:
    """Two kinds of places with opposite classes; four sources, the target is of the first kind."""
    rng = np.random.default_rng(seed)
    parts = {}
    for i, name in enumerate(("a1", "a2", "b1", "b2")):
        x = rng.normal(0, 1, size=(n, 3)) * (1.0 if i < 2 else [1, 4, 1])
        parts[name] = (x, (x[:, 0] * (1 if i < 2 else -1) + 0.3 * rng.normal(size=n)) > 0)
    return stack(parts, target=rng.normal(0, 1, size=(n, 3)))


class Recorder(LinearRegression):  # type: ignore[misc]
    """Linear regression that keeps the weights it was given."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        self.rows_, self.weights_ = X, sample_weight
        return super().fit(X, y, sample_weight)


def test_rows_share_the_weight_of_their_source() -> None:
    X, y, domain = easy()
    model = WeightedSourceRegressor(Recorder(), sharpness=1.5).fit(X, y, domain)
    expected = source_weights(X, y, domain, sharpness=1.5)
    assert model.source_weights_ == pytest.approx(expected)
    weights, names = model.estimator_.weights_, domain[domain != "target"]
    assert weights.mean() == pytest.approx(1)
    np.testing.assert_array_equal(model.estimator_.rows_, X[domain != "target"])
    for name, share in expected.items():
        own = weights[names == name]
        assert np.ptp(own) < 1e-12
        assert own.sum() / len(names) == pytest.approx(share)


def test_sample_weights_count_within_their_source() -> None:
    X, y, domain = easy()
    given = np.random.default_rng(0).uniform(0, 2, size=len(y))
    given[domain == "target"] = np.nan
    model = WeightedSourceRegressor(Recorder(), sharpness=1.0, prior="equal")
    weights = model.fit(X, y, domain, sample_weight=given).estimator_.weights_
    rows = domain != "target"
    assert weights.sum() == pytest.approx(given[rows].sum())
    for name, share in model.source_weights_.items():
        own = domain[rows] == name
        np.testing.assert_allclose(
            weights[own] / weights[own].sum(), given[domain == name] / given[domain == name].sum()
        )
        assert weights[own].sum() / weights.sum() == pytest.approx(share)


def test_a_source_without_weight_is_as_absent() -> None:
    X, y, domain = easy()
    alive = (domain != "c").astype(float)
    with_zero = WeightedSourceRegressor("ridge", sharpness=1.0).fit(X, y, domain, None, alive)
    assert with_zero.source_weights_["c"] == 0
    assert with_zero.source_weights_["b"] > 0.5


@pytest.mark.parametrize("estimator", ["ridge", "boosting", Ridge()])
def test_pooling_is_the_plain_fit(estimator: Any) -> None:
    X, y, domain = easy()
    rows = domain != "target"
    pooled = PooledRegressor(estimator, random_state=0).fit(X, y, domain)
    plain = PooledRegressor(estimator, random_state=0).fit(X[rows], y[rows])
    flat = WeightedSourceRegressor(estimator, sharpness=0.0, random_state=0).fit(X, y, domain)
    np.testing.assert_array_equal(pooled.predict(X), plain.predict(X))
    np.testing.assert_array_equal(flat.predict(X), plain.predict(X))
    assert pooled.source_weights_ == pytest.approx(flat.source_weights_)


@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(StandardScaler(), Ridge()),
        make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), Ridge())),
        TransformedTargetRegressor(Ridge(), transformer=StandardScaler()),
        GridSearchCV(Ridge(), {"alpha": [1.0]}),
        HistGradientBoostingRegressor(max_iter=5),
        RandomForestRegressor(5, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.parametrize("routing", [False, True])
def test_weights_reach_the_learner(estimator: Any, routing: bool) -> None:
    X, y, domain = curved()
    with sklearn.config_context(enable_metadata_routing=routing):
        sharp = WeightedSourceRegressor(clone(estimator), sharpness=3.0).fit(X, y, domain)
        flat = WeightedSourceRegressor(clone(estimator), sharpness=0.0).fit(X, y, domain)
    assert np.abs(sharp.predict(X) - flat.predict(X)).max() > 1e-3


def test_learners_without_weights_are_named() -> None:
    for estimator in (
        KNeighborsRegressor(),
        make_pipeline(StandardScaler(), KNeighborsRegressor()),
    ):
        with pytest.raises(ArgumentError, match=r"KNeighborsRegressor.*sample_weight"):
            WeightedSourceRegressor(estimator).fit(*curved())
        assert PooledRegressor(estimator).fit(*curved()).predict(curved()[0]).shape == (720,)


def test_weights_help_a_line_on_a_curve_and_are_chosen() -> None:
    X, y, domain = curved()
    new = X[domain == "target"]
    truth = new[:, 0] ** 2
    auto = WeightedSourceRegressor(LinearRegression()).fit(X, y, domain)
    assert auto.selection_.sharpness == 3.0
    assert auto.selection_.held_out == ("s0", "s1", "s2", "s3", "s4")
    assert np.shape(auto.selection_.errors) == (5, 3)
    assert max(auto.source_weights_, key=auto.source_weights_.__getitem__) == "s1"
    pooled = PooledRegressor(LinearRegression()).fit(X, y, domain)
    assert (
        np.abs(auto.predict(new) - truth).mean() < 0.5 * np.abs(pooled.predict(new) - truth).mean()
    )


def test_pooling_is_chosen_where_domains_carry_no_structure() -> None:
    rng = np.random.default_rng(3)
    parts = {}
    for name in "abcd":
        x = rng.normal(size=(40, 8))
        parts[name] = (x, x @ np.arange(8.0) + 3 * rng.normal(size=40))
    world = stack(parts, target=rng.normal(size=(40, 8)))
    model = WeightedSourceRegressor(LinearRegression()).fit(*world)
    assert model.selection_.sharpness == 0
    assert "no sharpness beats" in model.selection_.reason


def test_two_sources_leave_nothing_to_try() -> None:
    rng = np.random.default_rng(0)
    parts = {name: (rng.normal(size=(20, 2)), np.arange(20.0)) for name in "ab"}
    model = WeightedSourceRegressor("ridge").fit(*stack(parts, target=np.ones((5, 2))))
    assert model.selection_.sharpness == 0
    assert model.selection_.errors == ()


def test_one_source_is_a_plain_fit() -> None:
    X, y, domain = easy()
    rows = domain == "a"
    plain = WeightedSourceRegressor("ridge").fit(X[rows], y[rows])
    assert plain.source_weights_ == {0: 1.0}
    assert np.isnan(plain.divergences_[0])
    chosen = rows | (domain == "target")
    alone = WeightedSourceRegressor("ridge", sharpness=3.0).fit(
        X[chosen], y[chosen], domain[chosen]
    )
    assert alone.source_weights_ == {"a": 1.0}
    assert alone.divergences_["a"] > 0
    np.testing.assert_allclose(alone.predict(X), plain.predict(X))


def test_held_out_sources_at_once_give_the_same() -> None:
    X, y, domain = curved()
    one = WeightedSourceRegressor("ridge").fit(X, y, domain)
    with joblib.parallel_backend("threading"):
        two = WeightedSourceRegressor("ridge", n_jobs=2).fit(X, y, domain)
    assert one.selection_.errors == two.selection_.errors


def poisoned(world: World) -> World:
    X, y, domain = world
    return X, np.where(domain == "target", np.resize([1e300, -np.inf, np.nan], len(y)), y), domain


def test_responses_of_the_target_are_never_read() -> None:
    for model, world in (
        (WeightedSourceRegressor("ridge"), curved()),
        (WeightedSourceClassifier(), kinds()),
        (PooledRegressor("ridge"), curved()),
    ):
        X, _, _ = world
        clean = clone(model).fit(*world)
        dirty = clone(model).fit(*poisoned(world))
        np.testing.assert_array_equal(clean.predict(X), dirty.predict(X))
        assert clean.source_weights_ == dirty.source_weights_


def test_permuting_sources_permutes_everything() -> None:
    X, y, domain = curved()
    new = dict(zip(("s0", "s1", "s2", "s3", "s4"), ("s3", "s0", "s4", "s1", "s2"), strict=True))
    renamed = np.array([new.get(name, name) for name in domain])
    one = WeightedSourceRegressor(LinearRegression()).fit(X, y, domain)
    two = WeightedSourceRegressor(LinearRegression()).fit(X, y, renamed)
    for name, weight in one.source_weights_.items():
        assert two.source_weights_[new[str(name)]] == pytest.approx(weight)
    np.testing.assert_allclose(one.predict(X), two.predict(X))


@pytest.mark.parametrize("estimator", ["ridge", "boosting"])
def test_hard_data_stay_finite(estimator: str) -> None:
    X, y, domain = hard()
    model = WeightedSourceRegressor(estimator, random_state=0).fit(X, y, domain)
    assert np.isfinite(model.predict(X)).all()
    assert model.source_weights_["twice"] == pytest.approx(model.source_weights_["again"])


@pytest.mark.parametrize("estimator", ["ridge", "boosting"])
def test_sparse_rows(estimator: str) -> None:
    rng = np.random.default_rng(0)
    parts = {
        name: (scipy.sparse.random_array((40, 300), density=0.05, rng=rng), np.arange(40.0))
        for name in "abc"
    }
    X, y, domain = stack(parts, target=scipy.sparse.random_array((30, 300), density=0.1, rng=rng))
    model = WeightedSourceRegressor(estimator, sharpness=1.0, random_state=0).fit(X, y, domain)
    assert model.predict(X).shape == (150,)
    again = clone(model).fit(X, y, domain)
    np.testing.assert_array_equal(model.predict(X), again.predict(X))


def test_dense_columns_are_scaled_and_sparse_ones_kept() -> None:
    X = np.random.default_rng(0).normal(3.0, [1.0, 100.0], size=(50, 2))
    np.testing.assert_allclose(DenseScaler().fit_transform(X).std(0), 1)
    sparse = scipy.sparse.csr_array(X)
    assert DenseScaler().fit_transform(sparse) is sparse
    np.testing.assert_array_equal(
        DenseScaler().fit(X).transform(sparse), DenseScaler().fit_transform(X)
    )


def test_the_network_is_the_default_and_takes_weights() -> None:
    X, y, domain = curved(n=40)
    assert isinstance(WeightedSourceRegressor()._learner(), SourceOnlyRegressor)
    network = SourceOnlyRegressor(epochs=2, members=1, hidden=(8,), random_state=0)
    sharp, flat = (
        WeightedSourceRegressor(network, sharpness=a).fit(X, y, domain) for a in (3.0, 0.0)
    )
    assert np.abs(sharp.predict(X) - flat.predict(X)).max() > 1e-3


def test_several_responses() -> None:
    X, y, domain = curved()
    both = np.column_stack((y, -y))
    model = WeightedSourceRegressor("ridge").fit(X, both, domain)
    assert model.predict(X).shape == both.shape
    assert (
        model.selection_.sharpness
        == WeightedSourceRegressor("ridge").fit(X, y, domain).selection_.sharpness
    )


def test_classifier_takes_the_kind_of_the_target() -> None:
    X, y, domain = kinds()
    new = X[domain == "target"]
    truth = new[:, 0] > 0
    for scoring in ("log_loss", "auc"):
        model = WeightedSourceClassifier(scoring=scoring).fit(X, y, domain)
        assert model.selection_.sharpness == 3.0
        assert model.score(new, truth) > 0.9
        assert model.source_weights_["a1"] + model.source_weights_["a2"] > 0.9
    assert WeightedSourceClassifier(sharpness=0).fit(X, y, domain).score(new, truth) < 0.8


def test_classifier_with_names_and_missing_classes() -> None:
    X, y, domain = kinds()
    labels: NDArray[Any] = np.where(y == 1, "yes", "no").astype(object)
    labels[domain == "target"] = None
    labels[domain == "a2"] = "never seen elsewhere"
    model = WeightedSourceClassifier().fit(X, labels, domain)
    assert list(model.classes_) == ["never seen elsewhere", "no", "yes"]
    assert model.predict_proba(X).shape == (750, 3)
    assert set(model.predict(X)) <= set(model.classes_)


def test_held_out_sources_that_cannot_be_scored_are_left_out() -> None:
    X, y, domain = kinds()
    y = np.where(domain == "b2", 1.0, y)
    model = WeightedSourceClassifier(scoring="auc").fit(X, y, domain)
    assert model.selection_.held_out == ("a1", "a2", "b1")
    only = np.where(domain == "a1", y, 1.0)
    model = WeightedSourceClassifier().fit(X, only, domain)
    assert "a1" not in model.selection_.held_out


def test_bad_calls_are_named() -> None:
    X, y, domain = kinds()
    with pytest.raises(ArgumentError, match="has no predict_proba"):
        WeightedSourceClassifier(LinearSVC()).fit(X, y, domain)
    assert not hasattr(WeightedSourceClassifier(LinearSVC()), "predict_proba")
    assert (
        WeightedSourceClassifier(LinearSVC(), sharpness=1.0).fit(X, y, domain).score(X, y > 0) > 0
    )
    with pytest.raises(ArgumentError, match="scoring: 'auc' is for two"):
        WeightedSourceClassifier(scoring="auc").fit(X, np.arange(len(y)) % 3, domain)
    with pytest.raises(ArgumentError, match="scoring: expected"):
        WeightedSourceClassifier(scoring="f1").fit(X, y, domain)
    with pytest.raises(DomainError, match="no target among"):
        WeightedSourceRegressor("ridge").fit(X, X[:, 0], np.arange(len(y)) % 3)
    with pytest.raises(ArgumentError, match=r"estimator: .*got 'forest'"):
        PooledRegressor("forest").fit(X, X[:, 0])
    with pytest.raises(ArgumentError, match="estimator: expected"):
        PooledRegressor(Ridge).fit(X, X[:, 0])
    with pytest.raises(ArgumentError, match="divergence: 'conditional"):
        WeightedSourceRegressor("ridge", divergence="conditional_log_det").fit(X, y, domain)
    with pytest.raises(ArgumentError, match="sharpness"):
        WeightedSourceRegressor("ridge", sharpness="high").fit(*curved())
    with pytest.raises(ArgumentError, match="sample_weight"):
        WeightedSourceRegressor("ridge").fit(*curved(), sample_weight=-np.ones(720))


@sklearn.config_context(enable_metadata_routing=True)
def test_domains_are_routed() -> None:
    X, y, domain = curved()
    rng = np.random.default_rng(0)
    truth = np.where(domain == "target", X[:, 0] ** 2, y)
    order = rng.permutation(len(y))
    model = WeightedSourceRegressor("ridge", sharpness=1.0).set_fit_request(sample_domain=True)
    scores = cross_val_score(
        model, X[order], truth[order], cv=3, params={"sample_domain": domain[order]}
    )
    assert scores.shape == (3,)
    search = GridSearchCV(model, {"sharpness": [0.0, 3.0]}, cv=3)
    search.fit(X[order], truth[order], sample_domain=domain[order])
    assert search.best_estimator_.source_weights_.keys() == {"s0", "s1", "s2", "s3", "s4"}
