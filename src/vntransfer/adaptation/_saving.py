"""What is saved of fitted networks, and of every estimator."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from vntransfer.adaptation._data import Scaler
from vntransfer.adaptation._ensemble import Ensemble, State
from vntransfer.adaptation._member_training import build
from vntransfer.adaptation._selection import Selection
from vntransfer.errors import ArgumentError, DataError, DomainError
from vntransfer.storage.folder import Savable
from vntransfer.storage.record import Name, SavedModel, check_record, check_shares

GIVEN = ("extractor", "head")
"""Options that are code: a model that has them is loaded with them."""

SCALER = ("mean", "scale", "low", "high")

COMMON = {
    "options": dict[str, Any],
    "n_features": int,
    "feature_names": list[str] | None,
    "source_weights": dict[Name, float | dict[Name, float]],
}
CHOICE = {"candidates": list[str], "shares": dict[str, float], "reason": str}
NETWORK = {
    **COMMON,
    "given": list[str],
    "one_column": bool,
    "targets": list[Name],
    "history": list[dict[str, Any]],
    "labels": list[str],
}
"""Types of what is saved."""


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


def restore_common(model: Any, record: Mapping[str, Any]) -> None:
    """Bring what `common_record` gave, apart from options, to an estimator."""
    n, names = record["n_features"], record["feature_names"]
    if n < 1 or (names is not None and len(names) != n):
        raise DataError(f"record.n_features: {n} does not fit feature_names {names!r:.60}")
    model.n_features_in_ = n
    if names is not None:
        model.feature_names_in_ = np.array(record["feature_names"], dtype=object)
    model.source_weights_ = record["source_weights"]


class SavableNetwork(Savable):
    """A network of the common training loop; rows of its sources are not saved."""

    _state: State

    def _saved(self) -> SavedModel:
        record = common_record(self, ("checkpoint", *GIVEN))
        record["options"]["device"] = str(record["options"]["device"])
        state, ensemble = self._state, self._state.ensemble
        targets = list(ensemble.shares)
        tensors = {f"net/{name}": value for name, value in ensemble.net.state_dict().items()}
        tensors |= {f"shares/{i}": ensemble.shares[name] for i, name in enumerate(targets)}
        tensors["offset"] = ensemble.offset
        if state.limits is not None:
            tensors["low"], tensors["high"] = state.limits
        arrays = {k: v.detach().cpu().contiguous().numpy() for k, v in tensors.items()}
        for name, scaler in (("x", state.x_scaler), ("y", state.y_scaler)):
            own = {f"{name}/{part}": getattr(scaler, part) for part in SCALER}
            arrays |= {part: value for part, value in own.items() if value is not None}
        record |= {
            "given": [name for name in GIVEN if getattr(self, name) is not None],
            "one_column": state.one_column,
            "targets": targets,
            "history": ensemble.history,
            "selection": None if state.selection is None else vars(state.selection),
            "labels": ensemble.labels,
        }
        return SavedModel(type(self).__name__, record, arrays)

    @classmethod
    def _restored(
        cls, saved: SavedModel, parts: Mapping[str, Any], given: Mapping[str, Any]
    ) -> Self:
        record = saved.record
        check_record("record", record, NETWORK)
        if sorted(set(given) - {"device"}) != sorted(record["given"]):
            raise ArgumentError(
                f"load: the model was fitted with modules of your own for {record['given']}, which "
                f"are not saved; give the same ones again, and nothing else (got {sorted(given)})"
            )
        with bad_options(given):
            model: Any = cls(**{**_tuples(record["options"]), **given})
            model._check_options()
        _check_arrays(model, saved)
        tensors = {name: torch.from_numpy(value) for name, value in saved.arrays.items()}
        offset = tensors["offset"]
        # modules may draw initial parameters
        with bad_options(given), torch.random.fork_rng(devices=[]):
            net = build(
                model, record["n_features"], offset.shape[-1], len(offset), torch.Generator()
            )
        own = {k.removeprefix("net/"): v for k, v in tensors.items() if k.startswith("net/")}
        net.load_state_dict(own)
        ensemble = Ensemble(
            net.to(model.device).eval(),
            offset,
            {name: tensors[f"shares/{i}"] for i, name in enumerate(record["targets"])},
            record["source_weights"],
            record["history"],
            tuple(record["labels"]),
        )
        x_scaler, y_scaler = (
            Scaler(**{part: saved.arrays.get(f"{name}/{part}") for part in SCALER})  # type: ignore[arg-type]
            for name in "xy"
        )
        limits = (tensors["low"], tensors["high"]) if "low" in tensors else None
        chosen = record["selection"]
        selection = None if chosen is None else Selection(**_tuples(checked_choice(chosen)))
        restore_common(model, record)
        one = record["one_column"]
        model._publish(State(x_scaler, y_scaler, limits, one, ensemble, selection, None))
        for target in ensemble.shares:  # sizes fit together if a row of means is predicted
            if not np.isfinite(model.predict(x_scaler.mean[None], target)).all():
                raise DataError(f"arrays: predictions for target {target!r} are not finite")
        return model


def _check_arrays(model: Any, saved: SavedModel) -> None:
    """Raise unless a network of our own has the sizes of the arrays: before memory is asked for."""
    known = {size for value in saved.arrays.values() for size in value.shape}
    sizes = [saved.record["n_features"]]
    if model.extractor is None:
        sizes += [*np.atleast_1d(model.hidden).tolist(), model.width]
    if absent := [size for size in sizes if size not in known]:
        raise DataError(
            f"record: n_features, hidden, width: no array has the size {absent[0]!r:.60}"
        )
    targets = saved.record["targets"]
    if not targets or len(set(targets)) < len(targets):
        raise DataError(f"record.targets: expected different names, got {targets!r:.60}")


def checked_choice(chosen: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give a selection whose values are what they should be."""
    check_record("record.selection", chosen, CHOICE)
    check_shares("record.selection.shares", chosen["shares"])
    if sorted(chosen["shares"]) != sorted(chosen["candidates"]):
        raise DataError("record.selection: candidates and shares do not have the same names")
    return chosen


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
