"""Saved networks that predict with numpy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from vntransfer.adaptation._records import NETWORK, check_given
from vntransfer.adaptation._scaler import Scaler
from vntransfer.array_networks import FUNCTIONS, ArrayLayer, forward, mlp_layers
from vntransfer.checks import Floats, finite_predictions, one_of
from vntransfer.errors import ArgumentError, DataError
from vntransfer.storage.record import Name, SavedModel, check_record

Share = TypeVar("Share")

SCALER = ("mean", "scale", "low", "high")
"""Attributes of a scaler that are saved."""

CHUNK = 4096
"""Rows that are predicted at once."""


class NetworkValues(NamedTuple):
    """What turns outputs of networks into predictions: scales, limits, offsets and shares."""

    x_scaler: Scaler
    y_scaler: Scaler
    limits: tuple[NDArray[Any], NDArray[Any]] | None  # lowest and highest scaled response, (m,)
    shares: Mapping[Name, Floats]  # target -> shares (M,) of the members; None: any target
    offset: NDArray[Any]  # mean residuals (M, 1, m), added to scaled predictions
    one_column: bool  # whether responses are (n,)

    @classmethod
    def read(cls, saved: SavedModel, given: Mapping[str, Any]) -> Self:
        """Check the record of a model and read its arrays."""
        check_record("record", saved.record, NETWORK)
        check_given(saved.record, given)
        arrays, targets = saved.arrays, saved.record["targets"]
        if not targets or len(set(targets)) < len(targets):
            raise DataError(f"record.targets: expected different names, got {targets!r:.60}")
        x_scaler, y_scaler = (
            Scaler(**{part: arrays.get(f"{name}/{part}") for part in SCALER})  # type: ignore[arg-type]
            for name in "xy"
        )
        return cls(
            x_scaler,
            y_scaler,
            (arrays["low"], arrays["high"]) if "low" in arrays else None,
            {name: arrays[f"shares/{i}"] for i, name in enumerate(targets)},
            arrays["offset"],
            saved.record["one_column"],
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Give the arrays that `read` reads, by name."""
        found = {f"shares/{i}": own for i, own in enumerate(self.shares.values())}
        found["offset"] = self.offset
        if self.limits is not None:
            found["low"], found["high"] = self.limits
        for name, scaler in (("x", self.x_scaler), ("y", self.y_scaler)):
            own = {f"{name}/{part}": getattr(scaler, part) for part in SCALER}
            found |= {part: value for part, value in own.items() if value is not None}
        return found

    def check(self, model: Any) -> None:
        """Raise unless a model of these arrays predicts a row of means for every target."""
        for target in self.shares:
            if not np.isfinite(model.predict(self.x_scaler.mean[None], target)).all():
                raise DataError(f"arrays: predictions for target {target!r} are not finite")


def parameters_of(saved: SavedModel) -> dict[str, NDArray[Any]]:
    """Parameters of a saved network by name."""
    named = saved.arrays.items()
    return {name.removeprefix("net/"): own for name, own in named if name.startswith("net/")}


@dataclass(frozen=True, eq=False)
class NetworkPredictor:
    """What an ensemble of networks predicts; equivalent to ``predict`` of its estimator.

    With f_k the members, c_k their offsets, s_k the shares for a target and z the scaled inputs,
    ŷ = mean + scale Σ_k s_k clip(f_k(z) + c_k).
    """

    values: NetworkValues
    layers: Sequence[ArrayLayer]
    activation: str

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return len(self.values.x_scaler.mean)

    @classmethod
    def _restored(
        cls, saved: SavedModel, parts: Mapping[str, Any], given: Mapping[str, Any]
    ) -> Self:
        record, values = saved.record, NetworkValues.read(saved, given)
        activation = one_of(
            "record.options.activation", record["options"]["activation"], FUNCTIONS, error=DataError
        )
        model = cls(values, mlp_layers(parameters_of(saved)), activation)
        if (n := record["n_features"]) != model.n_features_in_:
            raise DataError(
                f"record.n_features: expected {model.n_features_in_} as the arrays have, got {n}"
            )
        values.check(model)
        return model

    def predict(self, X: Any, target: Name | Sequence[Name] = None) -> Floats:
        """Predict responses (n,) or (n, m) of rows (n, p), dense or sparse."""
        own = self.values
        shares = shares_for(own.shares, target)
        pieces = []
        for at in range(0, X.shape[0], CHUNK):
            z = own.x_scaler.transform(X[at : at + CHUNK])
            every = forward(self.layers, self.activation, z) + own.offset
            if own.limits is not None:
                every = np.clip(every, *own.limits)
            pieces.append(np.tensordot(shares, every.astype(np.float64), 1))
        found = np.concatenate(pieces) * own.y_scaler.scale + own.y_scaler.mean
        finite_predictions(found, "the model")
        return found[:, 0] if own.one_column else found


def shares_for(shares: Mapping[Name, Share], target: Name | Sequence[Name]) -> Share:
    """Shares of the members for the rows of a target, the only one if none is named."""
    known = [name for name in shares if name is not None]
    if not isinstance(target, str | int | np.integer | None):
        named = list(target)
        if len(named) != 1:
            raise ArgumentError(
                f"target: expected one of {known}, got {named!r:.80}; predict for one at a time"
            )
        target = named[0]
    if target is None and len(known) > 1:
        raise ArgumentError(f"target: name the target of these rows, one of {known}")
    if target is not None:
        one_of("target", target, known)
    return shares[known[0] if target is None and known else target]
