"""Processor time of two versions of the code: is the new one slower anywhere?

    git worktree add ../old COMMIT
    python benchmarks/versions.py ../old . --record times.jsonl

Every measurement is a separate process that imports one of the two trees. The trees take turns, and
every other round starts with the other tree. Within a process a job runs once unmeasured, then
several times, and the shortest time counts, because other load only adds time. Times are appended
to the record; rerun the same command to resume. ``--page`` writes the table of
docs/benchmarks/versions.md. Jobs use public names only, those that both versions have.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "versions.md"
SLOWER = 1.15
Job = Callable[[Path], Callable[[], object]]


def divergence(_: Path) -> Callable[[], object]:
    import torch

    from vntransfer import response_divergence

    g = torch.Generator().manual_seed(0)
    z = torch.randn(7, 300, 100, generator=g)
    a, b = (z @ torch.randn(2, 1, 100, 1, generator=g) / 10).squeeze(-1)

    def run() -> None:
        for _ in range(30):
            leaves = [t.detach().requires_grad_() for t in (z, a, b)]
            response_divergence(*leaves).sum().backward()

    return run


def pairs(_: Path) -> Callable[[], object]:
    import torch

    from vntransfer import covariance, pairwise

    rows = torch.randn(200, 300, 65, generator=torch.Generator().manual_seed(0)).double()
    matrices = covariance(rows)
    return lambda: pairwise(matrices, divergence="conditional_von_neumann")


def fit(name: str) -> Job:
    def job(_: Path) -> Callable[[], object]:
        from vntransfer import adaptation, stack

        rng = np.random.default_rng(0)
        sources = {
            f"s{k}": (rng.normal(k / 5, 1, (200, 20)), rng.normal(size=200)) for k in range(5)
        }
        data = stack(sources, target=rng.normal(1, 1, (200, 20)))
        options: dict[str, Any] = {
            "trade_off": 1.0,
            "hidden": (64,),
            "width": 24,
            "batch_size": 100,
            "epochs": 1,
            "steps": 100,
            "random_state": 0,
        }
        return lambda: getattr(adaptation, name)(**options).fit(*data)

    return job


def steps(name: str) -> Job:
    def job(_: Path) -> Callable[[], object]:
        import torch

        from vntransfer.continual import METHODS, Task, dense, train

        g = torch.Generator().manual_seed(0)

        def task(n: int) -> Task:
            return Task(torch.rand(n, 784, generator=g), torch.randint(10, (n,), generator=g))

        method = METHODS[name](dense([784, 100, 100, 10], generator=g))
        for number in range(3):
            method.before_task()
            train(method.model, task(60), method)
            if number < 2:
                method.after_task()
        block = task(200)
        return lambda: train(method.model, block, method)

    return job


def relate_example(_: Path) -> Callable[[], object]:
    from vntransfer import example_table, relate

    return lambda: relate(example_table(), domain="town", response="price")


def predict(repeated: int) -> Job:
    def job(place: Path) -> Callable[[], object]:
        from vntransfer import adapt, example_table
        from vntransfer.workflows.predict import predict_file

        names: dict[str, Any] = {"domain": "town", "response": "price", "target": "Saltby"}
        model = adapt(example_table(), method="ridge", compare=(), **names)
        head, *rows = example_table().read_text("utf-8").splitlines(keepends=True)
        table = place / "table.csv"
        table.write_text(head + "".join(rows) * repeated, "utf-8")
        number = count()
        return lambda: predict_file(model, table, place / f"out{next(number)}.csv")

    return job


def numeric_csv(place: Path) -> Callable[[], object]:
    from vntransfer_lab.data.numeric_csv import read_numbers

    file, number = place / "numbers.csv", count()
    np.savetxt(file, np.random.default_rng(0).normal(size=(20_000, 60)), fmt="%.6f", delimiter=",")

    def run() -> object:
        os.environ["VNT_CACHE"] = str(place / f"cache{next(number)}")  # parse again
        return read_numbers(file, columns=60)

    return run


def smoke(place: Path) -> Callable[[], object]:
    number = count()
    command = [sys.executable, "-c", "from vntransfer.cli import main; main()", "bench", "run"]

    def run() -> object:
        out = str(place / f"run{next(number)}")
        options = ["smoke", "--jobs", "1", "--out", out]
        return subprocess.run([*command, *options], check=True, capture_output=True)

    return run


JOBS: dict[str, Job] = {
    "divergence of samples, forward and backward": divergence,
    "`pairwise`, 200 domains": pairs,
    "fit of `align`, 100 steps": fit("MomentAlignmentRegressor"),
    "fit of `mdd_paper`, 100 steps": fit("MDDRegressor"),
    "`covp`, 200 steps": steps("covp"),
    "`rsp`, 200 steps": steps("rsp"),
    "`ewc`, 200 steps": steps("ewc"),
    "`relate`, example table": relate_example,
    "`predict_file`, example table": predict(1),
    "`predict_file`, 47,600 rows of csv": predict(40),
    "numeric csv, 20,000 x 60": numeric_csv,
    "`vnt bench run smoke`, whole process": smoke,
}


def processor_time() -> float:
    """Seconds of this process, all its threads and the children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(own.ru_utime + own.ru_stime for own in used)


