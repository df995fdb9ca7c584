"""Where the target lies: its resemblance to each source, and how far held-out sources were off.

The same numbers are computed for the target and for every held-out source in its place:
their values at held-out sources, whose errors are known, show what they mean for the target.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from vntransfer.display import listed, percent, rounded

FAR = 2.0
"""Times the distance of the farthest held-out source from which on a target resembles none."""

MANY = 100
"""Times above which the exact number says nothing."""

LEVEL = 0.9
LEAST_COVERED = 0.82
"""Coverage to expect of intervals of 90 % below which they are called too narrow."""


@dataclass(frozen=True)
class TargetPlace:
    """How far the target is from the sources, compared with each source from the others.

    The distance of a place is how far its inputs reach `beyond` the nearest source by
    `source_weights`. The target resembles no source if it is twice as far away as any held-out
    source is (and as parts of the nearest source of the target's size are from the rest of it).

    The coverage to expect of intervals of 90 % is the coverage on held-out sources by errors on the
    others, weighted by resemblance, less half the share of the target's rows where the model and
    two fast learners disagree more than on 95 % of held-out rows.
    """

    distance: float  # of the target from its nearest source
    noise: float  # largest distance of a random part of that source from its rest
    outside: float  # share of the target's rows with a value outside the sources' range
    # source -> the same, when it was held out
    distances: Mapping[str, float] = field(default_factory=dict)
    # source -> its error over what the other sources let expect
    ratios: Mapping[str, float] = field(default_factory=dict)
    # source -> share of its rows inside intervals of 90 % that the other sources give
    covered: Mapping[str, float] = field(default_factory=dict)
    typical_cover: float = LEVEL  # mean of them, by resemblance to the target
    disagreement: float = 0.0  # share of the target's rows with unusual disagreement

    @property
    def unlike(self) -> bool:
        """Whether the target resembles no source."""
        known = max([*self.distances.values(), self.noise])
        return len(self.distances) > 1 and self.distance > FAR * known

    @property
    def coverage(self) -> float:
        """Coverage to expect of intervals of 90 %."""
        return max(0.0, self.typical_cover - self.disagreement / 2)

    @property
    def narrow(self) -> bool:
        """Whether intervals are probably too narrow."""
        return bool(self.covered) and self.coverage < LEAST_COVERED

    def alike(self) -> list[str]:
        """Held-out sources that were as far from the others, for what the others were."""
        out = []
        for name, own in self.distances.items():
            others = [far for other, far in self.distances.items() if other != name]
            if name in self.ratios and others and own > FAR * max(others):
                out.append(name)
        return out

    def why(self) -> str:
        """Describe how far away the target is."""
        known = max([*self.distances.values(), self.noise])
        ratio = self.distance / known if known > 0 else np.inf
        times = f"more than {MANY}" if ratio > MANY else rounded(ratio, 2)
        said = (
            f"its inputs reach {times} times as far beyond the nearest source as those of any "
            f"held-out source"
        )
        if self.outside > 0.05:
            said += (
                f", and {percent(self.outside)} of its rows have values outside the sources' range"
            )
        return said

    def optimism(self) -> str:
        """Describe how far off expectations were for held-out sources of that kind."""
        both = "Expected error and intervals"
        if not (names := self.alike()):
            return (
                f"{both} may be optimistic; by how much is unknown, because no held-out source was "
                f"so far beyond the others."
            )
        ratio = float(np.exp(np.mean(np.log([max(self.ratios[name], 1e-9) for name in names]))))
        cover = float(np.mean([self.covered[name] for name in names]))
        off = ratio > 1 or cover < LEVEL
        return (
            f"{both} {'are' if off else 'may be'} optimistic: for {listed(names)}, which lay as "
            f"far beyond the other sources, the actual error was {rounded(ratio, 2)} times the "
            f"expected one and intervals of 90 % covered {percent(cover)}."
        )
