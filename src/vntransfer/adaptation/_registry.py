"""The one list of methods."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vntransfer.adaptation._base import DomainRegressor
from vntransfer.adaptation.ahd import AHDRegressor
from vntransfer.adaptation.coral import DeepCORALRegressor
from vntransfer.adaptation.dann import DANNRegressor
from vntransfer.adaptation.dare_gram import DAREGRAMRegressor
from vntransfer.adaptation.darn import DARNRegressor
from vntransfer.adaptation.mdan import MDANRegressor
from vntransfer.adaptation.mdd import MatrixDiscrepancyRegressor
from vntransfer.adaptation.source_only import SourceOnlyRegressor


@dataclass(frozen=True)
class Method:
    """A method by its id: the estimator, the options that make it that method, and a line on it."""

    estimator: type[DomainRegressor]
    summary: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def make(self, **options: Any) -> DomainRegressor:
        """Make the estimator.

        Examples
        --------
        >>> METHODS["mdan_max"].make(epochs=5)
        MDANRegressor(aggregation='max', epochs=5)
        """
        return self.estimator(**{**self.options, **options})


METHODS: dict[str, Method] = {
    "source_only": Method(SourceOnlyRegressor, "regression on the sources, no adaptation"),
    "mdd_paper": Method(
        MatrixDiscrepancyRegressor, "the paper's adversarial matrix discrepancy, learned weights"
    ),
    "dann": Method(DANNRegressor, "one domain classifier, sources merged"),
    "mdan_max": Method(
        MDANRegressor, "a domain classifier per source, the worst source", {"aggregation": "max"}
    ),
    "mdan_dyn": Method(
        MDANRegressor, "a domain classifier per source, soft maximum", {"aggregation": "dynamic"}
    ),
    "ahd_1s": Method(
        AHDRegressor, "adversarial hypothesis discrepancy, sources merged", {"sources": "merged"}
    ),
    "ahd_msda": Method(
        AHDRegressor, "adversarial hypothesis discrepancy, learned weights", {"sources": "weighted"}
    ),
    "darn": Method(DARNRegressor, "spectral discrepancy, weights in closed form"),
    "coral": Method(DeepCORALRegressor, "alignment of feature covariances"),
    "dare_gram": Method(DAREGRAMRegressor, "alignment of inverse Gram matrices"),
}
