"""Level and power of `relation_test`, coverage of the intervals, cost in time and memory.

``python benchmarks/relate.py [level] [validation] [coverage] [speed] [stream]`` writes the
sections (all of them by default) of docs/benchmarks/relate.md. The 20 million rows of ``stream``
are generated in a temporary folder; reading them and relating them run in separate processes, so
that peaks of memory do not mix.
"""

import json
import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Required, TypedDict
from unittest.mock import patch

import numpy as np
import torch

from vntransfer import RelationTest, relate, relation_test
from vntransfer.relations._bootstrap import bootstrap, interval
from vntransfer.relations._matrices import divergences
from vntransfer.relations.summaries import MomentBlocks

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "relate.md"
HEAD = "# Accuracy and cost of `vnt relate`\n\nWritten by `python benchmarks/relate.py`.\n"
RELATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "linear": lambda x: 2 * x[:, 0] - x[:, 1],
    "sine": lambda x: 2 * np.sin(1.5 * x[:, 0]) + x[:, 1],
    "square": lambda x: x[:, 0] ** 2 + x[:, 1],
    "product": lambda x: x[:, 0] * x[:, 1] + x[:, 2],
    "exponential": lambda x: np.exp(0.7 * x[:, 0]) + x[:, 1],
    "bend": lambda x: 2 * np.abs(x[:, 0] - 1) + x[:, 2],
    "step": lambda x: 2.0 * (x[:, 0] > 0.3) + x[:, 1],
}


class World(TypedDict, total=False):
    """Options of `pair`; a table names them in the order in which they are given."""

    relation: Required[str]
    rows: tuple[int, int]
    ratio: float
    shift: float
    slope: float
    noise: tuple[float, float]
    growing: bool
    d: int


