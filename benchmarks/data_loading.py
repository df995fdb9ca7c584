"""Parsing against the second load of files as large as the real ones, in time and memory.

``make bench-data`` writes docs/benchmarks/data_loading.md. The files are generated in the official
formats (a zip with one text in it); blocks of random rows repeat, which parsing does not notice.
Generation and each measurement run in separate processes, so that peaks of memory do not mix (on
Linux a child starts with the peak of its parent).
"""

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "data_loading.md"
BLOCK = 5000
GOAL = 20.0


@dataclass(frozen=True)
class Case:
    archive: str
    member: str
    rows: int
    columns: int
    header: bool

    def line(self, values: np.ndarray) -> str:
        if self.header:  # CT slices: patient, histogram values, position
            return f"{int(abs(values[0]) * 10)}," + ",".join(f"{v:.8g}" for v in values[1:])
        return f"{1950 + int(abs(values[0]) * 10)}," + ",".join(f"{v * 50:.5f}" for v in values[1:])

    def write(self, folder: Path) -> Path:
        rng = np.random.default_rng(0)
        block = "".join(self.line(row) + "\n" for row in rng.normal(size=(BLOCK, self.columns)))
        with (
            zipfile.ZipFile(folder / self.archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as z,
            z.open(self.member, "w") as out,
        ):
            if self.header:
                names = ["patientId", *(f"value{i}" for i in range(self.columns - 2)), "reference"]
                out.write((",".join(names) + "\n").encode())
            for done in range(0, self.rows, BLOCK):
                lines = (
                    block
                    if self.rows - done >= BLOCK
                    else "".join(block.splitlines(keepends=True)[: self.rows - done])
                )
                out.write(lines.encode())
        return folder / self.archive


CASES = (
    Case("YearPredictionMSD.txt.zip", "YearPredictionMSD.txt", 515_345, 91, False),
    Case("slice_localization_data.zip", "slice_localization_data.csv", 53_500, 386, True),
)
NAMES = ("yearpredictionmsd", "ct_slices")


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # kibibytes on Linux


def measure(case: Case, path: Path) -> None:
    """Run in a separate process; prints a line of json."""
    from vntransfer_lab.data.numeric_csv import read_numbers

    before = peak_mib()
    start = time.perf_counter()
    rows = read_numbers(path, columns=case.columns, header=case.header, dtype=np.float32)
    opened = time.perf_counter()
    peak = peak_mib()
    total = float(rows.sum(dtype=np.float64))
    read = time.perf_counter()
    print(
        json.dumps(
            {
                "open": opened - start,
                "read": read - start,
                "imports": before,
                "peak": peak,
                "shape": rows.shape,
                "sum": total,
            }
        )
    )


def measure_load(name: str, folder: Path) -> None:
    """Run in a separate process; prints the seconds of `vntransfer_lab.data.load`."""
    from vntransfer_lab.data import load

    start = time.perf_counter()
    load(name, folder=folder)
    print(time.perf_counter() - start)


def in_process(*arguments: str, cache: Path) -> str:
    done = subprocess.run(
        [sys.executable, __file__, *arguments],
        env=os.environ | {"VNT_CACHE": str(cache), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def row(number: int, folder: Path) -> str:
    case, cache = CASES[number], folder / "cache"
    path = folder / case.archive
    in_process("write", str(number), str(folder), cache=cache)
    with zipfile.ZipFile(path) as z:
        text = z.getinfo(case.member).file_size
    runs = [json.loads(in_process("read", str(number), str(path), cache=cache)) for _ in range(4)]
    first, second = runs[0], min(runs[1:], key=lambda run: run["read"])
    assert all(run["shape"] == [case.rows, case.columns] for run in runs)
    assert len({run["sum"] for run in runs}) == 1
    ratio = first["read"] / second["read"]
    assert ratio >= GOAL, f"{case.archive}: only {ratio:.1f} x faster"
    whole = [
        float(in_process("load", NAMES[number], str(folder), cache=folder / "new"))
        for _ in range(3)
    ]
    assert whole[0] >= GOAL * min(whole[1:]), f"{NAMES[number]}: {whole}"
    (binary,) = (cache / "parsed").glob("*.npy")
    cells = [
        case.archive,
        f"{case.rows} x {case.columns}",
        f"{text / 2**20:.0f}",
        f"{binary.stat().st_size / 2**20:.0f}",
        f"{first['read']:.2f}",
        f"{first['peak']:.0f} ({first['imports']:.0f})",
        f"{1000 * second['open']:.1f}",
        f"{1000 * second['read']:.1f}",
        f"{ratio:.0f} x",
        f"{whole[0]:.1f}",
        f"{min(whole[1:]):.2f}",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    lines = []
    for number in range(len(CASES)):
        with tempfile.TemporaryDirectory() as name:
            lines.append(row(number, Path(name)))
            print(lines[-1], flush=True)
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(
        "# Loading large files\n\n"
        "Written by `make bench-data`. It generates files of the full size in the official formats "
        "and parses them once with `vntransfer_lab.data.numeric_csv.read_numbers` (hash, unzip, "
        "parse, check, write as binary float32). Then it loads them in a new process as a memory "
        "map. *Parse* and *read all* include reading every number once. Peak memory is that of the "
        "whole process (in brackets: before parsing). *Load* is the time of "
        "`vntransfer_lab.data.load` in a new process, including hash, checks and domains (k-means, "
        "which is cached); *again* is the second call.\n\n"
        "| file | shape | text MiB | binary MiB | parse s | peak MiB | second load: open ms | "
        "read all ms | faster | load s | again s |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
        + "\n".join(lines)
        + f"\n\n{platform.machine()}, {os.cpu_count()} cores, one thread, Python "
        f"{platform.python_version()}, numpy {np.__version__}.\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    elif sys.argv[1] == "write":
        CASES[int(sys.argv[2])].write(Path(sys.argv[3]))
    elif sys.argv[1] == "load":
        measure_load(sys.argv[2], Path(sys.argv[3]))
    else:
        measure(CASES[int(sys.argv[2])], Path(sys.argv[3]))
