"""What does the automatic choice gain? Every target against the frozen plain ensemble.

Tables are cut into domains in two ways: by k-means on the columns (another place, inside the range
of the others or not) and at the quantiles of one column (the outer bins must be extrapolated).
Reviews (amazon4, amazon7i) come with domains. Each chosen domain is the target once,
without its labels. Predictions are kept in FOLDER, one file for each target and method, so a
stopped run resumes, several runs share the work (``--sets``, ``--methods``), and rules are compared
on the same predictions.

    python benchmarks/choice.py run FOLDER --partition 3     # development: 3 and 4
    python benchmarks/choice.py show FOLDER --partition 7    # the table of docs/adapt.md

An older version of the library joins with its own ``auto`` under another name:

    PYTHONPATH=OLD/src python benchmarks/choice.py run FOLDER --methods auto --label before

Prints for each method and candidate the ratio of the target's mean absolute error to that of the
frozen reference (five networks with the options of the archived protocol): geometric mean over
targets, worst target, and targets won.
"""

import argparse
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sets import TABLES, cut_table, cuts, drawn
from sets import domains as load
from vntransfer import AutoTransferRegressor, PooledRegressor, SourceOnlyRegressor, stack
from vntransfer.domains import group

Floats = NDArray[np.float64]

TEXT = ("amazon4", "amazon7i")
ROWS, TEXT_ROWS = 400, 600
"""Rows per domain; of text as in the archived protocol."""

FROZEN: dict[str, Any] = {
    "members": 5,
    "hidden": (64,),
    "width": 24,
    "input_scales": False,
    "dropout": 0.1,
    "activation": "leaky_relu",
    "epochs": 20,
    "batch_size": 64,
    "lr": 1e-2,
    "weight_decay": 1.0,
    "loss": "mixed",
}
"""``source_only_5`` of `lab/results/protocol-adaptation`, whatever the defaults become."""


class Case(NamedTuple):
    """A target: a set, how it is cut ("k3": k-means, seed 3; "q3": quantiles; "t3": as it is)."""

    name: str
    cut: str
    target: str

    def file(self, folder: Path, method: str) -> Path:
        """Where predictions of a method are kept."""
        return folder / f"{self.name}-{self.cut}-{self.target}" / f"{method}.npz"


def cases(partition: int, sets: Sequence[str]) -> Iterator[Case]:
    """List three targets of a k-means cut and both outer bins of a quantile cut of each table.

    Of text, each domain.
    """
    for name in sets:
        if name in TEXT:
            yield from (Case(name, f"t{partition}", target) for target in load(name))
        else:
            yield from (
                Case(own.name, own.how, f"d{own.target}") for own in cuts(partition, [name])
            )


def domains(name: str, cut: str) -> dict[str, tuple[Any, Floats]]:
    """Cut a set into domains of at most `ROWS` rows."""
    number = int(cut[1:])
    if cut[0] == "t":
        return drawn(name, TEXT_ROWS, number)
    return cut_table(name, cut, ROWS)


def by_auto(seed: int, X: Any, y: Floats, domain: Any, target: Any) -> dict[str, Floats]:
    """Predictions of ``auto``, and of its candidates for the target and each held-out source."""
    model = AutoTransferRegressor(random_state=seed).fit(X, y, domain)
    found = {"p": model.predict(target), "seconds": np.array(time.process_time())}
    names = list(model.candidates_held_out_)
    found["names"] = np.array(names)
    found["candidates"] = np.full((len(names), target.shape[0]), np.nan)
    for i, name in enumerate(names):
        if name in model.models_:
            found["candidates"][i] = model.models_[name].predict(target)
    for v, rows in enumerate(group(domain, len(y)).sources.values()):
        found[f"y{v}"] = y[rows]
        found[f"p{v}"] = np.array([model.candidates_held_out_[name][rows] for name in names])
    return found


def by_catboost(seed: int, X: Any, y: Floats, domain: Any, target: Any) -> dict[str, Floats]:
    """Predictions of CatBoost with its defaults."""
    from catboost import CatBoostRegressor

    own = domain != "target"
    model = CatBoostRegressor(
        random_seed=seed, thread_count=1, verbose=False, allow_writing_files=False
    )
    return {"p": np.asarray(model.fit(X[own], y[own]).predict(target))}


def by_estimator(make: Callable[[int], Any]) -> Callable[..., dict[str, Floats]]:
    """Predictions of an estimator of ours."""
    return lambda seed, X, y, domain, target: {"p": make(seed).fit(X, y, domain).predict(target)}