def pair(
    relation: str,
    rng: np.random.Generator,
    *,
    rows: tuple[int, int] = (300, 300),
    ratio: float = 1.5,
    shift: float = 0.0,
    slope: float = 0.0,
    noise: tuple[float, float] = (1.0, 1.0),
    growing: bool = False,
    d: int = 4,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Two domains: inputs N(0, C) and N(shift, ratio² C), the second with ``slope`` x_1 added."""
    out = []
    for k in (0, 1):
        x = rng.standard_normal((rows[k], d))
        x[:, 1] = 0.6 * x[:, 0] + 0.8 * x[:, 1]
        x = x * (ratio if k else 1.0) + (shift if k else 0.0)
        size = noise[k] * (np.abs(x[:, 0]) if growing else 1.0)
        y = RELATIONS[relation](x) + slope * k * x[:, 0] + size * rng.standard_normal(rows[k])
        out.append((x, y))
    return out


Seeds = Callable[[int], tuple[list[int], list[int]]]
Test = Callable[..., RelationTest]


def rejected(repetitions: int, test: Test, seeds: Seeds, world: World) -> float:
    """Share of repetitions that reject at 5 %."""
    hits = 0
    for repetition in range(repetitions):
        of_rows, of_test = seeds(repetition)
        drawn = pair(rng=np.random.default_rng(of_rows), **world)
        tested = test(drawn, n_resamples=199, random_state=of_test)
        hits += tested.raw_p_values[0, 1] <= 0.05
    return hits / repetitions


EQUAL: list[World] = [
    *(World(relation=name, ratio=ratio) for name in RELATIONS for ratio in (1.5, 2.0)),
    *(World(relation=name, ratio=1.0, shift=1.5) for name in ("linear", "square", "bend")),
    {"relation": "sine", "ratio": 2.0, "rows": (100, 1000)},
    {"relation": "product", "ratio": 2.0, "shift": 1.0, "rows": (1000, 100)},
    {"relation": "product", "ratio": 2.0, "rows": (1000, 1000), "d": 12},
    {"relation": "sine", "ratio": 2.0, "rows": (200, 200), "d": 8},
    {"relation": "linear", "noise": (1.0, 3.0)},
    {"relation": "linear", "growing": True},
]
OTHER: list[World] = [
    {"relation": "linear", "slope": 0.5},
    {"relation": "linear", "slope": -0.5},
    {"relation": "linear", "slope": 0.5, "rows": (100, 100)},
    {"relation": "square", "slope": 0.5, "shift": 0.5},
    {"relation": "sine", "slope": -0.5, "shift": 0.5},
    {"relation": "linear", "slope": 0.5, "rows": (100, 1000)},
]
DEFAULT: dict[str, Test] = {"rejected": relation_test}


def seen(repetition: int) -> tuple[list[int], list[int]]:
    """Seeds of the simulations that were in view when the defaults were chosen."""
    return [repetition, 11], [repetition]


def unseen(repetition: int) -> tuple[list[int], list[int]]:
    """Seeds written down before anything was computed with them."""
    return [repetition, 8_161_116, 29], [repetition, 8_161_116, 31]


def level(repetitions: int = 120) -> Iterator[str]:
    yield (
        f"The tables show the share of {repetitions} repetitions that reject at 5 % (199 "
        "resamples, raw p-values)."
    )
    yield "Same relation, different inputs (goal: at most 8 %):"
    yield _shares(EQUAL, DEFAULT, repetitions)
    yield "Slope of the first feature changed from 2 by +0.5 or -0.5 (goal: at least 90 %):"
    yield _shares(OTHER, DEFAULT, repetitions)


def validation(repetitions: int = 300) -> Iterator[str]:
    yield (
        "The defaults of `relation_test` were chosen after looking at the tables above. Here are "
        "the same worlds with new seeds that were fixed in advance. The tables show the share of "
        f"{repetitions} repetitions that reject at 5 % (199 resamples, raw p-values)."
    )
    yield (
        "The number of repetitions was not entirely fixed in advance. 300 were planned, and 120 "
        "were run first (levels of 2 to 8 %, power of 94 to 100 %, rounded to whole percents). The "
        "same seeds were then continued to 300, because a rounded 8 % could be 7.5 or 8.3. The "
        "worlds share their seeds, so their shares rise and fall together. The standard error of a "
        "share of 5 % is 1.3 %."
    )
    for title, worlds in (
        ("Same relation, different inputs (goal: at most 8 %):", EQUAL),
        ("Another slope of the first feature (goal: at least 90 %):", OTHER),
    ):
        yield title
        yield _shares(worlds, DEFAULT, repetitions, unseen)


def _shares(
    worlds: list[World], variants: dict[str, Test], repetitions: int, seeds: Seeds = seen
) -> str:
    lines = [f"| world | {' | '.join(variants)} |", "| --- |" + " --- |" * len(variants)]
    for world in worlds:
        name = ", ".join([world["relation"], *(f"{k} {v}" for k, v in list(world.items())[1:])])
        shares = [rejected(repetitions, test, seeds, world) for test in variants.values()]
        lines.append(f"| {name} | {' | '.join(f'{100 * share:.1f} %' for share in shares)} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def coverage(repetitions: int = 60) -> Iterator[str]:
    A = np.eye(4)
    A[0, 1] = A[1, 0] = 0.5
    slope = np.array([0.5, -0.4, 0.3, 0.0])

    def joint(A: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.block([[A, (A @ b)[:, None]], [(A @ b)[None], b @ A @ b + 0.5]])

    worlds = {
        "equal": joint(A, slope),
        "inputs 1.5 times as wide": joint(2.25 * A, slope),
        "slope 0.1 larger": joint(A, slope + np.array([0.1, 0, 0, 0])),
        "slope reversed": joint(A, slope * [-1, 1, 1, 1]),
    }
    lines = ["| domains | rows | divergence | covered | above | below | covered by percentiles |"]
    lines += ["| --- |" + " --- |" * 6]
    name = "conditional_von_neumann"
    for label, second in worlds.items():
        pairs = np.stack((joint(A, slope), second))
        true = divergences(pairs + 1e-3 * np.eye(5), name)[0, 1]
        for n in (100, 1000, 20_000):
            inside = above = below = plain = 0
            for seed in range(repetitions):
                rng = np.random.default_rng([seed, 13])
                domains = [MomentBlocks(5), MomentBlocks(5)]
                for own, sigma in zip(domains, pairs, strict=True):
                    root = np.linalg.cholesky(sigma)
                    own.add(np.ascontiguousarray(root @ rng.standard_normal((5, n))))
                seen = np.stack([own.total().covariance() for own in domains])
                observed = divergences(seen + 1e-3 * np.eye(5), name)
                drawn = bootstrap(domains, np.ones(5), name, ridge=1e-3, n_resamples=200, rng=rng)
                low, high = (end[0, 1] for end in interval(observed, drawn, 0.95))
                above, below = above + (true > high), below + (true < low)
                inside += low <= true <= high
                ends = np.quantile(drawn[:, 0, 1], (0.025, 0.975))
                plain += ends[0] <= true <= ends[1]
            shares = (f"{100 * k / repetitions:.0f} %" for k in (inside, above, below, plain))
            lines.append(f"| {label} | {n} | {true:.4f} | {' | '.join(shares)} |")
            print(lines[-1], flush=True)
    yield (
        f"The table shows the share of {repetitions} repetitions (Gaussian, 4 features, two "
        "domains, 200 bootstrap resamples) in which the 95 % interval contains the true "
        "divergence, or in which the true divergence lies above or below the interval:"
    )
    yield "\n".join(lines)


def speed() -> Iterator[str]:
    lines = ["| domains | rows of each | features | resamples | seconds | rejected pairs |"]
    lines += ["| --- | --- | --- | --- | --- | --- |"]
    for K, n, d, count in ((20, 200, 8, 999), (20, 1000, 8, 999), (20, 1000, 32, 999)):
        rng = np.random.default_rng(0)
        domains = []
        for k in range(K):
            x = (1 + k / K) * rng.standard_normal((n, d))
            y = np.sin(x[:, 0]) + (x[:, 1] if k % 2 else -x[:, 1]) + rng.standard_normal(n)
            domains.append((x, y))
        clock = Clock()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tested = relation_test(domains, n_resamples=count, random_state=0)
        seconds = clock.read()[0]
        far = int((tested.raw_p_values[np.triu_indices(K, 1)] <= 0.05).sum())
        lines.append(f"| {K} | {n} | {d} | {count} | {seconds:.0f} | {far} of {K * (K - 1) // 2} |")
        print(lines[-1], flush=True)
    yield "Processor time of `relation_test` in seconds; slopes differ in half of the pairs:"
    yield "\n".join(lines)


def write_rows(path: Path, rows: int, d: int = 32, places: int = 20) -> None:
    """A parquet file in which a block of random rows repeats, under other places."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    size = 500_000
    x = rng.standard_normal((d, size), dtype=np.float32)
    names = pa.array([f"place {k:02d}" for k in range(places)])
    numbers = [(name, pa.float32()) for name in (*(f"x{j}" for j in range(d)), "y")]
    schema = pa.schema([*numbers, ("place", pa.dictionary(pa.int8(), pa.string()))])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=["place"]) as writer:
        for _ in range(0, rows, size):
            code = rng.integers(0, places, size)
            y = (1 + code / places) * x[0] + rng.standard_normal(size)
            columns = {f"x{j}": pa.array(x[j]) for j in range(d)} | {
                "y": pa.array(y.astype(np.float32)),
                "place": pa.DictionaryArray.from_arrays(pa.array(code.astype(np.int8)), names),
            }
            writer.write_table(pa.table(columns), row_group_size=size)
            x += np.float32(0.01)


