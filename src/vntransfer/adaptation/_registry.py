"""The one list of methods."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vntransfer.adaptation._base import DomainRegressor
from vntransfer.adaptation.ahd import AHDRegressor
from vntransfer.adaptation.alignment import MomentAlignmentRegressor
from vntransfer.adaptation.auto import AutoTransferRegressor
from vntransfer.adaptation.closed_form import ClosedFormRegressor
from vntransfer.adaptation.coral import DeepCORALRegressor
from vntransfer.adaptation.dann import DANNRegressor
from vntransfer.adaptation.dare_gram import DAREGRAMRegressor
from vntransfer.adaptation.darn import DARNRegressor
from vntransfer.adaptation.mdan import MDANRegressor
from vntransfer.adaptation.mdd import MDDRegressor
from vntransfer.adaptation.pooled import PooledRegressor
from vntransfer.adaptation.source_only import SourceOnlyRegressor
from vntransfer.adaptation.weighted import WeightedSourceRegressor
from vntransfer.checks import one_of
from vntransfer.errors import ArgumentError


@dataclass(frozen=True)
class AdaptationMethod:
    """A method of the registry: its estimator, the options that define it, and a summary."""

    estimator: type[Any]
    summary: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def neural(self) -> bool:
        """Whether it is a network of the common training loop."""
        return issubclass(self.estimator, DomainRegressor)

    def make(self, **options: Any) -> Any:
        """Make the estimator.

        Examples
        --------
        >>> METHODS["mdan_max"].make(epochs=5)
        MDANRegressor(aggregation='max', epochs=5)
        """
        return self.estimator(**{**self.options, **options})


class MethodRegistry(dict[str, AdaptationMethod]):
    """Methods by their ids; an id that is not there is an error that says what to use."""

    def __missing__(self, name: object) -> AdaptationMethod:
        if name in RETIRED:
            raise ArgumentError(f"method: {RETIRED[str(name)]}")
        return self[one_of("method", name, self)]  # which raises


RETIRED = {
    "mdd": "'mdd' meant two methods and is retired; use 'align' (ours, without an adversary) or "
    "'mdd_paper' (the paper's adversarial form)"
}
"""Ids that are no longer used, and what to use instead."""

METHODS = MethodRegistry(
    {
        "source_only": AdaptationMethod(
            SourceOnlyRegressor, "regression on the sources, no adaptation"
        ),
        "align": AdaptationMethod(
            MomentAlignmentRegressor, "alignment of moments, learned weights, guarded selection"
        ),
        "mdd_paper": AdaptationMethod(
            MDDRegressor, "the paper's adversarial matrix discrepancy, learned weights"
        ),
        "dann": AdaptationMethod(DANNRegressor, "one domain classifier, sources merged"),
        "mdan_max": AdaptationMethod(
            MDANRegressor,
            "a domain classifier per source, the worst source",
            {"aggregation": "max"},
        ),
        "mdan_dyn": AdaptationMethod(
            MDANRegressor,
            "a domain classifier per source, soft maximum",
            {"aggregation": "dynamic"},
        ),
        "ahd_1s": AdaptationMethod(
            AHDRegressor,
            "adversarial hypothesis discrepancy, sources merged",
            {"sources": "merged"},
        ),
        "ahd_msda": AdaptationMethod(
            AHDRegressor,
            "adversarial hypothesis discrepancy, learned weights",
            {"sources": "weighted"},
        ),
        "darn": AdaptationMethod(DARNRegressor, "spectral discrepancy, weights in closed form"),
        "coral": AdaptationMethod(DeepCORALRegressor, "alignment of feature covariances"),
        "dare_gram": AdaptationMethod(DAREGRAMRegressor, "alignment of inverse Gram matrices"),
        "weighted": AdaptationMethod(
            WeightedSourceRegressor, "ridge regression on weighted sources", {"estimator": "ridge"}
        ),
        "ridge": AdaptationMethod(
            PooledRegressor, "ridge regression on all sources", {"estimator": "ridge"}
        ),
        "closed_form": AdaptationMethod(
            ClosedFormRegressor, "ridge regression on random features, from moments"
        ),
        "boosting": AdaptationMethod(
            PooledRegressor, "gradient boosting on all sources", {"estimator": "boosting"}
        ),
        "auto": AdaptationMethod(
            AutoTransferRegressor, "mean of learners and weights, chosen by leave-one-source-out"
        ),
    }
)
