"""What the benchmarks share: times taken in turns, peaks of memory, profiles."""

import re
import time
from collections.abc import Callable
from pathlib import Path

import torch


def side_by_side(
    runs: list[Callable[[], object]], seconds: float = 1.0, most: int = 200
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


def lifted_peak(run: Callable[[], object]) -> int:
    """How far a call lifts the peak of resident memory, in KiB (Linux)."""
    status = Path("/proc/self/status")

    def kib(field: str) -> int:
        return int(re.search(rf"{field}:\s+(\d+)", status.read_text())[1])

    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = kib("VmRSS")
    run()
    return kib("VmHWM") - before


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
