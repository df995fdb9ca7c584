"""The result of `relate`, with methods for the usual questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vntransfer.checks import names as check_names
from vntransfer.checks import whole
from vntransfer.display import counted, data_frame, listed, one_line, rounded, short
from vntransfer.errors import DomainError
from vntransfer.relations._smoother import Matrix

LEVEL = 0.05
"""Level at which places count as different."""

STATISTIC = "difference of the relation (statistic of the test)"
"""Label of the values in maps."""

SHOWN = 8
"""Number of places whose closest ones a summary names."""


def color_end(values: Matrix) -> float | None:
    """End of the colors of a map: one outlying place does not pale the rest; None if all are zero.

    It is twice the 80 % quantile without the place of the largest median, at most the maximum.
    """
    off = np.where(np.eye(len(values), dtype=bool), np.nan, values)
    known = [column[np.isfinite(column)] for column in off.T]
    medians = [np.median(own) if len(own) else -np.inf for own in known]
    rest = np.delete(np.arange(len(values)), np.argmax(medians)) if len(values) > 3 else slice(None)
    core, every = off[rest][:, rest], off[np.isfinite(off)]
    core = core[np.isfinite(core)]
    ends = [2 * np.quantile(core, 0.8) if len(core) else 0.0, every.max(initial=0.0)]
    return min((float(end) for end in ends if end > 0), default=None)


class Neighbor(NamedTuple):
    """How close a place is to another: divergence, its interval, p-value, inputs, and statistic.

    Rankings and groups use ``statistic``, the statistic of the test: how far both places are from
    one relation fitted to both. The divergence also grows if only the inputs differ.
    """

    name: str
    divergence: float
    low: float
    high: float
    p_value: float
    features_alone: float
    statistic: float

    @property
    def different(self) -> bool:
        """Whether the test finds the places different."""
        return self.p_value <= LEVEL


class PairTests:
    """What follows from the p-values (K, K) of all pairs: which were tested, which differ."""

    names: tuple[str, ...]
    p_values: Matrix

    @property
    def tested(self) -> list[tuple[int, int]]:
        """Positions of the pairs that were tested."""
        pairs = combinations(range(len(self.names)), 2)
        return [pair for pair in pairs if np.isfinite(self.p_values[pair])]

    def different(self, level: float = LEVEL) -> list[tuple[str, str]]:
        """Pairs whose p-value (corrected for their number) is at most ``level``."""
        far = (pair for pair in self.tested if self.p_values[pair] <= level)
        return [(self.names[i], self.names[j]) for i, j in far]


@dataclass(frozen=True)
class Interval:
    """Lower and upper ends (K, K) of the intervals of divergences."""

    low: Matrix
    high: Matrix

    def __repr__(self) -> str:
        return f"<Interval: low and high ends of {len(self.low)} x {len(self.low)} divergences>"


@dataclass(frozen=True, eq=False)
class Relation(PairTests):
    """How K places relate to each other.

    Matrices are (K, K), symmetric, in the order of ``names``, and NaN where a place has no
    responses. Numbers are in units of the pooled variance: columns are standardized on the rows of
    all places together.

    Parameters
    ----------
    names
        Names of the places.
    rows
        Place -> numbers of rows with and without a response.
    divergences
        Divergences of [features, response].
    intervals
        Intervals of these divergences.
    features_alone
        Divergences of the features alone.
    p_values, raw_p_values
        P-values with and without Holm's correction; NaN if not tested.
    statistics
        Statistic of the test of each pair, which rankings and groups use: the divergence between
        each of the two places and the relation fitted to both, on its own inputs. NaN if a place
        has too few rows.
    settings
        The options of the comparison, as plain values.
    notes
        Remarks on the data, such as ignored columns.
    treatment
        Name, kind and treatment of every column of the table.
    """

    names: tuple[str, ...]
    rows: Mapping[str, tuple[int, int]]
    divergences: Matrix
    intervals: Interval
    features_alone: Matrix
    p_values: Matrix
    raw_p_values: Matrix
    statistics: Matrix
    settings: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    treatment: tuple[tuple[str, str, str], ...] = field(default=(), repr=False)

    @property
    def labeled(self) -> list[str]:
        """Places with responses."""
        return [name for name in self.names if self.rows[name][0] >= 2]

    @property
    def _matrices(self) -> dict[str, Matrix]:
        """Columns of a table of pairs."""
        return {
            "divergence": self.divergences,
            "low": self.intervals.low,
            "high": self.intervals.high,
            "p_value": self.p_values,
            "raw_p_value": self.raw_p_values,
            "features_alone": self.features_alone,
            "statistic": self.statistics,
        }

    def at(self, name: str | float) -> int:
        """Position of a place."""
        written, *more = check_names("target", name)
        if more or written not in self.names:
            raise DomainError(f"target: no place {name!r}; known: {', '.join(self.names)}")
        return self.names.index(written)

    def among(self, names: Sequence[str], matrix: Matrix) -> Matrix:
        """Part of a matrix for some places, in their order."""
        at = [self.at(name) for name in names]
        return matrix[np.ix_(at, at)]

    def ranking(self, target: str | float) -> list[Neighbor]:
        """Places with responses, the one closest to ``target`` first.

        They are ordered by the statistic of the test; places with too few rows for the test come
        last, ordered by the divergence. If the target has no responses, only the divergence of the
        features is known, and it gives the order.

        Parameters
        ----------
        target
            Name of a place.
        """
        i, labeled = self.at(target), [self.at(name) for name in self.labeled]
        known = i in labeled

        def order(j: int) -> tuple[bool, float, float]:
            if not known:
                return False, 0.0, float(self.features_alone[i, j])
            own = self.statistics[i, j]
            return bool(np.isnan(own)), float(np.nan_to_num(own)), float(self.divergences[i, j])

        matrices = self._matrices
        return [
            Neighbor(self.names[j], *(float(matrices[key][i, j]) for key in Neighbor._fields[1:]))
            for j in sorted(labeled, key=order)
            if j != i
        ]

    def linkage(self) -> Matrix:
        """Tree of scipy's hierarchical clustering (complete linkage) of the places with responses.

        It uses the statistic of the test; places with too few rows for the test join last. If no
        place has enough rows, it uses the divergence. The height of a group is the largest
        statistic between two of its places, so a tree that is cut below the statistic of a pair
        never joins the pair.
        """
        from scipy.cluster.hierarchy import linkage
        from scipy.spatial.distance import squareform

        table = self.among(self.labeled, self.statistics)
        known = table[~np.eye(len(table), dtype=bool) & np.isfinite(table)]
        if len(known):
            table = np.where(np.isfinite(table), table, known.max())
        else:
            table = self.among(self.labeled, self.divergences)
        if len(table) < 2:
            raise DomainError("linkage: needs at least two places with responses")
        flat = squareform(table, checks=False)
        return np.asarray(linkage(flat, "complete", optimal_ordering=True))

    @property
    def order(self) -> list[str]:
        """Names so that places that are alike stand together; those without responses last."""
        from scipy.cluster.hierarchy import leaves_list

        known = self.labeled
        first = [known[k] for k in leaves_list(self.linkage())] if len(known) > 1 else known
        return [*first, *(name for name in self.names if name not in first)]

    def groups(self, n_groups: int) -> list[list[str]]:
        """Places with responses in ``n_groups`` groups, by cutting the tree of `linkage`.

        If ``n_groups`` is small, a group may contain places that the test finds different; see
        `mark`.

        Parameters
        ----------
        n_groups
            Number of groups, from 1 to the number of these places.
        """
        from scipy.cluster.hierarchy import fcluster

        known = self.labeled
        count = whole("n_groups", n_groups, minimum=1, maximum=len(known))
        label = fcluster(self.linkage(), count, "maxclust")
        return [
            [n for n, k in zip(known, label, strict=True) if k == g] for g in sorted(set(label))
        ]

    def mark(self, one: str, other: str) -> str:
        """Verdict on a pair: "≠" different, "·" no significant difference, "?" not tested.

        Parameters
        ----------
        one, other
            Names of places.
        """
        p = self.p_values[self.at(one), self.at(other)]
        return "?" if np.isnan(p) else "≠" if p <= LEVEL else "·"

    def table(self) -> list[dict[str, Any]]:
        """One record per pair, for a data frame.

        Examples
        --------
        >>> from vntransfer import relate
        >>> rng = np.random.default_rng(0)
        >>> X = {name: rng.normal(size=(50, 2)) for name in "abc"}
        >>> domains = {name: (x, x.sum(1)) for name, x in X.items()}
        >>> found = relate(domains, n_resamples=299, n_bootstrap=20)
        >>> {"a", "b", "statistic", "p_value"} <= set(found.table()[0])
        True
        """
        matrices = self._matrices
        return [
            {"a": self.names[i], "b": self.names[j]}
            | {key: float(matrix[i, j]) for key, matrix in matrices.items()}
            for i, j in combinations(range(len(self.names)), 2)
        ]

    def to_frame(self) -> Any:
        """Return `table` as a pandas data frame, one row per pair of places."""
        records = self.table()
        keys = ("a", "b", *self._matrices)
        return data_frame("to_frame", {key: [own[key] for own in records] for key in keys})

    def summary(self) -> str:
        """Describe which places differ, and which are closest to each."""
        from vntransfer.relations.explain import verdict

        unknown = [name for name in self.names if name not in self.labeled]
        lines = [short(text, 300) for text in verdict(self)]
        for name in [*unknown, *self.labeled][:SHOWN]:
            near = self.ranking(name)
            known = name in self.labeled
            shown = [
                f"{short(own.name)} ({rounded(own.statistic if known else own.features_alone)}"
                f"{', different' if own.different else ''})"
                for own in near[:3]
            ]
            why = "" if known else " by features alone (it has no responses)"
            lines.append(f"Closest to {short(name)}{why}: {', '.join(shown)}.")
        if len(self.names) > SHOWN:
            lines.append(f"{len(self.names) - SHOWN} more places: see ranking().")
        return "\n".join(lines)

    def __repr__(self) -> str:
        differ = f"{len(self.different())} of {counted(len(self.tested), 'tested pair')} differ"
        if not self.tested:
            differ = "no pair has enough rows to be tested"
        return one_line(f"Relation of {counted(len(self.names), 'place')}: {differ}")

    def _repr_html_(self) -> str:
        from vntransfer.pages.table import MOST, fragment
        from vntransfer.relations.explain import verdict

        far, rows = self.different(), []
        for name in self.names[:MOST]:
            labeled, bare = self.rows[name]
            known = name in self.labeled
            near = next(iter(self.ranking(name)), None)
            others = [b if a == name else a for a, b in far if name in (a, b)]
            cells = ["", ""]
            if near is not None:
                value = near.statistic if known else near.features_alone
                cells = [short(near.name, 60), rounded(value) + ("" if known else " (features)")]
            rows.append((short(name, 60), f"{labeled + bare:,}", *cells, listed(others, 5)))
        header = ("place", "rows", "closest place", "difference", "different from")
        return fragment([short(text, 300) for text in verdict(self)], header, rows, len(self.names))

    def to_page(
        self,
        path: str | Path,
        *,
        title: str = "Which places behave alike",
        overwrite: bool = False,
    ) -> Path:
        """Write the result as a self-contained HTML file, and return its path.

        Parameters
        ----------
        path
            File to write, .html or .htm.
        title
            Title of the page.
        overwrite
            Replace an existing file even if it is not a page of vntransfer.
        """
        from vntransfer.relations._page import make_page

        return make_page(self, title).write(path, overwrite=overwrite)
