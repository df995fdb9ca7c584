"""Weights of the candidates of a method from held-out sources, without target labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.adaptation._data import Data
from vntransfer.adaptation._member_training import FitRun, TrainingPlan, train_members
from vntransfer.adaptation.guarded_choice import guard
from vntransfer.display import listed, one_line, short
from vntransfer.domains import Groups, Name, Rows
from vntransfer.step_times import StepTimes

if TYPE_CHECKING:
    from vntransfer.adaptation._base import DomainRegressor

SAFE = "source_only"
LEAST = 0.01
"""Candidates with a smaller share are left out."""

EFFORT = 0.5
"""Share of the epochs that held-out sources are predicted with: enough to compare candidates."""

TESTED = 4000
"""Rows of a held-out source on which candidates are compared, at most."""


MOST = 20
"""Sources that are held out, at most: costs would grow with the square of their number."""


def held_out_sources(sources: Mapping[Name, Rows]) -> dict[Name, Rows]:
    """Choose the sources that are held out: all, or at most twenty, evenly spaced."""
    every, count = list(sources.items()), min(len(sources), MOST)
    return dict(every[i * len(every) // count] for i in range(count))


@dataclass(frozen=True, kw_only=True, repr=False)
class Choice:
    """What was chosen, and why."""

    candidates: tuple[str, ...]  # the reference first
    shares: dict[str, float]  # of each in the mean of predictions
    scores: dict[str, float] = field(
        default_factory=dict
    )  # log ratios to the reference: below 0 is better
    reason: str = ""

    @property
    def chosen(self) -> str:
        """The candidate with the largest share."""
        return max(self.shares, key=self.shares.__getitem__)

    def summary(self) -> str:
        """Say in words what was chosen and why."""
        reason = short(self.reason, 400).rstrip(".") or "no reason was recorded"
        said = f"{reason[:1].upper()}{reason[1:]}."
        return f"{said}\nWeights: {shares_text(self.shares, 9)}."

    def __repr__(self) -> str:
        n, name = len(self.candidates), type(self).__name__
        return one_line(f"{name} among {n} candidates: {shares_text(self.shares)}")


@dataclass(frozen=True, kw_only=True, repr=False)
class Selection(Choice):
    """What ``trade_off="auto"`` chose, and why; source-only is the reference.

    Parameters
    ----------
    candidates, shares, scores, reason
        See `Choice`.
    options
        Options of each candidate.
    ratios
        The log ratios: held-out source -> candidate -> value.
    """

    options: tuple[Mapping[str, Any], ...]
    ratios: dict[Name, dict[str, float]] = field(default_factory=dict)


def shares_text(shares: Mapping[str, float], most: int = 2) -> str:
    """Name the candidates that have a weight, the largest first."""
    used = sorted((-share, name) for name, share in shares.items() if share > 0)
    return listed((f"{short(name)} {-100 * share:.0f} %" for share, name in used), most, 40)


@dataclass(frozen=True)
class HeldOutCandidates:
    """What candidates predict for each held-out source."""

    rows: tuple[Rows, ...]  # those of each held-out source that were predicted
    # (members + C, n, m) for each: of source-only, then of candidates
    predictions: tuple[NDArray[np.float32], ...]
    step_times: StepTimes

    def errors(self, data: Data) -> NDArray[np.float64]:
        """Mean absolute errors (V, 1 + C)."""
        found = []
        for rows, predicted in zip(self.rows, self.predictions, strict=True):
            gaps = np.abs(predicted - data.responses(rows).cpu().numpy()).mean(2)
            w = data.mass(rows).numpy()
            found.append(gaps @ w / w.sum() if w.sum() > 0 else gaps.mean(1))
        return np.array(found, dtype=np.float64)


def label(options: Mapping[str, Any]) -> str:
    """Name of a candidate, such as "trade_off=1, learn_weights=False"."""
    return ", ".join(
        f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in options.items()
    )


def select(
    model: "DomainRegressor", data: Data, groups: Groups, run: FitRun
) -> tuple[Selection, HeldOutCandidates | None]:
    """Compare the method's candidates with source-only on held-out sources.

    Responses are scaled and predictions bounded as in the fit itself, by the responses of all
    sources, the held-out one among them: the same for all candidates. Inputs of a held-out source
    are kept within the range of the other sources, as those of a target are.
    """
    options: list[Mapping[str, Any]] = [{}, *model._candidates()]
    names = (SAFE, *map(label, options[1:]))
    if len(groups.sources) < 2:
        alone = Selection(
            candidates=names,
            options=tuple(options),
            shares={name: float(name == SAFE) for name in names},
            reason="source-only: leave-one-source-out needs at least two sources",
        )
        return alone, None
    seen = held_out_candidates(model, data, groups, run, options[1:])
    found = guard(seen.errors(data))
    shares = np.where(found.shares < LEAST, 0.0, found.shares)
    shares /= shares.sum()
    chosen = Selection(
        candidates=names,
        options=tuple(options),
        shares=dict(zip(names, shares.tolist(), strict=True)),
        scores=dict(zip(names, found.scores.tolist(), strict=True)),
        ratios={
            name: dict(zip(names, row.tolist(), strict=True))
            for name, row in zip(held_out_sources(groups.sources), found.ratios, strict=True)
        },
        reason=_reason(names, found.scores, shares, len(found.ratios)),
    )
    return chosen, seen


def _reason(
    names: Sequence[str], scores: NDArray[np.float64], shares: NDArray[np.float64], n: int
) -> str:
    if shares[0] > 0.99:
        return f"source-only: no candidate was clearly better on the {n} held-out sources"
    best = int(scores.argmin())
    if best == 0:
        return (
            f"source-only leads, others are as good within a standard error ({n} held-out sources)"
        )
    change = 100 * (np.exp(scores[best]) - 1)
    return (
        f"{names[best]}: error at least {-change:.1f} % below source-only's on the mean of {n} "
        f"held-out sources, less one standard error"
    )


def held_out_candidates(
    model: "DomainRegressor",
    data: Data,
    groups: Groups,
    run: FitRun,
    options: Sequence[Mapping[str, Any]] = (),
    members: int = 1,
) -> HeldOutCandidates:
    """Train source-only members and candidates without each held-out source, and predict it."""
    domains = list(groups.sources.values())
    k = len(domains)
    data, targets = data.limited(domains) if model.clip_inputs else (data, domains)
    played = [list(groups.sources).index(name) for name in held_out_sources(groups.sources)]
    others = [[i for i in range(k) if i != v] for v in played]
    sources, size = domains, model.batch_size
    order = np.array([[*own, k + v] for v, own in zip(played, others, strict=True)])
    if model._merges():
        sources = [np.sort(np.concatenate([domains[i] for i in own])) for own in others]
        order, size = np.array([[i, len(played) + v] for i, v in enumerate(played)]), (k - 1) * size
    every, v, c = [*sources, *targets], len(order), len(options)
    plans = [
        TrainingPlan(
            "selection-source",
            every[: 1 + order[:, :-1].max()],
            order=order[:, :-1].repeat(members, 0),
            options=[{}] * (v * members),
            adapts=False,
            batch_size=size,
            shares=np.full(v * members, 1 / (v * members)),
            starts=members,
            effort=EFFORT,
        )
    ]
    if options:
        plans.append(
            TrainingPlan(
                "selection-adapted",
                every,
                order=order.repeat(c, 0),
                options=[option for _ in range(v) for option in options],
                adapts=True,
                batch_size=size,
                shares=np.full(v * c, 1 / (v * c)),
                starts=1,
                effort=EFFORT,
                strict=False,
            )
        )
    found: list[list[NDArray[np.float32]]] = [[] for _ in range(v)]
    times = StepTimes()
    for plan in plans:
        trained = train_members(model, data, plan, run)
        times += trained.step_times
        for i, target in enumerate(order[:, -1]):
            own = data.bound(trained.predict(data, tested_rows(every[target]))).numpy()
            found[i].append(own.reshape(v, -1, *own.shape[1:])[i])
    rows = tuple(tested_rows(domains[v]) for v in played)
    return HeldOutCandidates(rows, tuple(np.concatenate(parts) for parts in found), times)


def tested_rows(rows: Rows) -> Rows:
    """Rows of a held-out source on which candidates are compared."""
    return rows[:: -(-len(rows) // TESTED)]
