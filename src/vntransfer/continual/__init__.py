"""Continual learning: small objects with hooks for anybody's training loop."""

from vntransfer.continual._base import Method as Method
from vntransfer.continual._base import default_loss as default_loss
from vntransfer.continual._registry import METHODS as METHODS
from vntransfer.continual.sgd import SGD as SGD
from vntransfer.continual.training import Heads as Heads
from vntransfer.continual.training import Task as Task
from vntransfer.continual.training import as_tasks as as_tasks
from vntransfer.continual.training import train as train
