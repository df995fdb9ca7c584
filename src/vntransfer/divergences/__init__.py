"""Divergences between SPD matrices, and between samples through their covariances."""

from vntransfer.divergences._distances import affine_invariant as affine_invariant
from vntransfer.divergences._distances import bures_wasserstein as bures_wasserstein
from vntransfer.divergences._distances import jensen_von_neumann as jensen_von_neumann
from vntransfer.divergences._distances import log_euclidean as log_euclidean
from vntransfer.divergences._matrix import conditional_log_det as conditional_log_det
from vntransfer.divergences._matrix import conditional_von_neumann as conditional_von_neumann
from vntransfer.divergences._matrix import jeffreys as jeffreys
from vntransfer.divergences._matrix import log_det as log_det
from vntransfer.divergences._matrix import von_neumann as von_neumann
from vntransfer.divergences._pairwise import pairwise as pairwise
from vntransfer.divergences._registry import DIVERGENCES as DIVERGENCES
from vntransfer.divergences._registry import Divergence as Divergence
from vntransfer.divergences._response import response_divergence as response_divergence
