"""What is saved of fitted networks, and of every estimator."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from vntransfer.adaptation._data import Scaler
from vntransfer.adaptation._ensemble import Ensemble, State
from vntransfer.adaptation._member_training import build
from vntransfer.adaptation._selection import Selection
from vntransfer.errors import ArgumentError
from vntransfer.storage.folder import Savable
from vntransfer.storage.record import SavedModel

GIVEN = ("extractor", "head")
"""Options that are code: a model that has them is loaded with them."""

SCALER = ("mean", "scale", "low", "high")


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
    model.n_features_in_ = int(record["n_features"])
    if record["feature_names"] is not None:
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
        if sorted(set(given) - {"device"}) != sorted(record["given"]):
            raise ArgumentError(
                f"load: the model was fitted with modules of your own for {record['given']}, which "
                f"are not saved; give the same ones again, and nothing else (got {sorted(given)})"
            )
        model: Any = cls(**{**_tuples(record["options"]), **given})
        tensors = {name: torch.from_numpy(value) for name, value in saved.arrays.items()}
        offset = tensors["offset"]
        with torch.random.fork_rng(devices=[]):  # modules may draw initial parameters
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
        selection = None if chosen is None else Selection(**_tuples(chosen))
        restore_common(model, record)
        one = record["one_column"]
        model._publish(State(x_scaler, y_scaler, limits, one, ensemble, selection, None))
        return model


def _tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    """Turn lists back into the tuples that they were."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
