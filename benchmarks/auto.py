"""How should candidates be combined? Choosing one, means by scores, a stack, a guarded stack.

Each domain of a set is the target once, without labels. All candidates of `AutoTransferRegressor`
predict held-out sources and the target; the ways to combine them differ in what they make of that.
Prints ratios of the target's mean absolute error to that of boosting (geometric means).

    python benchmarks/auto.py --rows 300 --targets 3 --cache FOLDER synthetic bike parkinsons
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from sets import domains, drawn
from vntransfer import stack as stack_domains
from vntransfer.adaptation._selection import LEAST
from vntransfer.adaptation.candidates import CANDIDATES, attempt
from vntransfer.adaptation.guarded_choice import guard, stack
from vntransfer.domains import group

NAMES = list(CANDIDATES)


def predictions(name: str, target: str, most: int, cache: Path | None) -> dict[str, Any]:
    """Predictions (C, n) of the target's rows and of each held-out source's, with responses."""
    file = None if cache is None else cache / f"{name}-{target}-{most}.npz"
    if file is not None and file.exists():
        return dict(np.load(file))
    sources = drawn(name, most, in_order=True)
    x_target, y_target = sources.pop(target)
    X, y, domain = stack_domains(sources, target=x_target)
    groups = group(domain, len(y))
    tried = attempt(NAMES, X, y, groups, random_state=0)
    found: dict[str, Any] = {"y": y_target}
    found["p"] = np.array([tried.model(own).predict(x_target) for own in NAMES])
    every = np.array([tried.held_out[own] for own in NAMES])
    for v, rows in enumerate(groups.sources.values()):
        found[f"y{v}"], found[f"p{v}"] = y[rows], every[:, rows]
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, **found)
    return found


def ratios(found: dict[str, Any]) -> dict[str, float]:
    """Error of every candidate and combination on the target, relative to boosting's."""
    n = sum(key.startswith("p") for key in found) - 1
    P, Y = [found[f"p{v}"] for v in range(n)], [found[f"y{v}"] for v in range(n)]
    errors = np.array([np.abs(p - y).mean(1) for p, y in zip(P, Y, strict=True)])
    eye, scored, stacked = np.eye(len(NAMES)), guard(errors), stack(P, Y)
    weights = dict(zip(NAMES, eye, strict=True))
    weights["lowest mean error"] = eye[np.log(errors / errors[:, :1]).mean(0).argmin()]
    weights["best by score"] = eye[scored.best]
    for t in (0.02, 0.05, 0.1):
        weights[f"mean by score, temperature {t}"] = guard(errors, temperature=t).shares
    weights["stack"] = stacked.weights
    surely = stacked.ratio + 0.5 * stacked.standard_error < 0
    weights["stack if better by half a standard error"] = stacked.weights if surely else eye[0]
    here = np.abs(found["p"] - found["p"][0]).mean(1)
    there = np.max([np.abs(p - p[0]).mean(1) for p in P], axis=0)
    better = (errors[:, :1] / np.maximum(errors, 1e-300)).min(0)
    near = here <= np.maximum(1, better) * there
    within = stack([p[near] for p in P], Y)
    surely = within.ratio + 0.5 * within.standard_error < 0
    for text, taken in (
        ("the same, without what is far", surely),
        ("stack unless worse by a standard error, without what is far (auto)", not within.worse),
    ):
        weights[text] = np.zeros(len(NAMES))
        weights[text][near] = within.weights if taken else eye[0][near]
    out = {}
    for name, w in weights.items():
        kept = np.where(w < LEAST, 0.0, w)
        out[name] = float(np.abs(kept / kept.sum() @ found["p"] - found["y"]).mean())
    if not out["boosting"]:
        raise SystemExit("boosting makes no error on a target, so that there are no ratios to it")
    return {name: error / out["boosting"] for name, error in out.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--targets", type=int, default=3)
    parser.add_argument("--cache", type=Path)
    given = parser.parse_args()
    table: dict[str, list[float]] = {}
    counts = []
    for name in given.sets:
        targets = list(domains(name))[: given.targets]
        own = [ratios(predictions(name, t, given.rows, given.cache)) for t in targets]
        counts.append(len(own))
        for key in own[0]:
            logs = [np.log(one[key]) for one in own]
            table.setdefault(key, []).append(float(np.exp(np.mean(logs))))
    heads = [f"{name} ({n} targets)" for name, n in zip(given.sets, counts, strict=True)]
    print("| combination |", " | ".join(heads), "| mean |")
    print("| --- |" + " --- |" * (len(heads) + 1))
    for key, values in table.items():
        mean = np.exp(np.log(values).mean())
        print(f"| {key} |", " | ".join(f"{value:.3f}" for value in (*values, mean)), "|")
