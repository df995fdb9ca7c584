"""The training loop of all methods, on one page."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from vntransfer.adaptation._adamw import AdamW
from vntransfer.adaptation._checkpoint import Checkpoint
from vntransfer.adaptation._objective import Batch, Block, Objective
from vntransfer.errors import DivergedError
from vntransfer.networks import Net
from vntransfer.progress import Progress
from vntransfer.step_times import StepTimes

Record = dict[str, Any]
Schedule = Literal["cosine", "constant"]

WARM_UP = 30
"""Steps over which the learning rate rises to its value; then it falls to zero like a cosine."""


class Training(NamedTuple):
    """How long training takes; other options of the loop are those of the objective's method."""

    epochs: int
    steps: int  # batches per epoch
    average: float  # share of the last steps over which parameters are averaged
    strict: bool = True  # a loss that is not finite is an error; otherwise its member is lost


def rate_share(schedule: Schedule, done: int, total: int) -> float:
    """Share of the learning rate after some of the steps."""
    if schedule == "constant":
        return 1.0
    warm = min(WARM_UP, max(total // 5, 1))
    if done < warm:
        return (done + 1) / warm
    return 0.5 * (1 + math.cos(math.pi * (done - warm) / (total - warm)))


@dataclass
class EpochCounter:
    """Counts the epochs of all trainings of a fit, and reports them."""

    progress: Progress | None
    total: int
    done: int = 0

    def __call__(self) -> None:
        """Count an epoch."""
        self.done += 1
        if self.progress is not None:
            self.progress("epochs", self.done, self.total)


def train(
    net: Net,
    objective: Objective,
    batches: Callable[[int], Iterator[Batch]],
    length: Training,
    *,
    shares: Tensor,
    after_epoch: Callable[[], None] | None = None,
    checkpoint: Checkpoint | None = None,
) -> tuple[list[Record], StepTimes]:
    """Train all members in place; give the history, one record per epoch, and the times of steps.

    ``batches(n)`` are those after the first n; ``shares`` (M,) those of the members in the values
    that the history tells. Training resumes from the checkpoint's state, if there is one.
    """
    options = objective.method
    parts: dict[Block, nn.Module]
    parts = {"extractor": net.extractor, "head": net.head, "adversary": objective}
    blocks = {name: p for name, part in parts.items() if (p := trainable(part))}
    optimizers = {
        name: AdamW(p, betas=options.betas, weight_decay=options.weight_decay)
        for name, p in blocks.items()
    }

    def step(names: tuple[Block, ...], loss: Tensor, lr: float) -> None:
        """Backward, clip, step; each block of each member is clipped by itself."""
        moved = [name for name in names if name in blocks]
        every = [p for name in moved for p in blocks[name]]
        if not every:
            return
        gradients = iter(torch.autograd.grad(loss.sum(), every, allow_unused=True))
        for name in moved:
            own = [next(gradients) for _ in blocks[name]]
            clip([g for g in own if g is not None], options.clip)
            optimizers[name].step(own, lr)

    total = length.epochs * length.steps
    tail = TailAverage(net, objective, total - math.ceil(length.average * total))
    history: list[Record] = []
    times = StepTimes()
    if checkpoint is not None:
        checkpoint.watch(net=net, objective=objective, tail=tail, **optimizers)
        history = checkpoint.resume()
    objective.done = done = len(history) * length.steps
    stream = batches(done)
    for epoch in range(len(history), length.epochs):
        net.train()
        sums: dict[str, Tensor] = {}
        for _ in range(length.steps):
            before = objective.weights.clone()
            with times.step():
                lr = options.lr * rate_share(options.schedule, done, total)
                for names, loss in objective(net, next(stream)):
                    step(names, loss, lr)
                objective.after_step()
                done += 1
                tail.after_step(done)
            seen = {**objective.seen, "weight_change": change(before, objective.weights)}
            for name, value in seen.items():
                sums[name] = sums.get(name, 0) + value.cpu() / length.steps
        net.eval()
        record: Record = {"epoch": epoch}
        record |= {name: float(shares @ value) for name, value in sums.items()}
        record["weights"] = objective.weights.tolist()
        history.append(record)
        if length.strict:
            check(record)
        if checkpoint is not None:
            checkpoint.save(history, last=len(history) == length.epochs)
        if after_epoch is not None:
            after_epoch()
    tail.restore()
    return history, times


def trainable(module: nn.Module) -> list[Tensor]:
    """Parameters that are not frozen."""
    return [p for p in module.parameters() if p.requires_grad]


def change(before: Tensor, after: Tensor) -> Tensor:
    """Share of the weight that changes hands, (M, K) -> (M,)."""
    return (after.detach() - before).abs().sum(-1) / 2


def clip(gradients: Sequence[Tensor], limit: float) -> None:
    """Scale the gradients of each member, over all parameters, to a norm of at most ``limit``."""
    if not gradients:
        return
    norms = [torch.linalg.vector_norm(g.flatten(1), dim=1) for g in gradients]
    norm = torch.linalg.vector_norm(torch.stack(norms), dim=0)
    factor = (limit / (norm + 1e-6)).clamp_max(1)
    for g in gradients:
        g.mul_(factor.view(-1, *(1 for _ in g.shape[1:])))


def check(record: Record) -> None:
    """Raise if a value of the history is not finite."""
    bad = [k for k, v in record.items() if isinstance(v, float) and not math.isfinite(v)]
    if bad:
        raise DivergedError(
            f"training: {', '.join(bad)} not finite in epoch {record['epoch']}; lower lr or "
            f"trade_off, or look for extreme values in y"
        )


class TailAverage(nn.Module):
    """Mean over the last steps of parameters, statistics of normalizing layers and weights."""

    count: Tensor

    def __init__(self, net: Net, objective: Objective, start: int) -> None:
        super().__init__()
        self.parts, self.start = (net, objective), start
        self.register_buffer("count", torch.zeros(()))
        for i, value in enumerate(self.now()):
            self.register_buffer(f"value{i}", value.detach().clone())

    def now(self) -> list[Tensor]:
        """Everything that is averaged, as it is."""
        net, objective = self.parts
        statistics = [value for value in net.buffers() if value.is_floating_point()]
        return [*net.parameters(), *statistics, objective.weights]

    def values(self) -> list[Tensor]:
        """Give the means so far."""
        return [getattr(self, f"value{i}") for i, _ in enumerate(self.now())]

    @torch.no_grad()
    def after_step(self, done: int) -> None:
        """Take the mean after the start of the tail."""
        if done > self.start:
            self.count += 1
            torch._foreach_lerp_(self.values(), self.now(), 1 / float(self.count))

    @torch.no_grad()
    def restore(self) -> None:
        """Put the means in place."""
        if self.count:
            for now, value in zip(self.now(), self.values(), strict=True):
                now.copy_(value)