class Clock:
    """Seconds of the processor and of the wall."""

    def __init__(self) -> None:
        self.start = time.process_time(), time.perf_counter()

    def read(self) -> list[float]:
        return [time.process_time() - self.start[0], time.perf_counter() - self.start[1]]


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def as_csv(path: Path) -> Path:
    """The same rows as text."""
    import pyarrow as pa
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    out = path.with_suffix(".csv")
    with pq.ParquetFile(path) as opened:
        writer = pc.CSVWriter(out, opened.schema_arrow.set(33, pa.field("place", pa.string())))
        for group in range(opened.metadata.num_row_groups):
            table = opened.read_row_group(group)
            writer.write(table.set_column(33, "place", table["place"].cast("string")))
        writer.close()
    return out


def batches(path: Path) -> Iterator[Any]:
    """Batches of rows, read as plainly as pyarrow does."""
    if path.suffix == ".csv":
        import pyarrow.csv as pc

        yield from pc.open_csv(path)
        return
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as opened:
        for group in range(opened.metadata.num_row_groups):
            yield from opened.iter_batches(32_768, row_groups=[group])


def read_only(path: Path) -> dict[str, Any]:
    """Read all columns and touch every number: what relating them costs at least."""
    clock, total = Clock(), 0.0
    for batch in batches(path):
        for column in batch.columns[:-1]:
            total += float(column.to_numpy().sum(dtype=np.float64))
    return {"passed": clock.read(), "mib": peak()}


