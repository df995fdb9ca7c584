"""The one list of methods."""

from vntransfer.continual._base import ContinualMethod
from vntransfer.continual.agem import AGEM
from vntransfer.continual.covp import CovarianceProjection
from vntransfer.continual.derpp import DarkReplay
from vntransfer.continual.er import Replay
from vntransfer.continual.ewc import EWC
from vntransfer.continual.freeze import Freeze
from vntransfer.continual.gem import GEM
from vntransfer.continual.gpm import GPM
from vntransfer.continual.kfac import KFAC
from vntransfer.continual.l2 import L2Anchor
from vntransfer.continual.mer import MER
from vntransfer.continual.rewc import REWC
from vntransfer.continual.rsp import RSP
from vntransfer.continual.sgd import SGD
from vntransfer.continual.si import SI

METHODS: dict[str, type[ContinualMethod]] = {
    method.id: method
    for method in (
        SGD,
        EWC,
        L2Anchor,
        Freeze,
        SI,
        AGEM,
        GEM,
        MER,
        Replay,
        DarkReplay,
        RSP,
        REWC,
        GPM,
        KFAC,
        CovarianceProjection,
    )
}
"""Methods by their ids."""
