"""Memories of samples: of every task so many, or a uniform sample of the whole stream."""

from typing import Any

import torch
from torch import Tensor

from vntransfer.checks import whole


class TaskMemory:
    """The last samples of every task.

    Parameters
    ----------
    size
        Samples per task.

    Examples
    --------
    >>> memory = TaskMemory(2)
    >>> memory.add(torch.arange(3.0), torch.arange(3))
    >>> memory.end_task()
    >>> memory.tasks
    [(tensor([1., 2.]), tensor([1, 2]))]
    """

    def __init__(self, size: int) -> None:
        self.size = whole("memory", size)
        self.tasks: list[tuple[Tensor, Tensor]] = []
        self.x: list[Tensor] = []
        self.y: list[Tensor] = []

    def add(self, x: Tensor, y: Tensor) -> None:
        """Copy samples of the current task, the oldest making room."""
        if self.size:
            self.x += x[-self.size :].detach().clone().split(1)
            self.y += y[-self.size :].detach().clone().split(1)
            del self.x[: -self.size], self.y[: -self.size]

    def end_task(self) -> None:
        """Close the current task's memory."""
        if self.x:
            self.tasks.append((torch.cat(self.x), torch.cat(self.y)))
        self.x, self.y = [], []

    def union(self) -> tuple[Tensor, Tensor]:
        """Give the samples of all finished tasks."""
        return torch.cat([x for x, _ in self.tasks]), torch.cat([y for _, y in self.tasks])

    def __len__(self) -> int:
        return sum(len(x) for x, _ in self.tasks)

    def options(self) -> dict[str, Any]:
        """Give what a checkpoint must agree with."""
        return {"size": self.size}

    def state(self) -> dict[str, Any]:
        """Give what a checkpoint must hold."""
        return {"tasks": [list(task) for task in self.tasks], "x": self.x, "y": self.y}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take over a state."""
        self.tasks = [(x, y) for x, y in state["tasks"]]
        self.x, self.y = list(state["x"]), list(state["y"])


class SampleReservoir:
    """Uniform sample of all that was seen: each of n samples is in it with chance size / n.

    Parameters
    ----------
    size
        Capacity, for all tasks together.
    generator
        Of the draws.

    Examples
    --------
    >>> memory = SampleReservoir(2, torch.Generator().manual_seed(0))
    >>> for i in range(50):
    ...     memory.add(torch.tensor([float(i)]), torch.tensor([i]))
    >>> len(memory), memory.seen
    (2, 50)
    """

    def __init__(self, size: int, generator: torch.Generator) -> None:
        self.size = whole("memory", size)
        self.generator = generator
        self.seen = 0
        self.fields: list[Tensor] = []  # (size, ...) each: x, y and whatever else is stored

    def __len__(self) -> int:
        return min(self.seen, self.size)

    def places(self, count: int) -> list[int]:
        """Slots of the next samples, -1 for those that are passed over; they count as seen."""
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
        """Show samples: x, y and further fields, (N, ...) each."""
        if self.size:
            self.put(self.places(len(rows[0])), *rows)

    def draw(self, count: int) -> list[Tensor]:
        """Draw samples with replacement: all fields of them."""
        rows = torch.randint(len(self), (count,), generator=self.generator)
        return [field[rows] for field in self.fields]

    def extend(self, x: Tensor, y: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Give a batch with ``count`` remembered samples appended, then remember the batch."""
        old = self.draw(count) if len(self) and count else None
        self.add(x, y)
        return (x, y) if old is None else (torch.cat((x, old[0])), torch.cat((y, old[1])))

    def options(self) -> dict[str, Any]:
        """Give what a checkpoint must agree with."""
        return {"size": self.size}

    def state(self) -> dict[str, Any]:
        """Give what a checkpoint must hold."""
        return {"seen": self.seen, "fields": self.fields, "generator": self.generator.get_state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take over a state."""
        self.seen, self.fields = int(state["seen"]), list(state["fields"])
        self.generator.set_state(state["generator"])
