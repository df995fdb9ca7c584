"""Number of data sets that differ, by our intervals and by the percentile bootstrap.

Both draw targets and, within each, seeds with replacement, pair method and baseline and correct by
Holm over the data sets. Ours has Student's t with the standard error of these resamples; the plain
bootstrap counts resamples whose mean difference has the other sign, which finds too much where
targets are few (docs/statistics.md). The table of docs/protocol.md.

    python benchmarks/percentiles.py lab/results/protocol-adaptation align:source_only auto:boosting
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from vntransfer.holm import holm
from vntransfer_lab.reports.report import View, against_baseline, condition_text, load_report

Runs = Mapping[str, Mapping[int, float]]  # target -> seed -> value

RESAMPLES = 20_000
HEADER = "| method | baseline | ours: better/worse | percentiles: better | percentiles: worse |"


def resampled_means(d: np.ndarray, rng: np.random.Generator, resamples: int) -> np.ndarray:
    """Hierarchical bootstrap of d (targets x seeds): targets, and within each its seeds."""
    targets, seeds = d.shape
    rows = rng.integers(targets, size=(resamples, targets, 1))
    columns = rng.integers(seeds, size=(resamples, targets, seeds))
    means: np.ndarray = d[rows, columns].mean((1, 2))
    return means


def paired(method: Runs, baseline: Runs) -> np.ndarray | None:
    """Differences, targets x seeds; None unless both have the same seeds of every target."""
    seeds = {frozenset(run) for runs in (method, baseline) for run in runs.values()}
    if method.keys() != baseline.keys() or len(seeds) != 1:
        return None
    (every,) = seeds
    return np.array(
        [[method[name][seed] - baseline[name][seed] for seed in sorted(every)] for name in method]
    )


def line(folder: str | Path, method: str, baseline: str) -> str:
    """One row: the tally of the tables, and the data sets that percentiles tell apart."""
    loaded = load_report(folder, View(methods=(method,), baseline=baseline))
    ours = [verdict for _, _, verdict in against_baseline(loaded, method).values()]
    rng = np.random.default_rng(0)
    signs, ps = {}, []
    for data, condition in loaded.chosen:
        values = loaded.values(data, condition)
        d = paired(values.get(method, {}), values.get(baseline, {}))
        if d is None:
            raise SystemExit(f"{data}: cells of {method} or {baseline} are missing; end the run")
        means = resampled_means(d, rng, RESAMPLES)
        tail = min((means <= 0).sum(), (means >= 0).sum())
        ps.append(min(1.0, 2 * (tail + 1) / (RESAMPLES + 1)))
        signs[data, condition_text(condition)] = (d.mean() > 0) == loaded.kind.higher_is_better
    found: dict[bool, list[str]] = {True: [], False: []}
    for (group, better), p in zip(signs.items(), holm(ps), strict=True):
        if p <= 0.05:
            found[bool(better)].append(f"`{', '.join(filter(None, group))}`")
    tally = f"{ours.count('better')}/{ours.count('worse')}"
    named = [f"{len(names)}: {', '.join(names)}" if names else "0" for names in found.values()]
    return f"| {method} | {baseline} | {tally} | {' | '.join(named)} |"


def pair(text: str) -> tuple[str, str]:
    method, _, baseline = text.partition(":")
    if not method or not baseline:
        raise argparse.ArgumentTypeError(f"expected METHOD:BASELINE, got {text!r}")
    return method, baseline


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", help="a run folder or packed result")
    parser.add_argument("pairs", nargs="+", metavar="METHOD:BASELINE", type=pair)
    given = parser.parse_args()
    print(f"{HEADER}\n| --- | --- | --- | --- | --- |")
    for method, baseline in given.pairs:
        print(line(given.folder, method, baseline), flush=True)


if __name__ == "__main__":
    main()
