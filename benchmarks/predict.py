"""Memory and rate of `vnt predict` on large files, compared with reading them.

A table of eight numbers, a category and a place is generated in a temporary folder; a model of
ridge regression predicts it. Generating, reading and predicting run in separate processes, so
that peaks of memory do not mix. Writes docs/benchmarks/predict.md.

    python benchmarks/predict.py
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "predict.md"
NUMBERS = 8
SIZES = {"csv": (250_000, 1_000_000), "parquet": (250_000, 1_000_000, 4_000_000)}


def generate(file: Path, rows: int) -> None:
    """Write a table of some rows."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    rng = np.random.default_rng(rows)
    x = rng.standard_normal((NUMBERS, rows)).round(4)
    kind = rng.integers(0, 4, rows)
    table = pa.table(
        {
            "town": np.array(["A", "B", "C", "new"])[np.arange(rows) % 4],
            "kind": np.array(["flat", "house", "barn", "mill"])[kind],
            **{f"x{j}": own for j, own in enumerate(x)},
            "y": (x.sum(0) + kind + rng.standard_normal(rows)).round(4),
        }
    )
    if file.suffix == ".csv":
        pa.csv.write_csv(table, file)
    else:
        pa.parquet.write_table(table, file, row_group_size=100_000)


def prepare(folder: Path) -> None:
    """Write all tables, and fit the model on a small one."""
    from vntransfer import adapt

    for kind, sizes in SIZES.items():
        for n in sizes:
            generate(folder / f"{n}.{kind}", n)
    generate(folder / "small.csv", 2000)
    model = adapt(
        folder / "small.csv", domain="town", response="y", target="new", method="ridge", compare=()
    )
    model.save(folder / "model")


def read(file: Path) -> None:
    """Read all columns piece by piece, as `vnt predict` does, and nothing else."""
    from vntransfer.tables.files import chunks, open_table

    with open_table(file) as table:
        for _ in chunks(table, table.names):
            pass


def predict(file: Path) -> None:
    """Predict the file into one of its kind."""
    from vntransfer import load
    from vntransfer.workflows.predict import predict_file

    model = load(file.parent / "model")
    predict_file(model, file, file.parent / f"out{file.suffix}")


def start(file: Path) -> None:
    """Import and load what a prediction needs: the memory of doing nothing."""
    from vntransfer import load

    load(file.parent / "model")


STEPS = {"start": start, "read": read, "predict": predict}


def measured(step: str, file: Path) -> dict[str, float]:
    """Seconds of the processor and of the wall, and peak MiB, of a step in its own process."""
    done = subprocess.run(
        [sys.executable, __file__, "--step", step, str(file)],
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    print(step, file.name, found, flush=True)
    return found


def main() -> None:
    """Measure all sizes and write the page."""
    lines = [
        "# Memory and speed of `vnt predict`",
        "",
        f"Written by `python benchmarks/predict.py`. Each row has {NUMBERS} numbers, a category, a "
        "place and a response.",
        "The model is ridge regression, and the output has the format of the input and all its "
        "columns. Seconds",
        "are processor time without imports; peak memory is that of the whole process. *Nothing* "
        "means imports and",
        "loading the model.",
        "",
        "| file | rows | MiB | read s | predict s | ratio | rows per second | peak MiB: nothing | "
        "read | predict |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        subprocess.run([sys.executable, __file__, "--prepare", place], check=True)
        for kind, sizes in SIZES.items():
            for n in sizes:
                file = folder / f"{n}.{kind}"
                idle, plain, own = (measured(step, file) for step in STEPS)
                lines.append(
                    f"| {kind} | {n:,} | {file.stat().st_size / 2**20:.0f} | {plain['cpu']:.1f} | "
                    f"{own['cpu']:.1f} | {own['cpu'] / plain['cpu']:.1f} | {n / own['cpu']:,.0f} | "
                    f"{idle['peak']:.0f} | {plain['peak']:.0f} | {own['peak']:.0f} |"
                )
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--step", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--prepare", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.prepare:
        prepare(given.prepare)
    elif given.step:
        step, file = given.step
        start(Path(file))  # imports are not what is measured
        begin, wall = time.process_time(), time.perf_counter()
        STEPS[step](Path(file))
        print(
            json.dumps(
                {
                    "cpu": time.process_time() - begin,
                    "wall": time.perf_counter() - wall,
                    "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                }
            )
        )
    else:
        main()
