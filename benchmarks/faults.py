"""Kill the runner at random moments (SIGKILL), resume, and compare with an uninterrupted run.

Each trial starts a new run folder, kills the runner after a random part of the time of an
uninterrupted run, checks the store that is left, resumes, and compares tables and rows.

    python benchmarks/faults.py --kills 30

Arguments after ``--`` replace those of the run below; they are those of ``vnt bench run``.
"""

import argparse
import csv
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from vntransfer_lab import export, report
from vntransfer_lab.runner.store import Store
from vntransfer_lab.runner.store_file import STORE_NAME, UnplannedError

VNT = [sys.executable, "-c", "from vntransfer.cli import main; main()"]
RUN = ["smoke", "--seeds", "2", "--targets", "s1,s2,s3", "--jobs", "2"]
VARYING = ("seconds",)  # the one column that may differ between equal runs


def command(folder: Path, run: list[str]) -> list[str]:
    return [*VNT, "bench", "run", *run, "--out", str(folder)]


def complete(folder: Path, run: list[str]) -> None:
    done = subprocess.run(command(folder, run), capture_output=True, text=True)
    assert done.returncode == 0, f"the run ended with {done.returncode}: {done.stderr}"


def output(folder: Path) -> tuple[str, list[dict[str, str]]]:
    """Table and rows of a finished run."""
    file = folder / "rows.csv"
    export(folder, file)
    with open(file, newline="") as text:
        rows = [{k: v for k, v in row.items() if k not in VARYING} for row in csv.DictReader(text)]
    return report(folder, "csv"), rows


def children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()] if path.exists() else []


def finished_cells(folder: Path) -> int:
    """Finished cells in the store as the killed runner left it; it is checked when it is opened.

    There are none if the kill came before the store was made or its cells were planned.
    """
    if not (folder / STORE_NAME).exists():
        return 0
    try:
        with Store(folder) as store:
            return store.counts().get("done", 0)
    except UnplannedError:
        return 0


def gone(pids: list[int], seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        states = [Path(f"/proc/{pid}/stat") for pid in pids]
        alive = [
            s for s in states if s.exists() and s.read_text().rsplit(")")[-1].split()[0] != "Z"
        ]
        if not alive:
            return True
        time.sleep(0.1)
    return False


def trial(folder: Path, run: list[str], delay: float) -> int:
    """Kill once after ``delay`` seconds, check, resume to the end; finished cells at the kill."""
    process = subprocess.Popen(
        command(folder, run), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(delay)
    workers = children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    found = finished_cells(folder)
    complete(folder, run)
    assert gone(workers), "workers of the killed run are still there"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("run", nargs="*", default=RUN)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as place:
        reference = Path(place, "reference")
        begin = time.monotonic()
        complete(reference, options.run)
        whole = time.monotonic() - begin
        expected = output(reference)
        cells = len({row["key"] for row in expected[1]})
        at_kill = []
        for number in range(options.kills):
            folder = Path(place, f"trial{number}")
            at_kill.append(trial(folder, options.run, rng.uniform(0, whole)))
            assert output(folder) == expected, f"trial {number}: another table"
        inside = sum(0 < found < cells for found in at_kill)
        print(f"kills                      {options.kills}")
        print(f"cells per run              {cells}")
        print(f"finished cells at the kill {sorted(at_kill)}")
        print(f"kills amid the cells       {inside}")
        print("tables and rows            equal to those of the run that was left alone")


if __name__ == "__main__":
    main()
