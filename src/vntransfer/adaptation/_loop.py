"""The training loop of all methods, on one page."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from vntransfer.adaptation._checkpoint import Checkpoint
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
    batches: Callable[[int], Iterator[Batch]],
    options: Training,
    *,
    shares: Tensor,
    validate: Callable[[], Tensor] | None = None,
    progress: Callable[[Record], None] | None = None,
    checkpoint: Checkpoint | None = None,
) -> list[Record]:
    """Train all members in place and give the history, one record per epoch.

    Parameters
    ----------
    net, objective
        Of M members.
    batches
        ``batches(n)``: batches after the first n.
    options
        Of the loop.
    shares
        Shares (M,) of the members in the values that the history tells.
    validate
        Error (M,) of the members on held-out rows.
    progress
        Called with the record of each epoch.
    checkpoint
        Where the state is kept after each epoch, and from where training goes on.
    """
    parts: dict[Block, nn.Module]
    parts = {"extractor": net.extractor, "head": net.head, "adversary": objective}
    blocks = {name: p for name, part in parts.items() if (p := list(part.parameters()))}
    optimizers = {
        name: torch.optim.AdamW(
            p, options.lr, betas=(0.9, 0.99), weight_decay=options.weight_decay, fused=True
        )
        for name, p in blocks.items()
    }

    def step(names: tuple[Block, ...], loss: Tensor) -> None:
        """Zero, backward, clip, step; each block of each member is clipped by itself."""
        moved = [name for name in names if name in blocks]
        every = [p for name in moved for p in blocks[name]]
        for p, gradient in zip(every, torch.autograd.grad(loss.sum(), every), strict=True):
            p.grad = gradient
        for name in moved:
            clip(blocks[name], options.clip)
            optimizers[name].step()

    total = options.epochs * options.steps
    kept = Kept(net, total - math.ceil(options.average * total), options.patience)
    history: list[Record] = []
    if checkpoint is not None:
        checkpoint.watch(net=net, objective=objective, kept=kept, **optimizers)
        history = checkpoint.resume()
    done = len(history) * options.steps
    stream = batches(done)
    while len(history) < options.epochs and not (history and kept.stop(history[-1])):
        net.train()
        sums: dict[str, Tensor] = {}
        for _ in range(options.steps):
            for optimizer in optimizers.values():
                optimizer.param_groups[0]["lr"] = options.lr * schedule(done, total)
            for names, loss in objective(net, next(stream)):
                step(names, loss)
            objective.after_step()
            done += 1
            kept.after_step(done)
            for name, value in objective.seen.items():
                sums[name] = sums.get(name, torch.zeros(())) + value.cpu() / options.steps
        net.eval()
        record: Record = {"epoch": len(history)}
        record |= {name: float(shares @ value) for name, value in sums.items()}
        record["weights"] = objective.weights.tolist()
        if validate is not None:
            record["validation"] = validate()
        kept.after_epoch(record)
        if validate is not None:
            record["validation"] = float(shares @ record["validation"])
        history.append(record)
        check(record)
        if checkpoint is not None:
            checkpoint.save(history)
        if progress is not None:
            progress(record)
    kept.restore()
    return history


def clip(parameters: Sequence[Tensor], limit: float) -> None:
    """Scale the gradients of each member, over all parameters, to a norm of at most ``limit``."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    norms = [torch.linalg.vector_norm(g.flatten(1), dim=1) for g in gradients]
    norm = torch.linalg.vector_norm(torch.stack(norms), dim=0)
    factor = (limit / (norm + 1e-6)).clamp_max(1)
    for g in gradients:
        g.mul_(factor.view(-1, *(1 for _ in g.shape[1:])))


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


def check(record: Record) -> None:
    """Raise if a value of the history is not finite."""
    bad = [k for k, v in record.items() if isinstance(v, float) and not math.isfinite(v)]
    if bad:
        raise VnError(
            f"training: {', '.join(bad)} not finite in epoch {record['epoch']}; lower lr or "
            f"trade_off, or look for extreme values in y"
        )


class Kept(nn.Module):
    """The parameters that a fit ends with: of the best epoch, or a mean over the last steps.

    With patience, each member keeps its own best epoch.
    """

    best: Tensor
    best_epoch: Tensor
    count: Tensor

    def __init__(self, net: Net, start: int, patience: int | None) -> None:
        super().__init__()
        self.net, self.start, self.patience = (net,), start, patience
        now = list(net.parameters())
        self.register_buffer("best", torch.full(now[0].shape[:1], math.inf))
        self.register_buffer("best_epoch", torch.zeros(now[0].shape[:1]))
        self.register_buffer("count", torch.zeros(()))
        for i, p in enumerate(now):
            self.register_buffer(f"value{i}", p.detach().clone())

    def values(self) -> list[Tensor]:
        """Kept parameters in the order of the network's."""
        return [getattr(self, f"value{i}") for i, _ in enumerate(self.net[0].parameters())]

    @torch.no_grad()
    def after_step(self, done: int) -> None:
        """Take the mean of the parameters after the start of the tail."""
        if self.patience is None and done > self.start:
            self.count += 1
            torch._foreach_lerp_(
                self.values(), list(self.net[0].parameters()), 1 / float(self.count)
            )

    @torch.no_grad()
    def after_epoch(self, record: Record) -> None:
        """Keep this epoch for the members that are better than ever."""
        if self.patience is None:
            return
        better = record["validation"].cpu() < self.best
        self.best = torch.where(better, record["validation"].cpu(), self.best)
        self.best_epoch = torch.where(better, float(record["epoch"]), self.best_epoch)
        self.count += 1
        for value, p in zip(self.values(), self.net[0].parameters(), strict=True):
            value[better] = p[better.to(p.device)]

    def stop(self, record: Record) -> bool:
        """Say whether no member got better for long enough."""
        if self.patience is None:
            return False
        return bool((record["epoch"] - self.best_epoch).min() >= self.patience)

    @torch.no_grad()
    def restore(self) -> None:
        """Put the kept parameters into the network."""
        if self.count:
            for p, value in zip(self.net[0].parameters(), self.values(), strict=True):
                p.copy_(value)
