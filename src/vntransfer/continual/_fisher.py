"""Diagonal Fisher information by per-sample gradients."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from vntransfer.checks import one_of
from vntransfer.continual._base import Criterion, default_loss, predictions, refuse_infinite
from vntransfer.errors import ArgumentError

Fisher = Literal["observed", "sampled", "squared_mean"]

CHUNK = 64
"""Largest number of samples whose gradients are held at once, each as large as the network."""

NUMBERS = 2**23
"""Largest number of entries of these gradients (32 MB in single precision)."""


@contextmanager
def evaluation(model: nn.Module) -> Iterator[None]:
    """Switch off dropout and batch statistics inside the block."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def diagonal_fisher(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    kind: Fisher = "observed",
    criterion: Criterion | None = None,
    generator: torch.Generator | None = None,
    names: Sequence[str] | None = None,
) -> list[Tensor]:
    """Diagonal of the Fisher information of each parameter that requires a gradient.

    The mean over samples of (∂ log p(y|x) / ∂θ)², where y is

    - "observed": the given label (the empirical Fisher information);
    - "sampled": drawn from the network's own prediction, one draw per sample;

    or, "squared_mean", the square of the mean gradient with the given labels: the rule of public
    EWC code, which does not estimate the Fisher information.

    Parameters
    ----------
    model
        Network; it is evaluated without dropout. If `torch.func.vmap` cannot run it (recurrent
        layers, branches on values), samples are processed one by one.
    x, y
        Samples.
    kind
        Rule, see above.
    criterion
        Mean negative log-likelihood; `default_loss` if None.
    generator
        Random numbers for "sampled".
    names
        Names of the parameters, frozen or not; None: all that require a gradient.

    Examples
    --------
    >>> model = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.zeros_(model.weight)
    >>> x = torch.tensor([[1.0], [3.0]])
    >>> diagonal_fisher(model, x, torch.ones(2))       # mean of x²
    [tensor([[5.]])]
    """
    one_of("kind", kind, Fisher)
    if len(x) == 0:
        raise ArgumentError("x: no samples; the Fisher information is a mean over samples")
    nll = default_loss if criterion is None else criterion
    every = dict(model.named_parameters())
    if unknown := [name for name in names or () if name not in every]:
        raise ArgumentError(f"names: no parameter {unknown[0]!r}; expected some of {list(every)}")
    wanted = [n for n, p in every.items() if p.requires_grad] if names is None else names
    trained = {name: every[name].detach() for name in wanted}
    fixed = {name: p.detach() for name, p in every.items() if name not in trained}
    fixed |= dict(model.named_buffers())

    def loss(parameters: dict[str, Tensor], one: Tensor, label: Tensor) -> Tensor:
        output = functional_call(model, (parameters, fixed), (one.unsqueeze(0),))
        return nll(output, label.unsqueeze(0))

    if kind == "squared_mean":
        leaves = {name: p.requires_grad_() for name, p in trained.items()}
        with evaluation(model):
            output = functional_call(model, (leaves, fixed), (x,))
            mean = torch.autograd.grad(nll(output, y), list(leaves.values()), allow_unused=True)
        return [
            torch.zeros_like(p, requires_grad=False) if g is None else g.square()
            for p, g in zip(leaves.values(), mean, strict=True)
        ]
    chunk = max(1, min(CHUNK, NUMBERS // max(1, sum(p.numel() for p in trained.values()))))
    one_by_one = grad(loss)
    at_once = vmap(one_by_one, in_dims=(None, 0, 0))
    total = {name: torch.zeros_like(p) for name, p in trained.items()}
    with evaluation(model), torch.no_grad():
        for part, labels in zip(x.split(chunk), y.split(chunk), strict=True):
            if kind == "sampled":
                labels = sample_labels(model, part, labels, nll, generator)
            try:
                found = at_once(trained, part, labels)
            except RuntimeError:  # not a network for vmap
                ones = [one_by_one(trained, *pair) for pair in zip(part, labels, strict=True)]
                found = {name: torch.stack([own[name] for own in ones]) for name in trained}
            for name, g in found.items():
                # one pass over memory per sample: half the time of squares and their sum
                for one in g.unbind():
                    total[name].addcmul_(one, one)
    return [value / len(x) for value in total.values()]


@torch.no_grad()
def sample_labels(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    criterion: Criterion,
    generator: torch.Generator | None,
) -> Tensor:
    """Labels (N,), of the kind of y, drawn from the network's own predictions.

    Real responses are Gaussian with unit variance, or binary if the criterion is torch's binary
    cross-entropy of logits; for other losses use observed labels.
    """
    with evaluation(model):
        output = model(x)
    refuse_infinite("the outputs of the network", output)
    binary = isinstance(criterion, nn.BCEWithLogitsLoss) or (
        criterion is functional.binary_cross_entropy_with_logits
    )
    if y.is_floating_point() and binary:
        return torch.bernoulli(output.sigmoid().cpu(), generator=generator).to(y).view_as(y)
    if y.is_floating_point():
        mean = predictions(output, y)
        return mean + torch.randn(mean.shape, generator=generator, dtype=mean.dtype).to(mean)
    if output.ndim != 2:
        raise ArgumentError(
            f"fisher: labels are drawn from outputs (N, classes), got shape {tuple(output.shape)}; "
            f"use fisher='observed' (EWC), which takes the given labels"
        )
    logits = criterion.restrict(output, y) if hasattr(criterion, "restrict") else output
    draws = torch.multinomial(logits.softmax(-1).cpu(), 1, generator=generator)
    return draws.squeeze(1).to(y.device)
