"""Continual learning: methods with hooks for any training loop."""

from vntransfer.continual._base import ContinualMethod as ContinualMethod
from vntransfer.continual._base import default_loss as default_loss
from vntransfer.continual._checkpoints import load_checkpoint as load_checkpoint
from vntransfer.continual._checkpoints import save_checkpoint as save_checkpoint
from vntransfer.continual._fisher import diagonal_fisher as diagonal_fisher
from vntransfer.continual._quadratic import Quadratic as Quadratic
from vntransfer.continual.agem import AGEM as AGEM
from vntransfer.continual.closed_form import ClosedForm as ClosedForm
from vntransfer.continual.closed_form_covp import ClosedFormProjection as ClosedFormProjection
from vntransfer.continual.covp import CovarianceProjection as CovarianceProjection
from vntransfer.continual.derpp import DarkReplay as DarkReplay
from vntransfer.continual.er import Replay as Replay
from vntransfer.continual.ewc import EWC as EWC
from vntransfer.continual.freeze import Freeze as Freeze
from vntransfer.continual.gpm import GPM as GPM
from vntransfer.continual.kfac import KFAC as KFAC
from vntransfer.continual.l2 import L2Anchor as L2Anchor
from vntransfer.continual.mer import MER as MER
from vntransfer.continual.metrics import accuracy_matrix as accuracy_matrix
from vntransfer.continual.metrics import forgetting_curve as forgetting_curve
from vntransfer.continual.metrics import score as score
from vntransfer.continual.metrics import summary as summary
from vntransfer.continual.networks import MultiHead as MultiHead
from vntransfer.continual.networks import character_cnn as character_cnn
from vntransfer.continual.networks import dense as dense
from vntransfer.continual.random_features import JoinedNet as JoinedNet
from vntransfer.continual.random_features import RandomFeatureNet as RandomFeatureNet
from vntransfer.continual.rewc import REWC as REWC
from vntransfer.continual.rsp import RSP as RSP
from vntransfer.continual.sgd import SGD as SGD
from vntransfer.continual.sgp import ScaledGPM as ScaledGPM
from vntransfer.continual.si import SI as SI
from vntransfer.continual.training import Heads as Heads
from vntransfer.continual.training import Task as Task
from vntransfer.continual.training import as_tasks as as_tasks
from vntransfer.continual.training import steps as steps
from vntransfer.continual.training import train as train

METHODS: dict[str, type[ContinualMethod]] = {
    method.id: method
    for method in (
        SGD,
        EWC,
        L2Anchor,
        Freeze,
        SI,
        AGEM,
        MER,
        Replay,
        DarkReplay,
        RSP,
        REWC,
        GPM,
        ScaledGPM,
        KFAC,
        CovarianceProjection,
        ClosedForm,
        ClosedFormProjection,
    )
}
"""Methods by their ids."""
