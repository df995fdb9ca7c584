"""Fitted models as folders: `model.safetensors` for numbers, `model.json` for everything else."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load as read_tensors
from safetensors.torch import save as write_tensors
from sklearn.utils.validation import check_is_fitted

from vntransfer._version import __version__
from vntransfer.adaptation._base import DomainRegressor
from vntransfer.adaptation._ensemble import Ensemble
from vntransfer.adaptation._fitted_state import State
from vntransfer.adaptation._member_training import build
from vntransfer.adaptation._scaling import Scaler
from vntransfer.adaptation._selection import Selection
from vntransfer.adaptation.sklearn_storage import MODEL, NUMBERS
from vntransfer.errors import ArgumentError, DataError
from vntransfer.storage.files import atomic_write

FORMAT = 1
"""Version of the layout of a folder."""

TEXT = "model.json"

GIVEN = ("extractor", "head")
"""Options that are code: a model that has them is loaded with them."""

SCALER = ("mean", "scale", "low", "high")

LEFT_OUT = ("callback", "checkpoint", *GIVEN)

ADVERSARIAL = (
    "weight_update",
    "predictor_sees_discrepancy",
    "absolute",
    "adversary_steps",
    "anchor",
)
"""Options that `MDDRegressor` has and `MomentAlignmentRegressor` has not."""


def save_network(model: DomainRegressor, folder: str | Path) -> None:
    """Write a fitted model into a folder; nothing of it is code."""
    check_is_fitted(model)
    state, ensemble = model._state, model._state.ensemble
    tensors = {f"net/{name}": value for name, value in ensemble.net.state_dict().items()}
    targets = list(ensemble.shares)
    tensors |= {f"shares/{i}": ensemble.shares[name] for i, name in enumerate(targets)}
    tensors["offset"] = ensemble.offset
    if state.limits is not None:
        tensors["low"], tensors["high"] = state.limits
    for name, scaler in (("x", state.x_scaler), ("y", state.y_scaler)):
        parts = {part: getattr(scaler, part) for part in SCALER}
        tensors |= {f"{name}/{k}": torch.from_numpy(v) for k, v in parts.items() if v is not None}
    numbers = write_tensors({k: v.detach().cpu().contiguous() for k, v in tensors.items()})
    options = {k: v for k, v in model.get_params(deep=False).items() if k not in LEFT_OUT}
    if not isinstance(options["random_state"], int | np.integer | None):
        options["random_state"] = None
    options["device"] = str(options["device"])
    names = getattr(model, "feature_names_in_", None)
    text = {
        "format": FORMAT,
        "vntransfer": __version__,
        "torch": torch.__version__,
        "estimator": type(model).__name__,
        "options": options,
        "given": [name for name in GIVEN if getattr(model, name) is not None],
        "one_column": state.one_column,
        "n_features": model.n_features_in_,
        "feature_names": None if names is None else names.tolist(),
        "targets": targets,
        "source_weights": ensemble.source_weights,
        "history": ensemble.history,
        "selection": None if state.selection is None else vars(state.selection),
        "labels": ensemble.labels,
        "sha256": hashlib.sha256(numbers).hexdigest(),
    }
    written = json.dumps(pack(text), indent=1)
    # what was here stays until both files are whole
    with atomic_write(Path(folder, NUMBERS)) as one, atomic_write(Path(folder, TEXT), "w") as two:
        one.write(numbers)
        two.write(written)
    Path(folder, MODEL).unlink(missing_ok=True)  # of another model that was here


def load_network(
    folder: str | Path, kinds: dict[str, type[DomainRegressor]], **given: Any
) -> DomainRegressor:
    """Read a folder; ``kinds`` are the estimators that it can hold."""
    text, tensors = read(folder)
    _rename(text)
    if text.get("estimator") not in kinds:
        raise DataError(
            f"{folder}: estimator {text.get('estimator')!r} is not known; expected one of "
            f"{sorted(kinds)}"
        )
    if sorted(set(given) - {"device"}) != sorted(text["given"]):
        raise ArgumentError(
            f"load: the model was fitted with modules of your own for {text['given']}, which are "
            f"not saved; give the same ones again, and nothing else (got {sorted(given)})"
        )
    options: dict[str, Any] = _tuples(text["options"])
    model = kinds[text["estimator"]](**{**options, **given})
    own = {k[4:]: v for k, v in tensors.items() if k.startswith("net/")}
    members, m = len(tensors["offset"]), tensors["offset"].shape[-1]
    with torch.random.fork_rng(devices=[]):  # modules may draw initial parameters
        net = build(model, text["n_features"], m, members, torch.Generator())
    net.load_state_dict(own)
    ensemble = Ensemble(
        net.to(model.device).eval(),
        tensors["offset"],
        {name: tensors[f"shares/{i}"] for i, name in enumerate(text["targets"])},
        text["source_weights"],
        text["history"],
        tuple(text["labels"]),
    )
    x_scaler, y_scaler = (
        Scaler(**{k: tensors[f"{name}/{k}"].numpy() for k in SCALER if f"{name}/{k}" in tensors})
        for name in "xy"
    )
    limits = (tensors["low"], tensors["high"]) if "low" in tensors else None
    chosen = text["selection"]
    selection = None if chosen is None else Selection(**_tuples(chosen))
    model.n_features_in_ = text["n_features"]
    if text["feature_names"] is not None:
        model.feature_names_in_ = np.array(text["feature_names"], dtype=object)
    one = text["one_column"]
    model._publish(State(x_scaler, y_scaler, limits, one, ensemble, selection, None))
    return model


def _rename(text: dict[str, Any]) -> None:
    """Bring what versions before 0.1 wrote to today's names: their one MDD was two methods."""
    if text.get("estimator") != "MatrixDiscrepancyRegressor":
        return
    options = dict(text["options"])
    paper = options.pop("adversary")
    text["estimator"] = "MDDRegressor" if paper else "MomentAlignmentRegressor"
    if options["weight_rate"] is None:
        options["weight_rate"] = 0.05 if paper else 0.04
    options["standardize"] = options.pop("standardise")
    gone = ("weight_pull", "standardize") if paper else ADVERSARIAL
    text["options"] = {name: value for name, value in options.items() if name not in gone}


