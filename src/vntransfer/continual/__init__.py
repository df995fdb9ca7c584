"""Continual learning: small objects with hooks for anybody's training loop."""

from vntransfer.continual._base import Method as Method
from vntransfer.continual._base import default_loss as default_loss
from vntransfer.continual._fisher import diagonal_fisher as diagonal_fisher
from vntransfer.continual._quadratic import Quadratic as Quadratic
from vntransfer.continual._registry import METHODS as METHODS
from vntransfer.continual.agem import AGEM as AGEM
from vntransfer.continual.derpp import DarkReplay as DarkReplay
from vntransfer.continual.er import Replay as Replay
from vntransfer.continual.ewc import EWC as EWC
from vntransfer.continual.freeze import Freeze as Freeze
from vntransfer.continual.gem import GEM as GEM
from vntransfer.continual.l2 import L2Anchor as L2Anchor
from vntransfer.continual.mer import MER as MER
from vntransfer.continual.sgd import SGD as SGD
from vntransfer.continual.si import SI as SI
from vntransfer.continual.training import Heads as Heads
from vntransfer.continual.training import Task as Task
from vntransfer.continual.training import as_tasks as as_tasks
from vntransfer.continual.training import train as train