RUNS: dict[str, Callable[..., dict[str, Floats]]] = {
    "frozen": by_estimator(lambda seed: SourceOnlyRegressor(random_state=seed, **FROZEN)),
    "auto": by_auto,
    "boosting": by_estimator(lambda seed: PooledRegressor("boosting", random_state=seed)),
    "catboost": by_catboost,
}
BEFORE = "before"
NAMES = {
    "auto": "`auto`",
    BEFORE: "`auto` before this rule",
    "boosting": "LightGBM",
    "catboost": "CatBoost",
}


def run(
    folder: Path, partition: int, sets: Sequence[str], methods: Sequence[str], label: str
) -> None:
    """Compute what is missing in the folder; the partition is the seed, too."""
    for case in cases(partition, sets):
        todo = {name: case.file(folder, label or name) for name in methods}
        todo = {name: file for name, file in todo.items() if not file.exists()}
        if not todo or case.target not in (every := domains(case.name, case.cut)):
            continue
        x, truth = every.pop(case.target)
        X, y, domain = stack(every, target=x)
        for name, file in todo.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            start = time.process_time()
            found = RUNS[name](partition, X, y, domain, x) | {"y": truth}
            found["seconds"] = found.get("seconds", np.array(time.process_time())) - start
            handle, temporary = tempfile.mkstemp(dir=file.parent, suffix=".tmp")
            with os.fdopen(handle, "wb") as out:
                np.savez(out, **found)  # type: ignore[arg-type]
            Path(temporary).rename(file)
            print(*case, name, f"{float(found['seconds']):.1f} s of processor time", flush=True)


def errors(case: Case, folder: Path) -> dict[str, float]:
    """Error of every method and candidate that is kept for a target."""
    out: dict[str, float] = {}
    for name in ("frozen", *NAMES):
        if (file := case.file(folder, name)).exists():
            found = np.load(file)
            y, own = found["y"], {name: found["p"]}
            if name == "auto":
                own |= dict(zip(map(str, found["names"]), found["candidates"], strict=True))
            out |= {key: float(np.abs(p - y).mean()) for key, p in own.items()}
    return out


def show(folder: Path, partition: int, sets: Sequence[str]) -> None:
    """Print the table, and the ratios of ``auto`` on each set."""
    found = {case: errors(case, folder) for case in cases(partition, sets)}
    found = {case: own for case, own in found.items() if {"frozen", "auto"} <= {*own}}
    if not found:
        raise SystemExit(f"{folder}: no predictions of partition {partition}; run them first")
    kinds = {
        "tables": [c for c in found if c.name in TABLES],
        "text": [c for c in found if c.name in TEXT],
    }
    kinds = {kind: own for kind, own in kinds.items() if own}
    print("|  |" + "".join(f" {kind}: mean | worst | won |" for kind in kinds))
    print("| --- |" + " --- |" * 3 * len(kinds))
    for name in dict.fromkeys(key for own in found.values() for key in own if key != "frozen"):
        cells = ""
        for own in kinds.values():
            r = np.array([found[c].get(name, np.nan) / found[c]["frozen"] for c in own])
            if np.isnan(r).any():  # not run, or a candidate that has no weight somewhere
                cells += " | | |"
                continue
            won = f"{(r < 1).sum()}/{len(r)}"
            cells += f" {np.exp(np.log(r).mean()):.3f} | {r.max():.2f} | {won} |"
        print(f"| {NAMES.get(name, name)} |{cells}")
    for name in sets:
        each = [f"{e['auto'] / e['frozen']:.2f}" for case, e in found.items() if case.name == name]
        print(f"{name}: {' '.join(each)}")
    for name in ("auto", BEFORE):
        files = [(case.file(folder, name), case.file(folder, "frozen")) for case in found]
        pairs = [[float(np.load(f)["seconds"]) for f in two] for two in files if two[0].exists()]
        if pairs:
            ratio = np.exp(np.diff(np.log(pairs), axis=1).mean())
            print(f"{NAMES[name]}: {1 / ratio:.1f} times the reference's processor time")
    both = [own for own in found.values() if BEFORE in own]
    for name in (BEFORE, "auto") if both else ():  # where the older version was run
        r = np.array([own[name] / own["frozen"] for own in both])
        mean = np.exp(np.log(r).mean())
        print(f"{NAMES[name]}: mean {mean:.3f}, worst {r.max():.2f} on {len(r)} targets of both")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", choices=("run", "show"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--partition", type=int, default=3, help="seed of cuts and learners")
    parser.add_argument("--sets", nargs="+", default=[*TABLES, *TEXT], help="data sets")
    parser.add_argument("--methods", nargs="+", default=[*RUNS], choices=RUNS, help="what is run")
    parser.add_argument("--label", default="", help="another name for the one method that is run")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.work == "run":
        run(given.folder, given.partition, given.sets, given.methods, given.label)
    else:
        show(given.folder, given.partition, given.sets)
