"""The result for one target: its evidence, and the sentences that follow from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from vntransfer.display import counted, listed, one_line, plus_minus, rounded, short
from vntransfer.tables.problem import LABELED
from vntransfer.workflows.evidence import Evidence
from vntransfer.workflows.response_transform import ResponseTransform


@dataclass(frozen=True)
class TargetOutcome:
    """The result for one target."""

    target: str
    rows: int
    reason: str  # what was chosen and why, if there was a choice
    evidence: Evidence
    transform: ResponseTransform = field(default_factory=ResponseTransform)

    @property
    def method(self) -> str:
        """The method that was asked for."""
        return self.evidence.method

    @property
    def shares(self) -> Mapping[str, float]:
        """Weights of the candidates in the prediction, if there are several."""
        return self.evidence.shares

    @property
    def source_weights(self) -> Mapping[str, float]:
        """Weights of the sources in the prediction."""
        return self.evidence.source_weights

    @property
    def errors(self) -> Mapping[str, Mapping[str, float]]:
        """Method -> held-out source -> mean absolute error."""
        return self.evidence.errors

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to be careful about, the most important first."""
        return tuple(found.text for found in self.evidence.findings())

    def expected(self, method: str | None = None) -> tuple[float, float]:
        """Give the expected error and its standard error, see `Evidence`; NaN if unknown."""
        return self.evidence.expected(method)

    def labels_used(self) -> str:
        """Say in words whether labels of the target were used."""
        if self.target + LABELED in self.source_weights:
            return "Labeled rows of the target were used as one more source."
        return "No labels from the target were used."

    def expected_text(self, unit: str = "") -> str:
        """Return the expected error, rounded: "expected error 18.9 ± 1.3 price"."""
        mean, spread = self.expected()
        if not np.isfinite(mean):
            return "expected error unknown"
        return f"expected error {plus_minus(mean, spread)} {short(unit)}".rstrip()

    def answer(self, unit: str = "") -> list[str]:
        """Return the answer in a sentence or two, after any serious caution."""
        place, mean = short(self.target, 60), self.expected()[0]
        first = [own.text for own in self.evidence.findings() if own.first]
        if not np.isfinite(mean):
            return [*first, f"{counted(self.rows, 'row')} of {place} can be predicted anyway."]
        low, high = (rounded(end) for end in self.evidence.bounds())
        how = self.expected_text(unit).removeprefix("expected error ")
        if self.evidence.unlike:
            said = (
                f"Mean absolute error on held-out sources: {how} ({low} to {high} over sources); "
                f"at {place} it may be much larger."
            )
        else:
            said = (
                f"Expected error at {place}: {how} (mean absolute error on held-out sources; "
                f"{low} to {high} over sources)."
            )
        return [*first, said]

    def cautions(self) -> list[str]:
        """Give the sentences that are not part of the answer."""
        return [own.text for own in self.evidence.findings() if not own.first]

    def weights_text(self) -> str:
        """Describe how much each source counts in the prediction."""
        if said := self.evidence.weighting():
            return said
        weights = sorted(self.source_weights.items(), key=lambda pair: -pair[1])
        shown = [f"{short(name)} {100 * weight:.0f} %" for name, weight in weights]
        return f"Weights of the sources: {listed(shown, 5, 40)}."

    def summary(self, *, unit: str = "", reach: str = "") -> str:
        """Describe the expected error, how far intervals reach, the method and the sources."""
        reason = short(self.reason, 400).rstrip(".")
        lines = [
            *self.answer(unit),
            *([f"90 % interval around a prediction: {reach}."] if reach else []),
            f"Method: {self.method}" + (f" ({reason})." if reason else "."),
            self.weights_text(),
            self.labels_used(),
            *([self.transform.reason] if self.transform.reason else []),
        ]
        return "\n".join([*lines, *(f"Warning: {short(text, 500)}" for text in self.cautions())])

    def __repr__(self) -> str:
        return one_line(
            f"TargetOutcome for {short(self.target)}: {self.expected_text()} "
            f"({short(self.method)}, {counted(len(self.source_weights), 'source')})"
        )
