"""Memories of samples: until a task ends, or uniform over the whole stream."""

import torch
from torch import Tensor, nn

from vntransfer.checks import whole
from vntransfer.continual._base import ContinualMethod, Criterion, seeded
from vntransfer.continual.method_state import Stateful
from vntransfer.errors import ArgumentError


class Pending(Stateful):
    """The first samples of the current task, kept until it ends.

    Without a limit all observed samples are kept; ``name`` is the method's name for this option.
    """

    saved = ("x", "y")
    fixed = ("limit",)

    def __init__(self, limit: int | None, name: str = "fisher_samples") -> None:
        self.limit = None if limit is None else whole(name, limit, minimum=1)
        self.clear()

    def clear(self) -> None:
        """Drop everything."""
        self.x: list[Tensor] = []
        self.y: list[Tensor] = []
        self.count = 0

    def add(self, x: Tensor, y: Tensor) -> None:
        """Copy samples up to the limit."""
        room = len(x) if self.limit is None else self.limit - self.count
        if room > 0:
            self.x.append(x[:room].detach().clone())
            self.y.append(y[:room].detach().clone())
            self.count += len(self.x[-1])

    def take(self) -> tuple[Tensor, Tensor]:
        """Return all samples and drop them."""
        if not self.count:
            raise ArgumentError(
                "after_task: no sample was observed in this task; call observe(x, y) in the loop"
            )
        taken = torch.cat(self.x), torch.cat(self.y)
        self.clear()
        return taken

    def restored(self) -> None:
        """Count the samples."""
        self.count = sum(map(len, self.x))


class SampleReservoir(Stateful):
    """Uniform sample of the stream: each of n samples is in it with probability size / n."""

    saved = ("seen", "fields", "generator")
    fixed = ("size",)

    def __init__(self, size: int, generator: torch.Generator) -> None:
        self.size = whole("memory", size)
        self.generator = generator
        self.seen = 0
        self.fields: list[Tensor] = []  # (size, ...) each: x, y and whatever else is stored

    def __len__(self) -> int:
        return min(self.seen, self.size)

    def places(self, count: int) -> list[int]:
        """Slots of the next samples, -1 for those that are skipped; all count as seen."""
        slots = []
        for _ in range(count):
            slot = self.seen
            if self.seen >= self.size:
                slot = int(torch.randint(self.seen + 1, (), generator=self.generator))
            slots.append(slot if slot < self.size else -1)
            self.seen += 1
        return slots

    def put(self, slots: list[int], *rows: Tensor) -> None:
        """Copy rows into their slots."""
        if not self.fields:
            self.fields = [row.new_zeros((self.size, *row.shape[1:])) for row in rows]
        for i, slot in enumerate(slots):
            if slot >= 0:
                for field, row in zip(self.fields, rows, strict=True):
                    field[slot] = row[i].detach()

    def add(self, *rows: Tensor) -> None:
        """Offer samples: x, y and further fields, (N, ...) each."""
        if self.size:
            self.put(self.places(len(rows[0])), *rows)

    def draw(self, count: int) -> list[Tensor]:
        """Draw samples with replacement; return all their fields."""
        rows = torch.randint(len(self), (count,), generator=self.generator)
        return [field[rows] for field in self.fields]

    def extend(self, x: Tensor, y: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Append ``count`` remembered samples to a batch, then remember the batch."""
        old = self.draw(count) if len(self) and count else None
        self.add(x, y)
        return (x, y) if old is None else (torch.cat((x, old[0])), torch.cat((y, old[1])))


class Replaying(ContinualMethod):
    """A method that keeps a uniform sample of the stream and replays some of it."""

    saved = ("memory",)

    def __init__(
        self,
        model: nn.Module,
        *,
        memory: int = 100,
        replay: int = 10,
        random_state: int = 0,
        criterion: Criterion | None = None,
    ) -> None:
        super().__init__(model, criterion=criterion)
        self.memory = SampleReservoir(memory, seeded(random_state))
        self.replay = whole("replay", replay)

    @property
    def stored_samples(self) -> int:
        """Number of samples that are kept."""
        return len(self.memory)
