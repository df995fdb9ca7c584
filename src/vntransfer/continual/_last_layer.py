"""The last layer of a network, solved by ridge regression on the moments of all rows so far."""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from vntransfer.checks import number, one_of
from vntransfer.closed_form import choose_ridge, fit_ridge
from vntransfer.continual._base import predictions
from vntransfer.continual._layers import evaluated_inputs
from vntransfer.continual.method_state import Stateful
from vntransfer.continual.networks import last_layers
from vntransfer.continual.random_features import JoinedNet
from vntransfer.errors import ArgumentError
from vntransfer.moments import Moments

Precision = Literal["double", "single", "half"]

STORED = {"double": torch.float64, "single": torch.float32, "half": torch.float16}
"""Type of the moments that are kept between tasks."""

RIDGE = 0.03
"""λ by default."""

CHUNK = 1000
"""Rows whose moments are added at once; they wait within a task and are dropped at its end."""

LEAST_HALF = 0.01
"""Smallest λ for moments in half precision; a smaller one would amplify their rounding."""


class LastLayer(Stateful):
    """Moments of [z, Y], z the inputs of the last layer, and the solution computed from them.

    In a `JoinedNet` z has the random features as well. Between tasks the upper triangle of the
    scatter is kept: in "half" precision as correlations and scales, otherwise directly.
    """

    saved = ("count", "mean", "scatter", "scales", "numbers")
    fixed = ("ridge", "precision")

    def __init__(
        self, model: nn.Module, ridge: float | Literal["auto"], precision: Precision
    ) -> None:
        self.joined = model if isinstance(model, JoinedNet) else None
        self.network = model.network if isinstance(model, JoinedNet) else model
        self.heads = last_layers(self.network)
        self.precision: Precision = one_of("precision", precision, STORED)
        self.ridge = ridge if ridge == "auto" else number("ridge", ridge)
        if precision == "half" and (self.ridge == "auto" or float(self.ridge) < LEAST_HALF):
            raise ArgumentError(
                f"ridge: {ridge!r} is too small for precision='half'; use at least "
                f"{LEAST_HALF:g}, since less would amplify the rounding"
            )
        self.count: Tensor | None = None
        self.mean: Tensor | None = None
        self.scatter: Tensor | None = None  # between tasks the upper triangle, row by row
        self.scales: Tensor | None = None
        self.numbers: bool | None = None  # whether responses are numbers, not classes

    @property
    def outputs(self) -> int:
        """Number of responses m, of all heads together."""
        return sum(head.out_features for head in self.heads)

    def check(self, y: Tensor) -> None:
        """Raise if responses do not fit the outputs or the responses of earlier tasks."""
        if self.numbers not in (None, y.is_floating_point()):
            raise ArgumentError(
                f"y: {y.dtype}, but earlier tasks had {'numbers' if self.numbers else 'classes'}; "
                f"use a separate method for each"
            )
        self._responses(y)
        self.numbers = y.is_floating_point()

    def _responses(self, y: Tensor) -> Tensor:
        """Responses (N, m): numbers, or indicators of classes."""
        if y.is_floating_point():
            return predictions(y.reshape(len(y), -1), y.new_empty(len(y), self.outputs))
        if y.dim() != 1 or not 0 <= int(y.min()) <= int(y.max()) < self.outputs:
            raise ArgumentError(
                f"y: classes from {int(y.min())} to {int(y.max())}, shape {tuple(y.shape)}, do not "
                f"fit outputs of shape {(len(y), self.outputs)}; give classes 0, 1, ... of shape "
                f"(N,) and an output for each, or floats for regression"
            )
        return functional.one_hot(y, self.outputs)

    def inputs(self, x: Tensor) -> Tensor:
        """Return z (N, q) for inputs x of the network."""
        (seen,), output = evaluated_inputs(self.network, self.heads[:1], x)
        if not seen or output.shape[1:] != (self.outputs,):
            raise ArgumentError(
                f"model: its last linear layer has {self.outputs} outputs, but the outputs of the "
                f"network have shape {tuple(output.shape)}; end the network with that layer"
            )
        return seen[0] if self.joined is None else torch.cat((seen[0], self.joined.random(x)), 1)

    @torch.no_grad()
    def add(self, x: Tensor, y: Tensor) -> None:
        """Add the moments of rows."""
        own = Moments.from_samples(self.inputs(x).double(), self._responses(y).double())
        before = self.moments()
        kept = own if before is None else before.merge(own)
        self.count, self.mean, self.scatter = kept.count, kept.mean, kept.scatter

    def moments(self) -> Moments | None:
        """Moments of all rows so far."""
        if self.count is None or self.mean is None or self.scatter is None:
            return None
        scatter, size = self.scatter, len(self.mean)
        if scatter.dim() == 1:
            full = self.mean.new_zeros(size, size)
            full[torch.ones_like(full, dtype=torch.bool).triu()] = scatter.to(full)
            scatter = full + full.triu(1).mT
            if self.scales is not None:
                scatter *= self.scales.outer(self.scales)
        return Moments(self.count, self.count, self.mean, scatter)

    def pack(self) -> None:
        """Keep only the upper triangle, in the requested precision."""
        if self.mean is None or self.scatter is None or self.scatter.dim() == 1:
            return
        scatter = self.scatter
        if self.precision == "half":
            scales = scatter.diagonal().clamp_min(0).sqrt()
            self.scales = torch.where(scales > 0, scales, 1.0)
            scatter = scatter / self.scales.outer(self.scales)
        upper = torch.ones_like(scatter, dtype=torch.bool).triu()
        self.scatter = scatter[upper].to(STORED[self.precision])

    @torch.no_grad()
    def solve(self) -> None:
        """Write the solution into the network."""
        moments = self.moments()
        if moments is None:
            raise ArgumentError("after_task: the task had no rows; call observe or step with some")
        m, q = self.outputs, self.heads[0].in_features
        ridge = choose_ridge([moments], m, [1.0]) if self.ridge == "auto" else float(self.ridge)
        fit = fit_ridge(moments, m, ridge)
        start = 0
        for head in self.heads:
            own = slice(start, start + head.out_features)
            start = own.stop
            # frozen heads, and heads none of whose classes has occurred, are not changed
            if not (self.numbers or bool((moments.mean[-m:][own] > 0).any())):
                continue
            if head.weight.requires_grad:
                head.weight.copy_(fit.coefficients[:q, own].T)
            if head.bias is not None and head.bias.requires_grad:
                head.bias.copy_(fit.intercept[own])
            if self.joined is not None:
                self.joined.extra[own] = fit.coefficients[q:, own].T.to(self.joined.extra)
        if self.joined is not None:
            self.joined.joined.fill_(True)
