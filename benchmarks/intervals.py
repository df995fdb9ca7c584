"""Expected errors and intervals next to actual errors, on targets with known responses.

Tables are cut into domains in two ways: by k-means on the columns, and at the
quantiles of one column. Each chosen domain is the target once, without its labels. Three methods
and their mean predict it; intervals of 90 % by the weighted quantile of held-out errors as it was
("before": every row of a source alike) and as `adapt` computes them now, with its flags.

    python benchmarks/intervals.py run FOLDER --partition 3       # resumes if stopped
    python benchmarks/intervals.py page FOLDER --chosen 3 --confirmed 11

Rules and thresholds were chosen on partition 3; the page shows another partition next to it. The
second command writes docs/benchmarks/intervals.md.
"""

import argparse
import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sets import TABLES, Cut, cuts
from vntransfer import stack
from vntransfer.adaptation.candidates import FitRows, attempt
from vntransfer.domains import Groups, group
from vntransfer.storage.files import atomic_write
from vntransfer.workflows.evidence import Evidence, held_out_weights
from vntransfer.workflows.measure_place import Probe, measure_place, run_probe
from vntransfer.workflows.prediction_intervals import Calibration

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "intervals.md"
METHODS = ("ridge", "boosting", "source_only")
MEAN = "mean of the three"
ROWS, LEVEL = 300, 0.9

Floats = NDArray[np.float64]
Row = dict[str, Any]


def measure(case: Cut) -> list[Row] | None:
    """What was expected of each method, and what came."""
    if (parts := case.split(ROWS)) is None:
        return None
    places, (x_target, y_target) = parts
    X, y, domain = stack(places, target=x_target)
    groups = group(domain, len(y))
    known = y[groups.source_rows]
    tried = attempt(METHODS, FitRows(X, y, groups), random_state=0)
    there = {name: tried.model(name).predict(x_target) for name in METHODS}
    every = {name: tried.held_out[name] for name in METHODS}
    for made in (there, every):  # as `auto` bounds them
        for name in METHODS:
            made[name] = np.clip(made[name], known.min(), known.max())
        made[MEAN] = np.mean([made[name] for name in METHODS], 0)
    plain = run_probe(X, y, groups)
    probes = {"boosting": run_probe(X, y, groups, method="boosting")}
    return [
        {"set": case.name, "cut": case.how, "target": case.target, "method": name}
        | judge(X, y, groups, name, probes.get(name, plain), every[name], there[name], y_target)
        for name in (*METHODS, MEAN)
    ]


def judge(
    X: Any,
    y: Floats,
    groups: Groups,
    name: str,
    probe: Probe | None,
    held_out: Floats,
    predicted: Floats,
    truth: Floats,
) -> Row:
    """Expected error, intervals and flags as `adapt` computes them, and as they were before."""
    rows = {str(source): own for source, own in groups.sources.items()}
    gap = held_out - y
    errors = {source: float(np.abs(gap[own]).mean()) for source, own in rows.items()}
    counts = {source: len(own) for source, own in rows.items()}
    assert probe is not None
    assert groups.target is not None
    first = int(groups.target[0])
    apart = probe.disagreement(held_out, lambda some: predicted[some - first])
    gaps = {source: gap[own] for source, own in probe.rows.items()}
    weights = held_out_weights(gaps, {}, counts)
    now = Calibration.from_errors(gaps, weights, factors=apart.factors()).half_width(LEVEL)
    before = Calibration.from_errors(gaps, weights).half_width(LEVEL)
    found = measure_place(X, groups, gaps, errors, apart.unusual())
    evidence = Evidence(name, {name: errors}, {}, {}, counts, found.resemblance, found.place)
    off = np.abs(predicted - truth)
    return {
        "covered": float((off <= now).mean()),
        "covered_before": float((off <= before).mean()),
        "width": now / float(y[groups.source_rows].std()),
        "width_before": before / float(y[groups.source_rows].std()),
        "narrow": found.place.narrow,
        "unlike": found.place.unlike,
        "coverage": found.place.coverage,
        "actual": float(off.mean()),
        "expected": evidence.expected()[0],
        "expected_before": float(np.mean(list(errors.values()))),
    }


def place(folder: Path, case: Cut) -> Path:
    """Where the rows of a case are kept."""
    return folder / f"{case.name}-{case.how}-{case.target}.json"


