"""Random attacks, each of one seed: a part gives a word for how it ended.

"right" and "refused" (one of our errors) are fine, and so is a number with a `NumericalWarning`.
Whatever else is raised is a finding: `WrongError` for a wrong number or a lost file, any other
exception for a traceback that a user would see.
"""

import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

from vntransfer.errors import NumericalWarning, VnError

Part = Callable[[int, Path], str]


class WrongError(AssertionError):
    """A wrong number without a warning, or a file that is lost."""


def require(condition: object, what: str) -> None:
    if not condition:
        raise WrongError(what)


def attack(part: Part, seed: int, place: Path) -> str:
    """Run a part in an empty folder; our own errors are refusals."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            return part(seed, place)
        except VnError:
            return "refused"
        except WrongError:
            if any(issubclass(one.category, NumericalWarning) for one in caught):
                return "warned"
            raise
        except ValueError as error:
            if _by_scikit_learn(error):
                return "refused"
            raise


def _by_scikit_learn(error: ValueError) -> bool:
    """Whether scikit-learn's checks of arrays refuse them, as every estimator there does."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return Path(last.filename).parts[-3:] == ("sklearn", "utils", "validation.py")
