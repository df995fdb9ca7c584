"""vntransfer: transfer learning guided by how response depends on features.

Names are imported on first use, so that ``import vntransfer`` and ``vnt --help`` stay light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from vntransfer._version import __version__

if TYPE_CHECKING:
    from vntransfer import continual as continual
    from vntransfer import data as data
    from vntransfer import relate as relate
    from vntransfer.adaptation import AHDRegressor as AHDRegressor
    from vntransfer.adaptation import AutoTransferRegressor as AutoTransferRegressor
    from vntransfer.adaptation import Counter as Counter
    from vntransfer.adaptation import DANNRegressor as DANNRegressor
    from vntransfer.adaptation import DAREGRAMRegressor as DAREGRAMRegressor
    from vntransfer.adaptation import DARNRegressor as DARNRegressor
    from vntransfer.adaptation import DeepCORALRegressor as DeepCORALRegressor
    from vntransfer.adaptation import DomainRegressor as DomainRegressor
    from vntransfer.adaptation import ImportanceWeightedScorer as ImportanceWeightedScorer
    from vntransfer.adaptation import LeaveOneSourceOut as LeaveOneSourceOut
    from vntransfer.adaptation import MatrixDiscrepancyRegressor as MatrixDiscrepancyRegressor
    from vntransfer.adaptation import MDANRegressor as MDANRegressor
    from vntransfer.adaptation import Pictures as Pictures
    from vntransfer.adaptation import PooledRegressor as PooledRegressor
    from vntransfer.adaptation import SourceOnlyRegressor as SourceOnlyRegressor
    from vntransfer.adaptation import SourceScorer as SourceScorer
    from vntransfer.adaptation import WeightedSourceClassifier as WeightedSourceClassifier
    from vntransfer.adaptation import WeightedSourceRegressor as WeightedSourceRegressor
    from vntransfer.adaptation import load_model as load_model
    from vntransfer.adaptation import source_weights as source_weights
    from vntransfer.adaptation import train_counter as train_counter
    from vntransfer.adaptation import virtual_targets as virtual_targets
    from vntransfer.divergences import DIVERGENCES as DIVERGENCES
    from vntransfer.divergences import affine_invariant as affine_invariant
    from vntransfer.divergences import bures_wasserstein as bures_wasserstein
    from vntransfer.divergences import conditional_log_det as conditional_log_det
    from vntransfer.divergences import conditional_von_neumann as conditional_von_neumann
    from vntransfer.divergences import jeffreys as jeffreys
    from vntransfer.divergences import jensen_von_neumann as jensen_von_neumann
    from vntransfer.divergences import log_det as log_det
    from vntransfer.divergences import log_euclidean as log_euclidean
    from vntransfer.divergences import pairwise as pairwise
    from vntransfer.divergences import response_divergence as response_divergence
    from vntransfer.divergences import von_neumann as von_neumann
    from vntransfer.domains import stack as stack
    from vntransfer.errors import ArgumentError as ArgumentError
    from vntransfer.errors import DataError as DataError
    from vntransfer.errors import DataWarning as DataWarning
    from vntransfer.errors import DomainError as DomainError
    from vntransfer.errors import NotPositiveDefiniteError as NotPositiveDefiniteError
    from vntransfer.errors import NumericalWarning as NumericalWarning
    from vntransfer.errors import VnError as VnError
    from vntransfer.linalg import sym_logm as sym_logm
    from vntransfer.losses import ConditionalDivergenceLoss as ConditionalDivergenceLoss
    from vntransfer.losses import JeffreysLoss as JeffreysLoss
    from vntransfer.moments import Moments as Moments
    from vntransfer.moments import correntropy as correntropy
    from vntransfer.moments import covariance as covariance
    from vntransfer.relate import Relation as Relation
    from vntransfer.relate import RelationTest as RelationTest
    from vntransfer.relate import relation_test as relation_test
    from vntransfer.theory import bound_terms as bound_terms
    from vntransfer.theory import convergence_terms as convergence_terms
    from vntransfer.theory import discrepancy as discrepancy
    from vntransfer.theory import max_discrepancy as max_discrepancy

_EXPORTS = {
    "adaptation": (
        "AHDRegressor",
        "AutoTransferRegressor",
        "Counter",
        "DANNRegressor",
        "DAREGRAMRegressor",
        "DARNRegressor",
        "DeepCORALRegressor",
        "DomainRegressor",
        "MDANRegressor",
        "MatrixDiscrepancyRegressor",
        "ImportanceWeightedScorer",
        "LeaveOneSourceOut",
        "Pictures",
        "PooledRegressor",
        "SourceOnlyRegressor",
        "load_model",
        "SourceScorer",
        "WeightedSourceClassifier",
        "WeightedSourceRegressor",
        "source_weights",
        "train_counter",
        "virtual_targets",
    ),
    "divergences": (
        "DIVERGENCES",
        "affine_invariant",
        "bures_wasserstein",
        "conditional_log_det",
        "conditional_von_neumann",
        "jeffreys",
        "jensen_von_neumann",
        "log_det",
        "log_euclidean",
        "pairwise",
        "response_divergence",
        "von_neumann",
    ),
    "domains": ("stack",),
    "errors": (
        "ArgumentError",
        "DataError",
        "DataWarning",
        "DomainError",
        "NotPositiveDefiniteError",
        "NumericalWarning",
        "VnError",
    ),
    "linalg": ("sym_logm",),
    "losses": (
        "ConditionalDivergenceLoss",
        "JeffreysLoss",
    ),
    "moments": (
        "Moments",
        "correntropy",
        "covariance",
    ),
    "relate": (
        "Relation",
        "RelationTest",
        "relation_test",
    ),
    "theory": (
        "bound_terms",
        "convergence_terms",
        "discrepancy",
        "max_discrepancy",
    ),
}
_HOME = {name: module for module, names in _EXPORTS.items() for name in names}

_MODULES = ("continual", "data", "relate")

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"vntransfer.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'vntransfer' has no attribute {name!r}")
    value = getattr(import_module(f"vntransfer.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
