"""How long commands take, compared with an older version: docs/benchmarks/user.md.

    python benchmarks/user.py --before 4e28e6e

The older revision is checked out into a temporary folder. Every measurement is a process of its
own and is appended to the record; rerun the same command to resume. `user_adapt.py` and
`user_steps.py`, where they exist, add their rows: ``rows(before, after)``, and sections of the page
by ``profile()`` and ``growth()``.
"""

import argparse
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from user_rows import VNT, Row, Used, in_turns, run

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks" / "user.md"
PICTURE = PAGE.parent / "img" / "user-growth.svg"
OTHERS = ("user_adapt", "user_steps")

MODELS = ("auto", "source_only", "boosting", "ridge", "closed_form")
NUMPY = 0.098
"""Seconds of `import numpy` where the aims were stated: they are taken in this unit."""

SIZES = (1_000, 10_000, 100_000, 1_000_000)
COLUMNS, PLACES = 20, 6
IMPORTED = ("numpy", "pyarrow", "pandas", "scipy", "sklearn", "lightgbm", "torch", "rich", "typer")

FIT = """
import csv, sys
from pathlib import Path
from vntransfer import adapt, example_table
folder = Path(sys.argv[1])
for method in sys.argv[2:]:
    known = {"domain": "town", "response": "price", "target": "Saltby", "compare": ()}
    adapt(example_table(), method=method, **known).save(folder / method)
with example_table().open(newline="") as file:
    rows = [row for row in csv.reader(file)][:101]
with (folder / "rows.csv").open("w", newline="") as file:
    csv.writer(file).writerows(rows)
"""

GENERATE = """
import sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
path, rows, columns, places = sys.argv[1], *map(int, sys.argv[2:])
rng = np.random.default_rng(rows)
x = rng.standard_normal((columns, rows)).round(4)
place = np.arange(rows) % places
y = x[:5].sum(0) + np.sin(2 * x[5]) + 0.3 * place + 0.3 * rng.standard_normal(rows)
y[place == places - 1] = np.nan
table = {"place": np.array([f"p{k}" for k in range(places)])[place]}
table |= {f"x{j}": own for j, own in enumerate(x)} | {"y": pa.array(y.round(4), from_pandas=True)}
pq.write_table(pa.table(table), path)
"""

WATCHED = """
import atexit, sys, time
start = time.process_time()
def watch(names):
    import builtins
    plain, spent, inside = builtins.__import__, dict.fromkeys(names, 0.0), []
    def timed(name, *given, **more):
        top = name.split(".")[0]
        if top not in spent or top in inside or top in sys.modules:
            return plain(name, *given, **more)
        inside.append(top)
        begin, others = time.process_time(), sum(spent.values())
        try:
            return plain(name, *given, **more)
        finally:
            inside.pop()
            spent[top] += time.process_time() - begin - (sum(spent.values()) - others)
    builtins.__import__ = timed
    return spent
spent = watch(sys.argv.pop(1).split(","))
def say():
    import json
    print(json.dumps({**spent, "all": time.process_time()}), file=sys.stderr)
atexit.register(say)
from vntransfer.cli import main
main()
"""


Curves = dict[str, list[tuple[int, float]]]


