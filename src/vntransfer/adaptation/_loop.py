"""The training loop of all methods, on one page."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from vntransfer.adaptation._objective import Batch, Block, Objective
from vntransfer.errors import VnError
from vntransfer.networks import Net

Record = dict[str, Any]

WARM_UP = 30
"""Steps over which the learning rate rises to its value; then it falls to zero like a cosine."""


@dataclass(frozen=True)
class Training:
    """Options of the loop; see `DomainRegressor`."""

    epochs: int
    steps: int  # batches per epoch
    lr: float
    weight_decay: float
    clip: float
    average: float
    patience: int | None


def train(
    net: Net,
    objective: Objective,
    batches: Iterator[Batch],
    options: Training,
    *,
    validate: Callable[[], float] | None = None,
    progress: Callable[[Record], None] | None = None,
) -> list[Record]:
    """Train a network in place and give the history, one record per epoch."""
    blocks: dict[Block, nn.Module]
    blocks = {"extractor": net.extractor, "head": net.head, "adversary": objective}
    optimizers = {
        name: torch.optim.AdamW(p, options.lr, betas=(0.9, 0.99), weight_decay=options.weight_decay)
        for name, block in blocks.items()
        if (p := list(block.parameters()))
    }

    def step(names: tuple[Block, ...], loss: Tensor) -> None:
        """Zero, backward, clip, step; each block is clipped by itself."""
        parameters = {name: list(blocks[name].parameters()) for name in names}
        every = [p for block in parameters.values() for p in block]
        for p, gradient in zip(every, torch.autograd.grad(loss, every), strict=True):
            p.grad = gradient
        for name, block in parameters.items():
            nn.utils.clip_grad_norm_(block, options.clip)
            optimizers[name].step()

    total, done = options.epochs * options.steps, 0
    history: list[Record] = []
    kept = _Kept(net, total - math.ceil(options.average * total), options.patience)
    for epoch in range(options.epochs):
        net.train()
        sums: dict[str, float] = {}
        for batch in islice(batches, options.steps):
            for optimizer in optimizers.values():
                optimizer.param_groups[0]["lr"] = options.lr * schedule(done, total)
            for names, loss in objective(net, batch):
                step(names, loss)
            objective.after_step()
            done += 1
            kept.after_step(done)
            for name, value in objective.seen.items():
                sums[name] = sums.get(name, 0.0) + float(value) / options.steps
        net.eval()
        record: Record = {"epoch": epoch, **sums, "weights": objective.weights.tolist()}
        record |= {"validation": validate()} if validate is not None else {}
        history.append(record)
        _check(record)
        if progress is not None:
            progress(record)
        if kept.after_epoch(record):
            break
    kept.restore()
    return history


def schedule(done: int, total: int) -> float:
    """Share of the learning rate after some of the steps.

    Examples
    --------
    >>> [round(schedule(done, 500), 2) for done in (0, 29, 265, 499)]
    [0.03, 1.0, 0.5, 0.0]
    """
    warm = min(WARM_UP, max(total // 5, 1))
    if done < warm:
        return (done + 1) / warm
    return 0.5 * (1 + math.cos(math.pi * (done - warm) / (total - warm)))


def _check(record: Record) -> None:
    """Raise if a value of the history is not finite."""
    bad = [k for k, v in record.items() if isinstance(v, float) and not math.isfinite(v)]
    if bad:
        raise VnError(
            f"training: {', '.join(bad)} not finite in epoch {record['epoch']}; lower lr or "
            f"trade_off, or look for extreme values in y"
        )


class _Kept:
    """The parameters that a fit ends with: of the best epoch, or a mean over the last steps."""

    def __init__(self, net: Net, start: int, patience: int | None) -> None:
        self.net, self.start, self.patience = net, start, patience
        self.best, self.best_epoch, self.values = math.inf, 0, self._now()
        self.count = 0

    def _now(self) -> list[Tensor]:
        return [p.detach().clone() for p in self.net.parameters()]

    @torch.no_grad()
    def after_step(self, done: int) -> None:
        """Take the mean of the parameters after the start of the tail."""
        if self.patience is None and done > self.start:
            self.count += 1
            torch._foreach_lerp_(self.values, list(self.net.parameters()), 1 / self.count)

    def after_epoch(self, record: Record) -> bool:
        """Keep the best epoch; say whether it is time to stop."""
        if self.patience is None:
            return False
        if record["validation"] < self.best:
            self.best, self.best_epoch, self.values = (
                record["validation"],
                record["epoch"],
                self._now(),
            )
            self.count = 1
        return bool(record["epoch"] - self.best_epoch >= self.patience)

    @torch.no_grad()
    def restore(self) -> None:
        """Put the kept parameters into the network."""
        if self.count:
            for p, value in zip(self.net.parameters(), self.values, strict=True):
                p.copy_(value)
