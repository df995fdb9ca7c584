"""How often the intervals of the tables cover the true value, compared with plain percentiles.

python benchmarks/coverage.py
"""

import numpy as np

from percentiles import resampled_means
from vntransfer_lab.reports.statistics import difference

TRIALS, RESAMPLES = 1000, 1000


def coverage(targets: int, seeds: int, between: float, within: float) -> tuple[float, float]:
    """Share of trials whose interval covers zero, ours and percentile; the truth is zero."""
    rng = np.random.default_rng(0)
    ours = plain = 0
    for _ in range(TRIALS):
        d = between * rng.standard_normal((targets, 1)) if targets > 1 else np.zeros((1, 1))
        d = d + within * rng.standard_normal((targets, seeds))
        table = {str(k): dict(enumerate(row)) for k, row in enumerate(d)}
        zero = {k: dict.fromkeys(row, 0.0) for k, row in table.items()}
        found = difference(table, zero)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        ours += found.low <= 0 <= found.high
        low, high = np.quantile(resampled_means(d, rng, RESAMPLES), [0.025, 0.975])
        plain += low <= 0 <= high
    return ours / TRIALS, plain / TRIALS


def main() -> None:
    print("| targets | seeds | spread of targets : seeds | ours | percentile bootstrap |")
    print("| --- | --- | --- | --- | --- |")
    for targets, seeds, between, within in (
        (1, 5, 0, 1),
        (4, 5, 1, 1),
        (6, 5, 1, 1),
        (6, 5, 0, 1),
        (6, 5, 1, 0.2),
        (25, 5, 1, 1),
    ):
        ours, plain = coverage(targets, seeds, between, within)
        print(f"| {targets} | {seeds} | {between} : {within} | {ours:.3f} | {plain:.3f} |")


if __name__ == "__main__":
    main()
