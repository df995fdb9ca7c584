"""Code that the benchmarks share: alternating timings, peaks of memory, profiles."""

import re
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from vntransfer.pages import Axis, Lines, Panels, Series
from vntransfer.pages.picture import write_picture

DOCS = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"
Curves = Mapping[str, Sequence[tuple[int, float]]]


def side_by_side(
    runs: Sequence[Callable[[], object]], seconds: float = 1.0, most: int = 200
) -> list[float]:
    """Best time of each, taking turns; at least seven rounds."""
    for run in runs:
        run()
    best, rounds, start = [float("inf")] * len(runs), 0, time.perf_counter()
    while rounds < 7 or (time.perf_counter() - start < seconds and rounds < most):
        for k, run in enumerate(runs):
            begin = time.perf_counter()
            run()
            best[k] = min(best[k], time.perf_counter() - begin)
        rounds += 1
    return best


def shortest(runs: Mapping[str, Callable[[], object]], rounds: int = 25) -> dict[str, float]:
    """Shortest processor time of each, taking turns."""
    found = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            begin = time.process_time()
            run()
            found[name] = min(found[name], time.process_time() - begin)
    return found


def write_sections(name: str, head: Sequence[str], sections: Mapping[str, Sequence[str]]) -> None:
    """Write a page of docs/benchmarks: its head, then lines by title."""
    lines = [*head]
    for title, own in sections.items():
        lines += ["", f"## {title}", "", *own]
    DOCS.mkdir(parents=True, exist_ok=True)
    (DOCS / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def resident(field: str) -> int:
    """Resident memory of this process in KiB (Linux): "VmRSS" now, "VmHWM" at its peak."""
    found = re.search(rf"{field}:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None, f"/proc/self/status: no field {field}"
    return int(found[1])


def lifted_peak(run: Callable[[], object]) -> int:
    """How far a call lifts the peak of resident memory, in KiB (Linux).

    Call it in a fresh process: memory that earlier calls have freed would not be counted.
    """
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = resident("VmRSS")
    run()
    return resident("VmHWM") - before


class LiveTensors(TorchDispatchMode):
    """Count the bytes of all tensors made within that are alive; ``peak`` is their largest sum.

    The same for every run, unlike what the allocator asks the system for.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sizes: dict[int, int] = {}
        self.now = self.peak = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, torch.Tensor):
                self.watch(tensor.untyped_storage())
        return out

    def watch(self, storage: torch.UntypedStorage) -> None:
        """Count a storage until it is freed."""
        key = storage._cdata
        if key not in self.sizes:
            self.sizes[key] = storage.nbytes()
            self.now += storage.nbytes()
            self.peak = max(self.peak, self.now)
            weakref.finalize(storage, self.forget, key)

    def forget(self, key: int) -> None:
        """Stop to count a storage."""
        self.now -= self.sizes.pop(key)


def live_peak(run: Callable[[], object]) -> int:
    """Most bytes of tensors that a call holds at once."""
    with LiveTensors() as seen:
        run()
    return seen.peak


def profile_table(run: Callable[[], object], calls: int = 5, rows: int = 5) -> list[str]:
    """The operations that take most of the time, as a table."""
    run()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        for _ in range(calls):
            run()
    every = sorted(profile.key_averages(), key=lambda row: -row.self_cpu_time_total)
    total = sum(row.self_cpu_time_total for row in every)
    lines = ["| operation | share of the time | calls per step |", "| --- | --- | --- |"]
    for row in every[:rows]:
        share = row.self_cpu_time_total / total
        lines.append(f"| `{row.key}` | {share:.0%} | {row.count / calls:.0f} |")
        print(lines[-1], flush=True)
    return lines


def growth_picture(panels: Mapping[str, Curves], measured: str, path: Path) -> None:
    """Draw times against sizes, log-log: what is varied -> name -> size and time."""
    charts = [
        Lines(
            [Series(name, [n for n, _ in own], [t for _, t in own]) for name, own in some.items()],
            Axis(varied, log=True),
            Axis(measured, log=True),
        )
        for varied, some in panels.items()
    ]
    write_picture(Panels(charts, share=False), f"{measured}, against sizes", path, overwrite=True)
