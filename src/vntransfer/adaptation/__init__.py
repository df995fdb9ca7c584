"""Multi-source adaptation for regression: one training loop, one objective per method.

Names are imported on first use: reading and using a saved model takes few of them.
"""

from typing import TYPE_CHECKING

from vntransfer.lazy import exporter

if TYPE_CHECKING:
    from vntransfer.adaptation._base import DomainRegressor as DomainRegressor
    from vntransfer.adaptation._objective import Batch as Batch
    from vntransfer.adaptation._registry import METHODS as METHODS
    from vntransfer.adaptation._registry import RETIRED as RETIRED
    from vntransfer.adaptation._registry import AdaptationMethod as AdaptationMethod
    from vntransfer.adaptation._selection import Selection as Selection
    from vntransfer.adaptation.ahd import AHDRegressor as AHDRegressor
    from vntransfer.adaptation.alignment import MomentAlignmentRegressor as MomentAlignmentRegressor
    from vntransfer.adaptation.auto import AutoTransferRegressor as AutoTransferRegressor
    from vntransfer.adaptation.boosted_trees import BoostedTrees as BoostedTrees
    from vntransfer.adaptation.closed_form import ClosedFormRegressor as ClosedFormRegressor
    from vntransfer.adaptation.closed_form_classifier import (
        ClosedFormClassifier as ClosedFormClassifier,
    )
    from vntransfer.adaptation.coral import DeepCORALRegressor as DeepCORALRegressor
    from vntransfer.adaptation.dann import DANNRegressor as DANNRegressor
    from vntransfer.adaptation.dare_gram import DAREGRAMRegressor as DAREGRAMRegressor
    from vntransfer.adaptation.darn import DARNRegressor as DARNRegressor
    from vntransfer.adaptation.divergence_weights import source_weights as source_weights
    from vntransfer.adaptation.linear_learners import LogisticLearner as LogisticLearner
    from vntransfer.adaptation.linear_learners import MedianLearner as MedianLearner
    from vntransfer.adaptation.linear_learners import ScaledRidge as ScaledRidge
    from vntransfer.adaptation.mdan import MDANRegressor as MDANRegressor
    from vntransfer.adaptation.mdd import MDDRegressor as MDDRegressor
    from vntransfer.adaptation.own_networks import OwnNetwork as OwnNetwork
    from vntransfer.adaptation.own_networks import TrainedNetwork as TrainedNetwork
    from vntransfer.adaptation.own_networks import train_network as train_network
    from vntransfer.adaptation.pooled import PooledRegressor as PooledRegressor
    from vntransfer.adaptation.source_only import SourceOnlyRegressor as SourceOnlyRegressor
    from vntransfer.adaptation.validation import (
        ImportanceWeightedScorer as ImportanceWeightedScorer,
    )
    from vntransfer.adaptation.validation import LeaveOneSourceOut as LeaveOneSourceOut
    from vntransfer.adaptation.validation import SourceScorer as SourceScorer
    from vntransfer.adaptation.weighted import WeightedSourceClassifier as WeightedSourceClassifier
    from vntransfer.adaptation.weighted import WeightedSourceRegressor as WeightedSourceRegressor

__getattr__, __dir__, _ = exporter(__name__)