def run(folder: Path, partition: int) -> None:
    """Compute what is missing in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for case in cuts(partition, TABLES):
        file = place(folder, case)
        if file.exists() or (found := measure(case)) is None:
            continue
        with atomic_write(file, "w") as out:
            json.dump(found, out)
        print(case, *(f"{row['covered']:.2f}" for row in found), flush=True)


def load(folder: Path, partition: int) -> list[Row]:
    """Read the rows of all targets of a partition."""
    files = [place(folder, case) for case in cuts(partition, TABLES)]
    rows = [row for file in files if file.exists() for row in json.loads(file.read_text())]
    if not rows:
        raise SystemExit(f"{folder}: nothing of partition {partition}; run it first")
    return rows


def columns(rows: list[Row]) -> Mapping[str, Floats]:
    """Give the numbers of all rows by name."""
    names = [name for name, value in rows[0].items() if not isinstance(value, str)]
    return {name: np.array([row[name] for row in rows], dtype=float) for name in names}


def coverage_line(name: str, rows: list[Row]) -> str:
    """A line on the intervals of some cases."""
    c = columns(rows)
    flagged, low = c["narrow"] > 0, c["covered"] < 0.8
    return (
        f"| {name} | {len(rows)} | {c['covered_before'].mean():.1%} | {c['covered'].mean():.1%} | "
        f"{(c['covered_before'] < 0.8).sum()} | {low.sum()} | "
        f"{c['width'].mean() / c['width_before'].mean():.3f} | {flagged.mean():.0%} | "
        f"{(flagged & low).sum()} of {low.sum()} |"
    )


def error_line(name: str, rows: list[Row]) -> str:
    """A line on expected errors of some cases."""
    c = columns(rows)
    off = {key: np.log(c["actual"] / c[key]) for key in ("expected_before", "expected")}
    shown = [f"{np.exp(np.abs(own).mean()):.3f}" for own in off.values()]
    far = c["unlike"] > 0
    ratio = f"{np.exp(off['expected'][far].mean()):.2f}" if far.any() else "none"
    cover = f"{c['covered'][far].mean():.0%}" if far.any() else "none"
    rest = f"{np.exp(off['expected'][~far].mean()):.2f}"
    return f"| {name} | {shown[0]} | {shown[1]} | {far.mean():.0%} | {ratio} ({cover}) | {rest} |"


def page(chosen: list[Row], confirmed: list[Row], at: tuple[int, int]) -> str:
    """Tabulate coverage, flags and expected errors of two partitions."""
    lines = [
        "# Expected and actual errors, and coverage of intervals",
        "",
        "<!-- not run: takes minutes -->",
        "",
        "```sh",
        f"python benchmarks/intervals.py run FOLDER --partition {at[0]}",
        f"python benchmarks/intervals.py run FOLDER --partition {at[1]}",
        f"python benchmarks/intervals.py page FOLDER --chosen {at[0]} --confirmed {at[1]}",
        "```",
        "",
        f"{len(chosen) // 4} and {len(confirmed) // 4} targets of eleven tables, {ROWS} rows per "
        "domain, cut by k-means and",
        "at the quantiles of one column. No label of a target is used. Rules and thresholds were",
        f"chosen on partition {at[0]}; partition {at[1]} had no part in it.",
        "",
        "## Intervals of 90 %",
        "",
        "*Before*: all rows of a held-out source count equally. *Now*: rows where the method and",
        "two fast learners disagree as much as at the target count more. *Width* is the ratio of",
        "mean half widths, now to before. *Flagged*: share of targets with the warning that",
        "intervals are probably too narrow. *Caught*: targets below 80 % that were flagged.",
        "",
        "| method | cases | covered before | covered now | below 80 % before | now | width | "
        "flagged | caught |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    parts = ((f"partition {at[0]}", chosen), (f"partition {at[1]}", confirmed))
    for title, rows in parts:
        for name in (*METHODS, MEAN):
            own = [row for row in rows if row["method"] == name]
            lines.append(coverage_line(f"{title}: {name}", own))
        lines.append(coverage_line(f"**{title}: all**", rows))
    lines += [
        "",
        "## Expected error",
        "",
        "*Off by*: the geometric mean of max(actual/expected, expected/actual), for the plain mean",
        "over held-out sources (before) and for the robust mean by resemblance and rows (now).",
        "*Unlike*: share of targets that are reported to resemble no source; then the ratio of",
        "actual to expected error and the coverage at these targets, and the ratio elsewhere.",
        "",
        "| method | off by, before | off by, now | unlike | actual/expected there (coverage) | "
        "elsewhere |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for title, rows in parts:
        for name in (*METHODS, MEAN):
            own = [row for row in rows if row["method"] == name]
            lines.append(error_line(f"{title}: {name}", own))
        lines.append(error_line(f"**{title}: all**", rows))
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", choices=("run", "page"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--partition", type=int, default=3, help="seed of the cuts")
    parser.add_argument("--chosen", type=int, default=3)
    parser.add_argument("--confirmed", type=int, default=11)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.work == "run":
        run(given.folder, given.partition)
    else:
        at = (given.chosen, given.confirmed)
        first, second = (load(given.folder, partition) for partition in at)
        PAGE.write_text(page(first, second, at), encoding="utf-8")
