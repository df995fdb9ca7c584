"""The cost of `vnt adapt`, for the table of `benchmarks/user.py`.

``rows(before, after)`` compares two checkouts, ``growth()`` gives the processor seconds of this
version from 1,000 to 1,000,000 rows, ``profile()`` shows how `auto` spends its time. Alone:

    python benchmarks/user_adapt.py ratio      # auto over the frozen plain ensemble, this version
    python benchmarks/user_adapt.py growth
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from user_rows import VNT, Row, in_turns, run

HERE = Path(__file__).resolve()
PLACES, COLUMNS = 6, 20
SIZES = (1_000, 10_000, 100_000, 1_000_000)
ROLES = ("--domain", "place", "--response", "y", "--target", "p0")


def table(rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Columns of a table of six places with shifted inputs and a smooth response."""
    rng = np.random.default_rng(seed)
    place = rng.integers(0, PLACES, rows)
    x = rng.standard_normal((rows, COLUMNS)) + 0.2 * place[:, None]
    y = np.sin(x[:, 0]) + x[:, 1] * np.tanh(x[:, 2]) + 0.3 * rng.standard_normal(rows)
    cells = {f"x{k}": x[:, k].round(6) for k in range(COLUMNS)}
    return {**cells, "y": np.where(place == 0, np.nan, y.round(6)), "place": place}


def write_table(rows: int, file: Path) -> Path:
    """Write a table as csv."""
    import pyarrow as pa
    import pyarrow.csv

    cells: dict[str, Any] = table(rows)
    names = pa.array([f"p{k}" for k in range(PLACES)])
    cells["place"] = names.take(pa.array(cells["place"]))
    cells["y"] = pa.array(cells["y"], from_pandas=True)
    pyarrow.csv.write_csv(pa.table(cells), file)
    return file


def ratio(rounds: int = 3) -> float:
    """Processor time of auto over that of the frozen ensemble of five, 6 x 600 rows x 20."""
    parts = _parts()
    auto, frozen = (min(_seconds(parts[name]) for _ in range(rounds)) for name in ("auto", "five"))
    return auto / frozen


def _parts() -> dict[str, Callable[..., Any]]:
    import torch

    from choice import FROZEN
    from vntransfer import AutoTransferRegressor, SourceOnlyRegressor, stack

    torch.set_num_threads(1)
    cells = table(PLACES * 600)
    X = np.stack([cells[f"x{k}"] for k in range(COLUMNS)], 1)
    own = [np.flatnonzero(cells["place"] == k) for k in range(PLACES)]
    sources = {f"p{k}": (X[own[k]], cells["y"][own[k]]) for k in range(1, PLACES)}
    X, y, domain = stack(sources, target=X[own[0]])
    SourceOnlyRegressor(epochs=1, random_state=0).fit(X, y, domain)  # whatever is slow only once
    return {
        "auto": lambda watch=None: AutoTransferRegressor(random_state=0).fit(
            X, y, domain, progress=watch
        ),
        "five": lambda: SourceOnlyRegressor(random_state=0, **FROZEN).fit(X, y, domain),
    }


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _ratio_of(tree: Path) -> float:
    """`ratio` with the package of a checkout."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "ratio"
        run(tree, [HERE, "ratio", "--out", out])
        return float(out.read_text(encoding="ascii"))


def rows(before: Path, after: Path) -> Iterator[Row]:
    """Compare two checkouts."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        towns = place / "towns.csv"
        run(after, [*VNT, "example", towns])
        saltby = ["--domain", "town", "--response", "price", "--target", "Saltby"]
        old, new = in_turns((before, after), [*VNT, "adapt", towns, *saltby])
        yield Row("`vnt adapt` (auto), embedded table", old.seconds, new.seconds, "s", 26, 8)
        work = "`auto` / plain ensemble of five, 6 x 600 rows x 20 columns"
        yield Row(work, _ratio_of(before), _ratio_of(after), "x", 18, 4)
        file = write_table(100_000, place / "large.csv")
        old, new = in_turns((before, after), [*VNT, "adapt", file, *ROLES], rounds=1)
        note = f"peak {new.peak:.0f} MiB"
        work = "`vnt adapt`, 100,000 rows x 20 x 6"
        yield Row(work, old.seconds, new.seconds, "s", 177, 60, note=note)
        file = write_table(1_000_000, place / "million.csv")
        new = run(after, [*VNT, "adapt", file, *ROLES])
        note = f"peak {new.peak:.0f} MiB; 20,000 rows of each source are learned from"
        yield Row("the same, 1,000,000 rows", None, new.seconds, "s", None, 300, note=note)


def growth() -> dict[str, list[tuple[int, float]]]:
    """Processor seconds of `vnt adapt` against rows, this version."""
    tree, found = HERE.parents[1], []
    with tempfile.TemporaryDirectory() as folder:
        for n in SIZES:
            file = write_table(n, Path(folder) / "table.csv")
            found.append((n, run(tree, [*VNT, "adapt", file, *ROLES]).seconds))
    return {"vnt adapt, auto": found}


def profile() -> list[str]:
    """Say where the processor time of `auto` goes, 6 x 600 rows x 20 columns."""
    from vntransfer.adaptation.candidates import ALL

    times: dict[str, float] = {}
    last = time.process_time()

    def watch(what: str, done: int, total: int | None) -> None:
        nonlocal last
        now = time.process_time()
        if what != ALL:
            times[what] = times.get(what, 0.0) + now - last
            last = now

    fit = _parts()["auto"]
    last = start = time.process_time()
    fit(watch)
    times["weights, final fits of trees and ridge"] = time.process_time() - last
    total = time.process_time() - start
    lines = ["| part | share of the time |", "| --- | --- |"]
    for what, own in sorted(times.items(), key=lambda pair: -pair[1]):
        if own > 0.005 * total:
            lines.append(f"| {what} | {own / total:.0%} |")
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", choices=("ratio", "growth", "profile"))
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work == "ratio":
        text = f"{ratio():.3f}"
    elif given.work == "growth":
        text = "\n".join(f"{n} rows: {s:.1f} s" for n, s in growth()["vnt adapt, auto"])
    else:
        text = "\n".join(profile())
    if given.out:
        given.out.write_text(text, encoding="ascii")
    sys.stdout.write(f"{text}\n")
