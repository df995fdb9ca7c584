"""Time and memory of learning from csv files larger than memory, compared with parsing them.

``python benchmarks/large_files.py [--rows 20000000] [--folder DIR] [--page]`` writes csv files of
32 columns, parses them with Arrow, learns from them with 256 random features and parses them once
more, each in a separate process that is pinned to one processor, so that peaks of memory and
threads do not mix. Files and results stay in ``--folder``, and rerunning the same command resumes;
without a folder all of it is temporary. ``--page`` writes docs/benchmarks/large_files.md.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "large_files.md"
COLUMNS, PLACES, PART = 32, 5, 1_000_000
ROLES: dict[str, Any] = {"domain": "place", "response": "y", "target": "p0"}


def rows_of(part: int, rows: int) -> Any:
    """Rows of one file: a smooth response of the first columns, shifted inputs in every place."""
    import pyarrow as pa

    rng = np.random.default_rng([0, part])
    place = rng.integers(0, PLACES, rows)
    x = rng.standard_normal((rows, COLUMNS)) + 0.2 * place[:, None]
    y = np.sin(x[:, 0]) + x[:, 1] * np.tanh(x[:, 2]) + 0.3 * rng.standard_normal(rows)
    cells = {f"x{k}": x[:, k] for k in range(COLUMNS)}
    named = pa.array([f"p{k}" for k in range(PLACES)]).take(pa.array(place))
    return pa.table({**cells, "y": pa.array(y, mask=place == 0), "place": named})


def write_files(folder: Path, rows: int) -> list[Path]:
    """Write what is missing, a million rows per file."""
    import pyarrow.csv

    files = []
    for part, first in enumerate(range(0, rows, PART)):
        path = folder / f"part-{part:03}.csv"
        if not path.exists():
            unfinished = path.with_suffix(".tmp")
            pyarrow.csv.write_csv(rows_of(part, min(PART, rows - first)), unfinished)
            unfinished.rename(path)
        files.append(path)
    return files


def parse(files: list[Path]) -> dict[str, Any]:
    """Parse all numbers with Arrow's reader, one thread, and keep none."""
    import pyarrow.csv as arrow

    rows = 0
    for file in files:
        options = arrow.ReadOptions(use_threads=False, block_size=2 * 2**20)
        with arrow.open_csv(file, read_options=options) as reader:
            rows += sum(batch.num_rows for batch in reader)
    return {"rows": rows}


def learn(files: list[Path]) -> dict[str, Any]:
    """Learn from all rows in blocks."""
    from vntransfer import adapt

    model = adapt(files, **ROLES, method="closed_form", engine="local")
    mean, _ = model.outcomes["p0"].expected()
    check = rows_of(10_000, 20_000)
    at = np.array(check["place"].to_pylist()) == "p0"
    x = np.stack([check[f"x{k}"].to_numpy() for k in range(COLUMNS)], 1)[at]
    truth = np.sin(x[:, 0]) + x[:, 1] * np.tanh(x[:, 2])
    found = model.predict({f"x{k}": x[:, k] for k in range(COLUMNS)}).value
    gap = float(np.abs(found - truth).mean())
    return {"expected_error": mean, "error_without_noise": gap}


def measured(what: str, files: list[Path]) -> dict[str, Any]:
    """Run a step here, on one processor."""
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[0]})
    start = time.perf_counter()
    found = STEPS[what](files)
    used, seconds = time.process_time(), time.perf_counter() - start
    # getrusage would count the process that started this one
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    return {**found, "seconds": seconds, "processor": used, "mib": peak / 1024}


STEPS = {"parse": parse, "learn": learn, "parse-again": parse}


def own_process(what: str, folder: Path) -> dict[str, Any]:
    kept = folder / f"{what}.json"
    if not kept.exists():
        threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, __file__, "--run", what, "--folder", str(folder)]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, **threads}
        )
        kept.write_text(done.stdout.splitlines()[-1], encoding="utf-8")
    return json.loads(kept.read_text(encoding="utf-8"))


def report(folder: Path, rows: int) -> str:
    files = write_files(folder, rows)
    size = sum(file.stat().st_size for file in files) / 2**30
    base, ours, again = (own_process(step, folder) for step in STEPS)
    lines = [
        f"{rows:,} rows x {COLUMNS} columns in {PLACES} places, {len(files)} csv files of together "
        f"{size:.1f} GiB, 256 random features, one processor:",
        "",
        "| what | seconds | processor seconds | peak MiB |",
        "| --- | --- | --- | --- |",
    ]
    named = {"parse with Arrow, keep nothing": base, "`adapt`, in blocks": ours}
    for name, own in {**named, "parse once more": again}.items():
        lines.append(
            f"| {name} | {own['seconds']:.1f} | {own['processor']:.1f} | {own['mib']:.0f} |"
        )
    ratio = [2 * ours[key] / (base[key] + again[key]) for key in ("seconds", "processor")]
    lines += [
        "",
        f"Learning takes {ratio[0]:.2f} times parsing ({ratio[1]:.2f} of processor time). Expected "
        f"error {ours['expected_error']:.3f}, of which the noise alone makes 0.239; error of the "
        f"predictions without noise {ours['error_without_noise']:.3f}.",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--run", choices=STEPS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        print(json.dumps(measured(given.run, sorted(given.folder.glob("part-*.csv")))))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        text = report(folder, given.rows)
    print(text)
    if given.page:
        head = "# Files larger than memory\n\nWritten by `python benchmarks/large_files.py --page`."
        PAGE.write_text(f"{head}\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
