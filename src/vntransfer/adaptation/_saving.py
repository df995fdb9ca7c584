"""Saving and restoring fitted networks, and the common part of all estimators."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from vntransfer.adaptation._member_training import build
from vntransfer.adaptation._records import GIVEN, REMOVED, checked_choice
from vntransfer.adaptation._selection import Selection
from vntransfer.adaptation.network_predictor import NetworkValues, parameters_of
from vntransfer.errors import ArgumentError, DataError, DomainError
from vntransfer.networks import Net
from vntransfer.storage.folder import Savable
from vntransfer.storage.record import SavedModel


def common_record(model: Any, left_out: Sequence[str] = ()) -> dict[str, Any]:
    """Give options, columns and weights of the sources of a fitted estimator."""
    check_is_fitted(model)
    options = {k: v for k, v in model.get_params(deep=False).items() if k not in left_out}
    if not isinstance(options["random_state"], int | np.integer):
        options["random_state"] = None
    names = getattr(model, "feature_names_in_", None)
    return {
        "options": options,
        "n_features": model.n_features_in_,
        "feature_names": None if names is None else names.tolist(),
        "source_weights": model.source_weights_,
    }


def restored_common(
    kind: type[Any], record: Mapping[str, Any], given: Mapping[str, Any], **options: Any
) -> Any:
    """Make an estimator of what `common_record` gave; ``given`` are options of the caller."""
    with bad_options(given):
        known = {field.name for field in fields(kind)}
        kept = {k: v for k, v in record["options"].items() if k in known or k not in REMOVED}
        model = kind(**{**kept, **options, **given})
        model._check_options()
    n, names = record["n_features"], record["feature_names"]
    if n < 1 or (names is not None and len(names) != n):
        raise DataError(f"record.n_features: {n} does not fit feature_names {names!r:.60}")
    model.n_features_in_ = n
    if names is not None:
        model.feature_names_in_ = np.array(record["feature_names"], dtype=object)
    model.source_weights_ = record["source_weights"]
    return model


class SavableNetwork(Savable):
    """A network of the common training loop; rows of its sources are not saved."""

    _values: NetworkValues
    net_: Net
    history_: list[dict[str, Any]]

    def _saved(self) -> SavedModel:
        record = common_record(self, ("checkpoint", *GIVEN))
        record["options"]["device"] = str(record["options"]["device"])
        selection = getattr(self, "selection_", None)
        record |= {
            "given": [name for name in GIVEN if getattr(self, name) is not None],
            "one_column": self._values.one_column,
            "targets": list(self._values.shares),
            "history": self.history_,
            "selection": None if selection is None else vars(selection),
        }
        parameters = self.net_.state_dict().items()
        arrays = {f"net/{name}": value.numpy(force=True) for name, value in parameters}
        return SavedModel(type(self).__name__, record, arrays | self._values.arrays())

    @classmethod
    def _restored(
        cls, saved: SavedModel, parts: Mapping[str, Any], given: Mapping[str, Any]
    ) -> Self:
        record, values = saved.record, NetworkValues.read(saved, given)
        model = restored_common(cls, {**record, "options": _tuples(record["options"])}, given)
        _check_arrays(model, saved)
        members, _, responses = values.offset.shape
        # modules may draw initial parameters
        with bad_options(given), torch.random.fork_rng(devices=[]):
            net = build(model, record["n_features"], responses, members, torch.Generator())
        parameters = parameters_of(saved).items()
        net.load_state_dict({name: torch.from_numpy(own) for name, own in parameters})
        model.net_, model.history_ = net.to(model.device).eval(), record["history"]
        if (chosen := record["selection"]) is not None:
            model.selection_ = Selection(**_tuples(checked_choice(chosen)))
        model._values = values
        values.check(model)
        return model


def _check_arrays(model: Any, saved: SavedModel) -> None:
    """Raise unless our own network has the sizes of the arrays, before memory is allocated."""
    known = {size for value in saved.arrays.values() for size in value.shape}
    sizes = [saved.record["n_features"]]
    if model.extractor is None:
        sizes += [*np.atleast_1d(model.hidden).tolist(), model.width]
    if absent := [size for size in sizes if size not in known]:
        raise DataError(
            f"record: n_features, hidden, width: no array has the size {absent[0]!r:.60}"
        )


@contextmanager
def bad_options(given: Mapping[str, Any]) -> Iterator[None]:
    """Take a wrong option for damage of the record, unless options were given by the caller."""
    try:
        yield
    except (ArgumentError, DomainError) as error:
        if given:
            raise
        raise DataError(f"record.options: {error}") from error


def _tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    """Turn lists back into the tuples that they were."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
