"""vntransfer: transfer learning guided by how the response depends on the features.

Names are imported on first use, so that ``import vntransfer`` and ``vnt --help`` stay light.
"""

from typing import TYPE_CHECKING

from vntransfer._version import __version__
from vntransfer.lazy import exporter

if TYPE_CHECKING:
    from vntransfer import adaptation as adaptation
    from vntransfer import continual as continual
    from vntransfer.adaptation import AHDRegressor as AHDRegressor
    from vntransfer.adaptation import AutoTransferRegressor as AutoTransferRegressor
    from vntransfer.adaptation import ClosedFormClassifier as ClosedFormClassifier
    from vntransfer.adaptation import ClosedFormRegressor as ClosedFormRegressor
    from vntransfer.adaptation import DANNRegressor as DANNRegressor
    from vntransfer.adaptation import DAREGRAMRegressor as DAREGRAMRegressor
    from vntransfer.adaptation import DARNRegressor as DARNRegressor
    from vntransfer.adaptation import DeepCORALRegressor as DeepCORALRegressor
    from vntransfer.adaptation import ImportanceWeightedScorer as ImportanceWeightedScorer
    from vntransfer.adaptation import LeaveOneSourceOut as LeaveOneSourceOut
    from vntransfer.adaptation import MDANRegressor as MDANRegressor
    from vntransfer.adaptation import MDDRegressor as MDDRegressor
    from vntransfer.adaptation import MomentAlignmentRegressor as MomentAlignmentRegressor
    from vntransfer.adaptation import PooledRegressor as PooledRegressor
    from vntransfer.adaptation import SourceOnlyRegressor as SourceOnlyRegressor
    from vntransfer.adaptation import SourceScorer as SourceScorer
    from vntransfer.adaptation import WeightedSourceClassifier as WeightedSourceClassifier
    from vntransfer.adaptation import WeightedSourceRegressor as WeightedSourceRegressor
    from vntransfer.adaptation import source_weights as source_weights
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
    from vntransfer.errors import DivergedError as DivergedError
    from vntransfer.errors import DomainError as DomainError
    from vntransfer.errors import NotPositiveDefiniteError as NotPositiveDefiniteError
    from vntransfer.errors import NumericalWarning as NumericalWarning
    from vntransfer.errors import VnError as VnError
    from vntransfer.losses import JeffreysLoss as JeffreysLoss
    from vntransfer.moments import Moments as Moments
    from vntransfer.moments import correntropy as correntropy
    from vntransfer.moments import covariance as covariance
    from vntransfer.relations import Relation as Relation
    from vntransfer.relations import RelationTest as RelationTest
    from vntransfer.relations import relation_test as relation_test
    from vntransfer.tables import ReadOptions as ReadOptions
    from vntransfer.tables import example_table as example_table
    from vntransfer.theory import Ascent as Ascent
    from vntransfer.theory import bound_terms as bound_terms
    from vntransfer.theory import convergence_terms as convergence_terms
    from vntransfer.theory import discrepancy as discrepancy
    from vntransfer.theory import max_discrepancy as max_discrepancy
    from vntransfer.workflows.adapt import adapt as adapt
    from vntransfer.workflows.continual_model import ContinualModel as ContinualModel
    from vntransfer.workflows.learn import learn_tasks as learn_tasks
    from vntransfer.workflows.learn_update import update_tasks as update_tasks
    from vntransfer.workflows.load import load as load
    from vntransfer.workflows.relate import relate as relate
    from vntransfer.workflows.table_model import TableModel as TableModel

__getattr__, __dir__, _names = exporter(__name__)
__all__ = ["__version__", *_names]