def relate_file(path: Path) -> dict[str, Any]:
    from vntransfer.workflows import relate as _relate
    from vntransfer.workflows.relate import read_table

    times: dict[str, Any] = {}

    def timed(*arguments: Any, **options: Any) -> Any:
        clock = Clock()
        made = read_table(*arguments, **options)
        times.update(passed=clock.read(), pass_mib=peak())
        return made

    clock = Clock()
    with patch.object(_relate, "read_table", timed):
        relate(path, domain="place", response="y")
    return times | {"whole": clock.read(), "mib": peak()}


def stream(rows: int = 20_000_000) -> Iterator[str]:
    """Both forms of the file; as text a tenth of the rows, which are ten times slower to read."""
    for form, number in (("parquet", rows), ("csv", rows // 10)):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "rows.parquet")
            write_rows(path, number)
            path = as_csv(path) if form == "csv" else path
            yield from passed(path, number)


def passed(path: Path, rows: int) -> Iterator[str]:
    def own_process(what: str) -> dict[str, Any]:
        command = [sys.executable, __file__, what, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return json.loads(done.stdout.splitlines()[-1])

    size, form = path.stat().st_size / 2**30, path.suffix[1:]
    base, ours = own_process("read"), own_process("relate")
    yield (
        f"{rows:,} rows x 32 features in 20 places, a {form} file of {size:.2f} GiB in the "
        "system's cache. Seconds are processor time and wall-clock time on a shared machine:"
    )
    table = ["| what | processor | wall | peak MiB |", "| --- | --- | --- | --- |"]
    for what, (own, wall), mib in (
        ("read every column and sum it", base["passed"], base["mib"]),
        ("read it into moments and samples", ours["passed"], ours["pass_mib"]),
        ("`relate`: all of it, 190 tests included", ours["whole"], ours["mib"]),
    ):
        table.append(f"| {what} | {own:.1f} | {wall:.1f} | {mib:.0f} |")
    print(*table, sep="\n", flush=True)
    yield "\n".join(table)
    own, wall = (ours["passed"][k] / base["passed"][k] for k in (0, 1))
    yield (
        f"Reducing the {form} file to moments takes {own:.1f} times as long as reading it "
        f"({wall:.1f} times by the wall clock)."
    )


SECTIONS = {
    "level": level,
    "validation": validation,
    "coverage": coverage,
    "speed": speed,
    "stream": stream,
}


def main(wanted: list[str]) -> None:
    torch.set_num_threads(1)
    if wanted[:1] in (["read"], ["relate"]):
        made = {"read": read_only, "relate": relate_file}[wanted[0]](Path(wanted[1]))
        print(json.dumps(made))
        return
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else HEAD
    parts = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, re.M | re.S))
    for name in wanted or SECTIONS:
        parts[name.capitalize()] = "\n" + "\n\n".join(SECTIONS[name]()) + "\n\n"
        ordered = [n.capitalize() for n in SECTIONS if n.capitalize() in parts]
        body = "".join(f"## {n}\n{parts[n]}" for n in ordered)
        PAGE.write_text(HEAD + "\n" + body.rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
