"""Measure what source weights gain and lose, and draw Landmine's weights (docs/weights.md).

Run: python tools/make_weights.py [terrain landmine labeled synthetic amazon4 parkinsons] (all:
about half an hour on one idle core; the data sets of these names). It rewrites the tables between
the marks of docs/weights.md and docs/img/landmine_weights.svg.
"""

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from vntransfer import (
    PooledRegressor,
    WeightedSourceClassifier,
    WeightedSourceRegressor,
    source_weights,
    stack,
)
from vntransfer.pages import Heatmap, Panels
from vntransfer.pages.picture import write_picture
from vntransfer_lab.data import Domains as Loaded
from vntransfer_lab.data import load

DOCS = Path(__file__).resolve().parent.parent / "docs"
Domains = Mapping[str, tuple[Any, Any]]


def domains_of(name: str) -> Loaded:
    """Load a data set of named domains."""
    loaded = load(name)
    assert isinstance(loaded, Loaded), f"{name}: a stream of tasks"
    return loaded


def leave_one_out(domains: Domains, target: str) -> tuple[Any, Any, Any]:
    """Stack all other domains as sources of one."""
    sources = {name: pair for name, pair in domains.items() if name != target}
    return stack(sources, target=domains[target][0])


def note(text: str) -> None:
    """Say how far it is."""
    print(text, file=sys.stderr, flush=True)


def aucs(domains: Domains, model: Any) -> tuple[np.ndarray, list[float]]:
    """AUC on every field with all others as sources, and the sharpnesses used."""
    out, used = [], []
    for target, (x, y) in domains.items():
        model.fit(*leave_one_out(domains, target))
        out.append(roc_auc_score(y, model.predict_proba(x)[:, 1]))
        used.append(model.selection_.sharpness)
    return np.array(out), used


def landmine_table(domains: Domains, terrain: Mapping[str, str]) -> str:
    """AUC of logistic regression and boosting for several sharpnesses."""
    lines = ["| learner | sharpness | mean AUC | gain over pooling |", "| --- | --- | --- | --- |"]

    def row(learner: str, label: str, found: np.ndarray, base: np.ndarray) -> None:
        gain = found - base
        error = gain.std(ddof=1) / len(gain) ** 0.5
        shown = "" if found is base else f"{gain.mean():+.3f} ± {error:.3f}"
        lines.append(f"| {learner} | {label} | {found.mean():.3f} | {shown} |")
        note(lines[-1])

    boosting = HistGradientBoostingClassifier(early_stopping=False, random_state=0)
    for learner, estimator, sharpnesses in (
        ("logistic regression", None, (1.0, 3.0, 6.0)),
        ("boosting", boosting, (1.0, 3.0)),
    ):
        base, _ = aucs(domains, WeightedSourceClassifier(estimator, sharpness=0.0))
        row(learner, "0 (pooling)", base, base)
        for a in sharpnesses:
            found, _ = aucs(domains, WeightedSourceClassifier(estimator, sharpness=a))
            row(learner, f"{a:g}", found, base)
        if estimator is None:
            for scoring in ("log_loss", "auc"):
                found, used = aucs(domains, WeightedSourceClassifier(scoring=scoring))
                counts = ", ".join(f"{a:g} for {used.count(a)}" for a in sorted(set(used)))
                row(learner, f"auto by {scoring} (chosen: {counts})", found, base)
            row(learner, "same terrain only (needs to know it)", oracle(domains, terrain), base)
    return "\n".join(lines)


def oracle(domains: Domains, terrain: Mapping[str, str]) -> np.ndarray:
    """AUC of logistic regression on the fields of the target's own terrain."""
    out = []
    for target, (x, y) in domains.items():
        kin = {n: pair for n, pair in domains.items() if terrain[n] == terrain[target]}
        model = WeightedSourceClassifier(sharpness=0.0).fit(*leave_one_out(kin, target))
        out.append(roc_auc_score(y, model.predict_proba(x)[:, 1]))
    return np.array(out)