def read(folder: str | Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Read both files, checking version and hash before anything is used."""
    try:
        text = unpack(json.loads(Path(folder, TEXT).read_text(encoding="utf-8")))
        numbers = Path(folder, NUMBERS).read_bytes()
    except FileNotFoundError as error:
        raise DataError(
            f"{folder}: {Path(error.filename).name} is missing; a model is a folder with {TEXT} "
            f"and {NUMBERS}"
        ) from None
    except ValueError as error:
        raise DataError(f"{Path(folder, TEXT)}: damaged ({error}); save the model again") from None
    if not isinstance(text, dict) or not isinstance(text.get("format"), int):
        raise DataError(f"{Path(folder, TEXT)}: not a saved model")
    if text["format"] > FORMAT:
        raise DataError(
            f"{folder}: format {text['format']} of vntransfer {text.get('vntransfer')}, this is "
            f"vntransfer {__version__} and knows up to {FORMAT}; update it"
        )
    if hashlib.sha256(numbers).hexdigest() != text.get("sha256"):
        raise DataError(f"{Path(folder, NUMBERS)}: does not match {TEXT}; save the model again")
    return text, read_tensors(numbers)


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    """Turn lists back into the tuples that they were."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}


PAIRS = "__pairs__"


def pack(value: Any) -> Any:
    """Make a value fit for JSON: arrays become lists, mappings whose keys are no texts pairs.

    Examples
    --------
    >>> pack({"a": {0: 1.0}, "b": np.arange(2)})
    {'a': {'__pairs__': [[0, 1.0]]}, 'b': [0, 1]}
    """
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value):
            return {key: pack(item) for key, item in value.items()}
        return {PAIRS: [[key, pack(item)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        return [pack(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def unpack(value: Any) -> Any:
    """Undo `pack`.

    Examples
    --------
    >>> unpack(pack({"a": {0: 1.0}}))
    {'a': {0: 1.0}}
    """
    if isinstance(value, dict):
        if set(value) == {PAIRS}:
            return {key: unpack(item) for key, item in value[PAIRS]}
        return {key: unpack(item) for key, item in value.items()}
    return [unpack(item) for item in value] if isinstance(value, list) else value
