"""Models saved as folders, and training that resumes where it stopped."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from helpers.saved import contents, edit
from helpers.worlds import easy
from vntransfer import load
from vntransfer.adaptation import METHODS, DeepCORALRegressor, SourceOnlyRegressor
from vntransfer.errors import ArgumentError, DataError

NEURAL = [name for name, entry in METHODS.items() if entry.neural]
SHORT: dict[str, Any] = {"epochs": 2, "steps": 8, "batch_size": 16, "random_state": 0}


@pytest.mark.parametrize("method", NEURAL)
def test_saved_models_predict_the_same(method: str, tmp_path: Path) -> None:
    X, y, domain = easy()
    model = METHODS[method].make(**SHORT).fit(X, y, domain)
    model.save(tmp_path)
    again = load(tmp_path)
    assert type(again) is type(model)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.source_weights_ == model.source_weights_
    assert again.history_ == model.history_
    assert again.get_params() == model.get_params()
    assert getattr(again, "selection_", None) == getattr(model, "selection_", None)
    files = contents(tmp_path)
    assert len(files) == 2  # a record and arrays
    again.save(tmp_path)
    assert contents(tmp_path) == files


def test_scales_of_inputs_come_back(tmp_path: Path) -> None:
    X, y, domain = easy()
    model = SourceOnlyRegressor(input_scales=True, **SHORT).fit(X, y, domain)
    plain = SourceOnlyRegressor(**SHORT).fit(X, y, domain)
    assert not np.array_equal(model.predict(X), plain.predict(X))
    model.save(tmp_path)
    np.testing.assert_array_equal(load(tmp_path).predict(X), model.predict(X))


def test_integer_names_and_several_targets_come_back(tmp_path: Path) -> None:
    X, y, domain = easy()
    ids = np.select([domain == "a", domain == "b", domain == "c"], [0, 4, -2], -1)
    model = DeepCORALRegressor(**SHORT).fit(X, y, ids)
    model.save(tmp_path)
    again = load(tmp_path)
    assert again.source_weights_ == model.source_weights_
    np.testing.assert_array_equal(again.predict(X, target=-2), model.predict(X, target=-2))


def test_own_modules_are_given_again(tmp_path: Path) -> None:
    X, y, domain = easy()
    own = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU())
    model = SourceOnlyRegressor(extractor=own, members=2, **SHORT).fit(X, y, domain)
    model.save(tmp_path)
    np.testing.assert_array_equal(load(tmp_path, extractor=own).predict(X), model.predict(X))
    with pytest.raises(ArgumentError, match="your own modules"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "os.system"}, "kind: 'os.system' is not a model"),
        ({"kind": "PooledRegressor"}, r"model\.json"),
        ({"record": {}}, r"model\.json"),
        ({"arrays": None}, r"model\.json"),
    ],
)
def test_forged_records_are_refused(change: Any, message: str, tmp_path: Path) -> None:
    X, y, domain = easy()
    SourceOnlyRegressor(**SHORT).fit(X, y, domain).save(tmp_path)
    edit(tmp_path, lambda content: content.update(change))
    with pytest.raises(DataError, match=message):
        load(tmp_path)


@pytest.mark.parametrize(
    "change", [{"n_features": 9}, {"options": {"hidden": [3]}}, {"history": 1}, {"targets": 7}]
)
def test_values_that_do_not_fit_are_refused(change: dict[str, Any], tmp_path: Path) -> None:
    X, y, domain = easy()
    SourceOnlyRegressor(**SHORT).fit(X, y, domain).save(tmp_path)
    edit(tmp_path, lambda content: content["record"].update(change))
    with pytest.raises(DataError, match=r"model\.json"):
        load(tmp_path)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


class Stopped(Exception):  # noqa: N818
    """The fit is interrupted here."""


@pytest.mark.parametrize("method", NEURAL)
def test_training_goes_on_bit_for_bit(method: str, tmp_path: Path) -> None:
    X, y, domain = easy()
    options: dict[str, Any] = {**SHORT, "epochs": 5, "members": 2}
    if METHODS[method].estimator is not SourceOnlyRegressor:
        options["trade_off"] = 0.1
    if method == "ahd_msda":
        options["weight_update"] = "adam"  # whose moments are kept, too
    whole = METHODS[method].make(**options).fit(X, y, domain)

    def stop(what: str, done: int, total: int | None) -> None:
        if done == 3:
            raise Stopped

    options["checkpoint"] = tmp_path
    with pytest.raises(Stopped):
        METHODS[method].make(**options).fit(X, y, domain, progress=stop)
    seen: list[Any] = []
    again = METHODS[method].make(**options)
    again.fit(X, y, domain, progress=lambda *told: seen.append(told))
    assert len(seen) == len(again.history_) - 3
    for one, two in zip(whole.net_.parameters(), again.net_.parameters(), strict=True):
        assert torch.equal(one, two)
    assert whole.history_ == again.history_
    assert whole.source_weights_ == again.source_weights_


def test_selection_goes_on_too(tmp_path: Path) -> None:
    X, y, domain = easy()
    whole = METHODS["align"].make(**SHORT).fit(X, y, domain)

    def stop(what: str, done: int, total: int | None) -> None:
        if len(list(tmp_path.iterdir())) == 2:
            raise Stopped

    with pytest.raises(Stopped):
        METHODS["align"].make(**SHORT, checkpoint=tmp_path).fit(X, y, domain, progress=stop)
    again = METHODS["align"].make(**SHORT, checkpoint=tmp_path).fit(X, y, domain)
    assert again.selection_ == whole.selection_
    np.testing.assert_array_equal(again.predict(X), whole.predict(X))


def test_another_fit_begins_files_of_its_own(tmp_path: Path) -> None:
    X, y, domain = easy()
    weights = np.linspace(0.1, 1, len(y))
    fits: list[tuple[dict[str, Any], Any]] = [
        ({}, {}),
        ({"lr": 0.1}, {}),
        ({"random_state": 1}, {}),
        ({}, {"sample_weight": weights}),
        ({"extractor": nn.Linear(4, 5)}, {}),
    ]
    own = nn.Sequential(nn.Linear(4, 5), nn.ReLU())  # and others of the very same parameters
    frozen = copy.deepcopy(own).requires_grad_(False)
    other = nn.Sequential(own[0], nn.Tanh())
    fits += [({"extractor": net}, {}) for net in (own, other, frozen)]
    fits.append(({"extractor": lambda p: nn.Sequential(copy.deepcopy(own[0]), nn.ELU())}, {}))
    for number, (options, given) in enumerate(fits, start=1):
        plain = SourceOnlyRegressor(**{**SHORT, **options}).fit(X, y, domain, **given)
        kept = SourceOnlyRegressor(**{**SHORT, **options}, checkpoint=tmp_path)
        np.testing.assert_array_equal(kept.fit(X, y, domain, **given).predict(X), plain.predict(X))
        assert len(list(tmp_path.iterdir())) == number
    for path in tmp_path.iterdir():
        cut(path)
    with pytest.raises(DataError, match="is damaged"):
        SourceOnlyRegressor(**SHORT, checkpoint=tmp_path).fit(X, y, domain)


@pytest.mark.parametrize(("method", "options"), [("ridge", {}), ("source_only", SHORT)])
def test_a_save_that_fails_leaves_what_was_there(
    method: str, options: dict[str, Any], tmp_path: Path
) -> None:
    X, y, domain = easy()
    model = METHODS[method].make(**options).fit(X, y, domain)
    model.save(tmp_path)
    other = SourceOnlyRegressor(**SHORT).fit(X, -y, domain)
    with pytest.raises(TypeError, match="not JSON serializable"):
        other.set_params(activation=object()).save(tmp_path)
    np.testing.assert_array_equal(load(tmp_path).predict(X), model.predict(X))


def test_options_that_were_removed_are_ignored_in_a_saved_model(tmp_path: Path) -> None:
    X, y, domain = easy()
    model = SourceOnlyRegressor(**SHORT).fit(X, y, domain)
    model.save(tmp_path)
    old = {"patience": None, "validation_fraction": 0.1, "warm_start": False}
    edit(tmp_path, lambda content: content["record"]["options"].update(old))
    np.testing.assert_array_equal(load(tmp_path).predict(X), model.predict(X))


def test_sizes_in_an_array_come_back(tmp_path: Path) -> None:
    X, y, domain = easy()
    model = SourceOnlyRegressor(**SHORT, hidden=np.array([8, 6])).fit(X, y, domain)
    model.save(tmp_path)
    again = load(tmp_path)
    assert again.hidden == (8, 6)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_a_folder_holds_the_model_that_was_saved_last(tmp_path: Path) -> None:
    X, y, domain = easy()
    for method, options in (("ridge", {}), ("source_only", SHORT), ("ridge", {})):
        model = METHODS[method].make(**options).fit(X, y, domain)
        model.save(tmp_path)
        assert type(load(tmp_path)) is type(model)
        assert len(list(tmp_path.iterdir())) == 2