def measure(name: str) -> float:
    """Shortest of the runs of a job that start within two seconds in this process."""
    with tempfile.TemporaryDirectory() as place:
        run = JOBS[name](Path(place))
        run()
        times: list[float] = []
        start = time.perf_counter()
        while not times or (time.perf_counter() - start < 2 and len(times) < 50):
            begin = processor_time()
            run()
            times.append(processor_time() - begin)
    return min(times)


def in_tree(tree: Path, name: str) -> float:
    """Measure a job with the code of a tree, one thread."""
    path = os.pathsep.join(str(tree / part) for part in ("src", "lab/src"))
    done = subprocess.run(
        [sys.executable, __file__, "--job", name],
        env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{tree}: {name} failed\n{done.stderr}")
    imported, seconds = done.stdout.splitlines()[-1].split("\t")
    assert Path(imported).is_relative_to(tree), f"imported {imported} instead of the code in {tree}"
    return float(seconds)


def version(tree: Path) -> str:
    """Commit of a tree; a + behind it: and changes that are not committed."""

    def git(*words: str) -> str:
        return subprocess.check_output(["git", "-C", str(tree), *words], text=True).strip()

    return git("rev-parse", "--short=7", "HEAD") + "+" * bool(git("status", "--short", "--", "src"))


def lines(times: dict[tuple[str, str, int], float], commits: list[str], rounds: int) -> list[str]:
    """The table of all jobs."""
    rows = [
        f"| job | {commits[0]}, ms | {commits[1]}, ms | ratio | rounds, least to largest |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name in JOBS:
        old, new = ([times[name, one, k] for k in range(rounds)] for one in commits)
        single = sorted(b / a for a, b in zip(old, new, strict=True))
        rows.append(
            f"| {name} | {1e3 * min(old):.4g} | {1e3 * min(new):.4g} | {min(new) / min(old):.2f} | "
            f"{single[0]:.2f} to {single[-1]:.2f}, median {statistics.median(single):.2f} |"
        )
    return rows


def main(trees: list[Path], record: Path, rounds: int, page: bool) -> None:
    """Measure what the record lacks; print the table."""
    commits = [version(tree) for tree in trees]
    assert commits[0] != commits[1], f"both trees are at {commits[0]}"
    times: dict[tuple[str, str, int], float] = {}
    if record.exists():
        for line in record.read_text("utf-8").splitlines():
            name, commit, number, seconds = json.loads(line)
            times[name, commit, number] = seconds
    for number in range(rounds):
        for name in JOBS:
            order = list(zip(trees, commits, strict=True))[:: -1 if number % 2 else 1]
            for tree, commit in order:
                if (name, commit, number) not in times:
                    seconds = times[name, commit, number] = in_tree(tree, name)
                    with open(record, "a", encoding="utf-8") as file:
                        file.write(json.dumps([name, commit, number, seconds]) + "\n")
            old, new = (times[name, commit, number] for commit in commits)
            print(f"round {number + 1}: {name:<50} {new / old:.2f}", flush=True)
    table = lines(times, commits, rounds)
    print("\n".join(table))
    if page:
        before = PAGE.read_text("utf-8").split("\n| job |")[0]
        after = PAGE.read_text("utf-8").rpartition(" |\n")[2]
        PAGE.write_text("\n".join([before, *table, ""]) + after, "utf-8")
    slow = [
        name
        for name in JOBS
        if min(times[name, commits[1], k] for k in range(rounds))
        > SLOWER * min(times[name, commits[0], k] for k in range(rounds))
    ]
    print(f"slower by more than {SLOWER - 1:.0%}: {', '.join(slow) or 'nothing'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", nargs="*", type=Path, help="The old and the new tree.")
    parser.add_argument("--record", type=Path, default=Path("times.jsonl"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--page", action="store_true", help="Write the table into the docs.")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job:
        import vntransfer

        print(f"{vntransfer.__file__}\t{measure(given.job)}")
    elif len(given.trees) == 2:
        main([tree.resolve() for tree in given.trees], given.record, given.rounds, given.page)
    else:
        parser.error("give two trees: the old and the new one")
