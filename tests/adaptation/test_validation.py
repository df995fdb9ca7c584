"""Leaving one source out, and label-free scorers."""

from typing import Any

import numpy as np
import pytest
import sklearn
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from helpers.worlds import easy
from vntransfer import (
    ArgumentError,
    DomainError,
    ImportanceWeightedScorer,
    LeaveOneSourceOut,
    NumericalWarning,
    SourceScorer,
    WeightedSourceRegressor,
)
from vntransfer.domains import group


def test_splits_leave_out_every_source_once() -> None:
    X, y, domain = easy()
    for keep in (False, True):
        tested = []
        for train, test in LeaveOneSourceOut(keep).split(X, y, domain):
            (name,) = set(domain[test])
            tested.append(name)
            assert set(domain[train]) == {"a", "b", "c", "target"} - {name} - (
                set() if keep else {"target"}
            )
            assert len(test) == (domain == name).sum()
        assert tested == ["a", "b", "c"]
        assert LeaveOneSourceOut(keep).get_n_splits(X, y, domain) == 3


def test_other_names_and_integers() -> None:
    numbers = np.array([4, 4, 0, -2, 0])
    splits = list(LeaveOneSourceOut().split(np.zeros((5, 1)), groups=numbers))
    assert [test.tolist() for _, test in splits] == [[2, 4], [0, 1]]
    names = ["x", "y", "z", "z"]
    splits = list(LeaveOneSourceOut(target="z").split(np.zeros((4, 1)), groups=names))
    assert [train.tolist() for train, _ in splits] == [[1], [0]]
    for groups, says in ((None, "needs the domain"), ([0, 0, 0, -1], "only one source")):
        with pytest.raises(DomainError, match=says):
            LeaveOneSourceOut().get_n_splits(groups=groups)


def test_cross_validation_of_any_estimator_without_routing() -> None:
    X, y, domain = easy()
    rows = domain != "target"
    scores = cross_val_score(Ridge(), X[rows], y[rows], groups=domain[rows], cv=LeaveOneSourceOut())
    for (train, test), score in zip(
        LeaveOneSourceOut().split(X[rows], y[rows], domain[rows]), scores, strict=True
    ):
        model = Ridge().fit(X[rows][train], y[rows][train])
        assert score == pytest.approx(model.score(X[rows][test], y[rows][test]))


@sklearn.config_context(enable_metadata_routing=True)
def test_domains_are_routed_to_splitter_estimator_and_scorer() -> None:
    X, y, domain = easy()
    model = WeightedSourceRegressor("ridge", sharpness=1.0).set_fit_request(sample_domain=True)
    cv = LeaveOneSourceOut(keep_target=True)
    scores = cross_val_score(
        model, X, y, cv=cv, scoring=SourceScorer(), params={"sample_domain": domain}
    )
    assert scores.shape == (3,)
    assert np.isfinite(scores).all()
    search = GridSearchCV(
        model, {"sharpness": [0.0, 3.0]}, cv=cv, scoring="neg_mean_absolute_error"
    )
    search.fit(X, y, sample_domain=domain)
    assert search.best_estimator_.source_weights_.keys() == {"a", "b", "c"}
    order = np.random.default_rng(0).permutation(len(y))
    scores = cross_val_score(
        model,
        X[order],
        y[order],
        cv=KFold(3),
        scoring=ImportanceWeightedScorer(least=0.0),
        params={"sample_domain": domain[order]},
    )
    assert np.isfinite(scores).all()


def shifted(n: int = 2000) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(0)
    x = np.concatenate((rng.normal(0, 1, size=(n, 2)), rng.normal(1, 1, size=(n, 2))))
    return x, x[:, 0] ** 2 + 0.1 * rng.normal(size=2 * n), np.repeat([0, -1], n)


def test_density_ratios_of_gaussians_are_found() -> None:
    """For N(1, 1) over N(0, 1) in two columns the ratio is exp(x1 + x2 - 1)."""
    x, _, domain = shifted()
    found = ImportanceWeightedScorer(clip=1e6).ratios(x, group(domain, len(x)))
    exact = np.exp(x[:2000].sum(1) - 1)
    assert np.corrcoef(np.log(found), np.log(exact))[0, 1] > 0.99
    assert np.median(np.abs(np.log(found / exact))) < 0.2
    assert ImportanceWeightedScorer(clip=2.0).ratios(x, group(domain, len(x))).max() == 2.0


def test_importance_weights_come_nearer_to_the_error_on_the_target() -> None:
    x, y, domain = shifted()
    model = LinearRegression().fit(x[:2000], y[:2000])
    truth = -np.abs(model.predict(x[2000:]) - y[2000:]).mean()
    hidden = np.where(domain < 0, np.nan, y)
    plain = SourceScorer()(model, x, hidden, domain)
    weighted = ImportanceWeightedScorer()(model, x, hidden, domain)
    assert abs(weighted - truth) < 0.6 * abs(plain - truth)  # clipping leaves some bias


def test_sources_that_do_not_cover_the_target_are_told() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate((rng.normal(0, 1, size=(500, 2)), rng.normal(2.8, 0.3, size=(500, 2))))
    domain = np.repeat([0, -1], 500)
    model = LinearRegression().fit(x, x[:, 0])
    with pytest.warns(NumericalWarning, match="hardly cover the target"):
        ImportanceWeightedScorer(clip=1e9)(model, x, x[:, 0], domain)
    with pytest.raises(DomainError, match="no target among"):
        ImportanceWeightedScorer()(model, x, x[:, 0], abs(domain))


def test_sources_count_the_same_whatever_their_size() -> None:
    x = np.zeros((11, 1))
    y = np.array([1.0] * 10 + [3.0])
    model = LinearRegression().fit(x, np.zeros(11))
    assert SourceScorer()(model, x, y, np.repeat([0, 1], (10, 1))) == pytest.approx(-2.0)
    classes = SourceScorer(loss="zero_one")(model, x, y, np.repeat([0, 1], (10, 1)))
    assert classes == -1.0
    with pytest.raises(ArgumentError, match="loss: expected one of"):
        SourceScorer(loss="squared")(model, x, y)
    with pytest.raises(ArgumentError, match="one error per row"):
        SourceScorer(loss=lambda a, b: np.zeros(()))(model, x, y)


def test_several_targets_are_no_sources() -> None:
    X, y, domain = easy()
    both = ["target", "c"]
    kept = LeaveOneSourceOut(keep_target=True, target=both)
    for train, test in kept.split(X, groups=domain):
        assert set(both) < set(domain[train])
        assert not set(both) & set(domain[test])
    assert kept.get_n_splits(groups=domain) == 2
    model = LinearRegression().fit(X[domain == "a"], y[domain == "a"])
    own = domain != "c"
    scorer = SourceScorer()
    assert scorer(model, X, y, domain, both) == scorer(model, X[own], y[own], domain[own])
    weighted = ImportanceWeightedScorer()
    assert weighted(model, X, y, domain, ["target"]) == weighted(model, X, y, domain, "target")
    with pytest.raises(DomainError, match="several targets"):
        weighted(model, X, y, domain, both)