class Record:
    """Measurements by name, appended to a file: what is there is not measured again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.known: dict[str, Any] = dict(map(json.loads, lines))

    def kept(self, name: str, measure: Callable[[], Any]) -> Any:
        """Give plain values, measured now if they are not known."""
        if name not in self.known:
            text = json.dumps([name, measure()])
            self.known[name] = json.loads(text)[1]
            with self.path.open("a") as file:
                file.write(text + "\n")
            print(text[:200], flush=True)
        return self.known[name]

    def measured(self, name: str, measure: Callable[[], list[Used]]) -> list[Used]:
        """Give what processes used."""
        return [Used(*own) for own in self.kept(name, measure)]


def commands(before: Path, record: Record, folder: Path) -> Iterator[Row]:
    """Start-up, predict, relate and adapt on the embedded table."""
    trees = [before, ROOT]
    measure = partial(in_turns, [ROOT], ("-c", "import numpy"), rounds=7)
    plain = record.measured("import numpy", measure)[0].seconds

    def row(work: str, aim: float, measure: Callable[[], list[Used]]) -> Row:
        old, new = record.measured(work, measure)
        note = f"{new.seconds / plain:.1f} x `import numpy`"
        return Row(work, old.seconds, new.seconds, "s", None, aim / NUMPY * plain, note=note)

    def command(work: str, aim: float, *arguments: str | Path) -> Row:
        return row(work, aim, partial(in_turns, trees, [*VNT, *arguments]))

    yield command("`vnt --help`", 0.2, "--help")
    yield command("`vnt --version`", 0.2, "--version")
    own = ["--domain", "town", "--response", "price"]
    yield command("`vnt relate`, embedded table", 2.0, "relate", example(), *own)
    for method in MODELS:

        def predict(method: str = method) -> list[Used]:
            best: list[list[Used]] = [[], []]
            for which, tree in enumerate(trees):
                place = folder / str(which)
                if not (place / "rows.csv").exists():
                    place.mkdir(exist_ok=True)
                    run(tree, ("-c", FIT, place, *MODELS))
            for _ in range(3):
                for which, tree in enumerate(trees):
                    place = folder / str(which)
                    best[which].append(run(tree, [*VNT, *prediction(place, method)]))
            return [min(own, key=lambda used: used.seconds) for own in best]

        yield row(f"`vnt predict`, 100 rows, {method} model", 1.5, predict)


def prediction(place: Path, method: str) -> list[str | Path]:
    """Arguments of `vnt predict` for what `FIT` made."""
    rows, out = place / "rows.csv", place / "out.csv"
    return ["predict", place / method, rows, "--target", "Saltby", "--out", out, "--overwrite"]


def example() -> Path:
    """The embedded table."""
    from vntransfer import example_table

    return example_table()


def growth(record: Record, folder: Path, largest: int) -> Curves:
    """Processor seconds of commands of this version against rows; predict with ridge regression."""
    curves: Curves = {"relate": [], "predict": []}
    own, target = ["--domain", "place", "--response", "y"], ["--target", f"p{PLACES - 1}"]
    model, out = folder / "model", folder / "out.parquet"
    for n in (size for size in SIZES if size <= largest):
        file = folder / f"{n}.parquet"
        if f"predict, {n} rows" not in record.known or not model.exists():
            run(ROOT, ("-c", GENERATE, file, str(n), str(COLUMNS), str(PLACES)))
        if not model.exists():
            run(ROOT, [*VNT, "adapt", file, *own, *target, "--method", "ridge", "--save", model])
        steps: dict[str, list[str | Path]] = {
            "relate": ["relate", file, *own],
            "predict": ["predict", model, file, *target, "--out", out, "--overwrite"],
        }
        for name, arguments in steps.items():
            measure = partial(in_turns, [ROOT], [*VNT, *arguments], rounds=1)
            (used,) = record.measured(f"{name}, {n} rows", measure)
            curves[name].append((n, used.seconds))
    return curves


def imports(folder: Path) -> list[str]:
    """Where the remaining time of short commands goes: imports, and the rest."""
    place = folder / "1"
    if not (place / "rows.csv").exists():
        place.mkdir(exist_ok=True)
        run(ROOT, ("-c", FIT, place, *MODELS))
    own = ["--domain", "town", "--response", "price"]
    asked: dict[str, list[str | Path]] = {
        "--help": ["--help"],
        "relate": ["relate", example(), *own],
    }
    for method in ("auto", "closed_form"):
        asked[f"predict ({method})"] = prediction(place, method)
    lines = [
        "| command | all | " + " | ".join(IMPORTED) + " | everything else |",
        "| --- |" + " --- |" * (len(IMPORTED) + 2),
    ]
    for name, arguments in asked.items():
        done = subprocess.run(
            [sys.executable, "-c", WATCHED, ",".join(IMPORTED), *map(str, arguments)],
            env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT / 'lab' / 'src'}"},
            capture_output=True,
            text=True,
            check=True,
        )
        found = json.loads(done.stderr.splitlines()[-1])
        total = found.pop("all")
        cells = [f"{found[top]:.2f}" if found[top] > 0.005 else "" for top in IMPORTED]
        rest = total - sum(found.values())
        lines.append(f"| `{name}` | {total:.2f} | {' | '.join(cells)} | {rest:.2f} |")
    return lines


def others(before: Path, record: Record, curves: Curves) -> tuple[list[Row], list[str]]:
    """Rows and sections of the page that other files give; they add their curves."""
    rows: list[Row] = []
    sections: list[str] = []
    for name in OTHERS:
        if importlib.util.find_spec(name) is None:
            continue
        part = importlib.import_module(name)
        found = record.kept(f"rows of {name}", partial(_listed, part.rows, before))
        rows += [Row(*own) for own in found]
        if hasattr(part, "profile"):
            sections += ["", *record.kept(f"profile of {name}", part.profile)]
        if hasattr(part, "growth"):
            found = record.kept(f"growth of {name}", part.growth)
            curves |= {own: [(n, value) for n, value in line] for own, line in found.items()}
    return rows, sections


def _listed(rows: Callable[[Path, Path], Iterator[Row]], before: Path) -> list[Row]:
    return list(rows(before, ROOT))


def table(rows: Sequence[Row]) -> list[str]:
    """Lines of the table."""
    lines = [
        "| work | before | after | ratio | goal | met | |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        judged = row.unit == "s" and row.stated is not None
        aim = (
            f"{row.aim / row.stated:.2f} of before"
            if judged and row.stated
            else f"{row.aim:.3g} {row.unit}"
        )
        old = "not possible" if row.before is None else f"{row.before:.3g} {row.unit}"
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        met = "yes" if row.met else "no"
        lines.append(
            f"| {row.work} | {old} | {row.after:.3g} {row.unit} | {ratio} | "
            f"{aim} | {met} | {row.note} |"
        )
    return lines


def main() -> None:
    """Measure, print the table and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", default="4e28e6e", help="older revision")
    parser.add_argument("--record", type=Path, default=ROOT / ".user-times.jsonl")
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="rows of the largest table")
    parser.add_argument("--alone", action="store_true", help="only the rows of this file")
    given = parser.parse_args()
    record = Record(given.record)
    with tempfile.TemporaryDirectory() as place:
        folder, before = Path(place), Path(place) / "before"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", before, given.before], check=True)
        try:
            rows = list(commands(before, record, folder))
            curves = growth(record, folder, given.largest)
            more, sections = ([], []) if given.alone else others(before, record, curves)
            where = record.kept("imports", partial(imports, folder))
        finally:
            subprocess.run([*git, "remove", "--force", before], check=True)
    from measure import growth_picture  # imports torch: memory that processes started here inherit

    growth_picture({"rows": curves}, "processor seconds", PICTURE)
    lines = [
        "# How long commands take",
        "",
        f"Written by `make bench-user`, which alternates with revision `{given.before}` on the "
        "same machine. Times are processor",
        "seconds of a whole process, imports included, the shortest of three. The goals were set "
        "on another machine, where",
        f"`import numpy` took {NUMPY} s; goals for commands are scaled by the time it takes here.",
        "",
        *table([*rows, *more]),
        *(["", "Not measured in this run (`--alone`): `vnt adapt`."] if given.alone else []),
        "",
        "## Where the remaining time goes",
        "",
        "Processor seconds of a single run, split into imports by package (pandas is imported by "
        "pyarrow, if it is",
        "installed) and everything else.",
        "",
        *where,
        *sections,
        "",
        "## Growth with the number of rows",
        "",
        f"Commands on parquet files with {COLUMNS} numeric columns and {PLACES} places, one of "
        "them without responses.",
        "",
        "![Processor seconds of commands against rows](img/user-growth.svg)",
        "",
        "| rows | " + " | ".join(curves) + " |",
        "| --- |" + " --- |" * len(curves),
    ]
    for n in sorted({n for own in curves.values() for n, _ in own}):
        cells = (dict(own).get(n) for own in curves.values())
        values = " | ".join("" if value is None else f"{value:.1f} s" for value in cells)
        lines.append(f"| {n:,} | {values} |")
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
