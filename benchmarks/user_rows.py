"""Code that the parts of `benchmarks/user.py` share: table rows, and commands of two versions.

Times are processor seconds of a whole process, imports included. The two versions alternate, and
the shortest time of each counts, because other load only adds time.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

VNT = ("-c", "from vntransfer.cli import main; main()")
"""Arguments of Python that run the command `vnt` of a version."""


class Row(NamedTuple):
    """A line of the table: the same work with an older version and with this one.

    ``unit`` is "s" (processor seconds, judged by their ratio: the aim was stated on a slower
    machine) or "x" (a ratio of two times, judged as it is).
    """

    work: str
    before: float | None  # None: the older version cannot do it
    after: float
    unit: str
    stated: float | None  # what the older version was said to need
    aim: float
    more_is_better: bool = False
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """This version over the older one."""
        return None if self.before is None else self.after / self.before

    @property
    def met(self) -> bool:
        """Whether the aim is met."""
        if self.more_is_better:
            return self.after >= self.aim
        if self.unit == "s" and self.ratio is not None and self.stated is not None:
            return self.ratio <= self.aim / self.stated
        return self.after <= self.aim


class Used(NamedTuple):
    """What a process used."""

    seconds: float  # of the processor
    peak: float  # MiB


def run(tree: Path, arguments: Sequence[str | Path], folder: Path | None = None) -> Used:
    """Run Python with the package of a tree; it must succeed."""
    environment = os.environ | {
        "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree / 'lab' / 'src'}",
        "COLUMNS": "100",
    }
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            env=environment,
            cwd=folder,
            stdout=said,
            stderr=subprocess.STDOUT,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise SystemExit(f"{arguments}: {said.read().decode(errors='replace')[-2000:]}")
    return Used(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def in_turns(trees: Sequence[Path], arguments: Sequence[str | Path], rounds: int = 3) -> list[Used]:
    """Run the same in several trees, one after the other, and give the least use of each."""
    found = [[run(tree, arguments) for tree in trees] for _ in range(rounds)]
    return [
        Used(min(own.seconds for own in every), min(own.peak for own in every))
        for every in zip(*found, strict=True)
    ]
