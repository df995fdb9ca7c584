"""The computable parts of the paper's theory: Definition 1, Theorem 1, Proposition 1.

Two steps of the proof of Theorem 1 do not hold for √J (the triangle inequality and the convexity
over sources; see docs/theory.md), so that the sum of its terms is not a guarantee. With a true
metric as ``divergence`` (``"jensen_von_neumann"``, ...) the triangle inequality holds.
"""

from vntransfer.theory._discrepancy import Ascent as Ascent
from vntransfer.theory._discrepancy import MaxDiscrepancy as MaxDiscrepancy
from vntransfer.theory._discrepancy import TanhHypothesis as TanhHypothesis
from vntransfer.theory._discrepancy import discrepancy as discrepancy
from vntransfer.theory._discrepancy import max_discrepancy as max_discrepancy
from vntransfer.theory._terms import BoundTerms as BoundTerms
from vntransfer.theory._terms import ConvergenceTerms as ConvergenceTerms
from vntransfer.theory._terms import bound_terms as bound_terms
from vntransfer.theory._terms import convergence_terms as convergence_terms