def regression_table(name: str, *learners: str) -> str:
    """Ratios of target MAE to pooling on a regression set."""
    domains = domains_of(name)
    lines = [
        "| data | learner | pooled MAE | a = 1 | a = 3 | auto | auto's choices |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for learner in learners:
        errors: dict[Any, list[float]] = {0: [], 1.0: [], 3.0: [], "auto": []}
        picks = []
        for target, (x, y) in domains.items():
            world = leave_one_out(domains, target)
            for a, found in errors.items():
                model: Any = PooledRegressor(learner, random_state=0)
                if a:
                    model = WeightedSourceRegressor(learner, sharpness=a, random_state=0)
                model.fit(*world)
                found.append(float(np.abs(model.predict(x) - y).mean()))
                picks += [model.selection_.sharpness] if a == "auto" else []
        cells = [f"{np.mean(errors[0]):.3f}"]
        for a in (1.0, 3.0, "auto"):
            r = np.log(np.array(errors[a]) / errors[0])
            cells.append(f"{np.exp(r.mean()):.3f} ± {r.std(ddof=1) / len(r) ** 0.5:.3f}")
        cells.append(", ".join(f"{a:g}" for a in picks))
        lines.append(f"| {name} | {learner} | {' | '.join(cells)} |")
        note(lines[-1])
    return "\n".join(lines)


def weight_table(domains: Domains, sharpness: float) -> np.ndarray:
    """Weights (targets, sources), NaN on the diagonal."""
    names = list(domains)
    table = np.full((len(names), len(names)), np.nan)
    for i, target in enumerate(names):
        found = source_weights(*leave_one_out(domains, target), sharpness=sharpness)
        for j, name in enumerate(names):
            table[i, j] = found.get(name, np.nan)
    return table


def draw_landmine(domains: Domains, terrain: Mapping[str, str]) -> str:
    """Draw the weights of all fields, and return the share on the target's own terrain."""
    names = list(domains)
    kinds = np.array([terrain[name] for name in names])
    same = kinds[:, None] == kinds[None, :]
    np.fill_diagonal(same, False)
    even = (same.sum(1) / (len(names) - 1)).mean()
    charts, said = [], []
    fields = [str(i + 1) for i in range(len(names))]
    for a in (1.0, 3.0):
        table = weight_table(domains, a)
        share = np.nansum(np.where(same, table, 0.0), axis=1).mean()
        said.append(f"sharpness {a:g}: {share:.0%} of the weight on the target's own terrain")
        title = f"a = {a:g}: {share:.0%} on the target's own terrain"
        sides: dict[str, Any] = {"row_label": "target field", "column_label": "source field"}
        charts.append(Heatmap(fields, fields, table, title, label="weight", low=0.0, **sides))
    place = DOCS / "img" / "landmine_weights.svg"
    write_picture(Panels(charts), "Weights of all fields", place, overwrite=True)
    return "; ".join(said) + f" (pooling: {even:.0%})."


def fill(page: Path, mark: str, text: str) -> None:
    """Replace what stands between the marks of a page."""
    old = page.read_text(encoding="utf-8")
    begin, end = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->"
    new, count = re.subn(
        f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: f"{begin}{text}\n{end}", old, flags=re.S
    )
    if count != 1:
        raise SystemExit(f"{page.name}: expected one pair of marks {mark!r}, found {count}")
    page.write_text(new, encoding="utf-8")


def labeled_table(domains: Domains, terrain: Mapping[str, str]) -> str:
    """AUC on the other rows when some rows of the target are labeled: conditional divergence."""
    conditional = {"divergence": "conditional_von_neumann"}
    ways: dict[str, dict[str, Any]] = {
        "pooling": {"sharpness": 0.0},
        "inputs, a = 3": {"sharpness": 3.0},
        "conditional, a = 1": {"sharpness": 1.0, **conditional},
        "conditional, a = 3": {"sharpness": 3.0, **conditional},
    }
    lines = [f"| labeled rows | {' | '.join(ways)} |", "| --- " * (len(ways) + 1) + "|"]
    rng = np.random.default_rng(0)
    for count in (20, 60, 150):
        found: dict[str, list[float]] = {way: [] for way in ways}
        for target, (x, truth) in domains.items():
            X, y, domain = leave_one_out(domains, target)
            mixed = rng.permutation(len(x))
            known, rest = np.flatnonzero(domain == "target")[mixed[:count]], mixed[count:]
            y[known] = truth[mixed[:count]]
            sources = domain != "target"
            for way, options in ways.items():
                used = known if "divergence" in options else None
                w = source_weights(X, y, domain, labeled=used, **options)
                rows = {name: (domain == name).sum() for name in w}
                weights = np.array([w[n] / rows[n] for n in domain[sources]]) * sources.sum()
                model = make_pipeline(StandardScaler(), LogisticRegression())
                model.fit(X[sources], y[sources], logisticregression__sample_weight=weights)
                found[way].append(roc_auc_score(truth[rest], model.decision_function(x[rest])))
        cells = [f"{np.mean(values):.3f}" for values in found.values()]
        lines.append(f"| {count} | {' | '.join(cells)} |")
        note(lines[-1])
    return "\n".join(lines)


PARTS: dict[str, Callable[[Domains, Mapping[str, str]], str]] = {
    "terrain": draw_landmine,
    "landmine": landmine_table,
    "labeled": labeled_table,
    "synthetic": lambda *_: regression_table("synthetic", "ridge", "boosting"),
    "amazon4": lambda *_: regression_table("amazon4", "ridge"),
    "parkinsons": lambda *_: regression_table("parkinsons", "ridge", "boosting"),
}

if __name__ == "__main__":
    landmine = domains_of("landmine")
    for part in sys.argv[1:] or PARTS:
        fill(DOCS / "weights.md", part, PARTS[part](landmine, landmine.extras["terrain"]))
