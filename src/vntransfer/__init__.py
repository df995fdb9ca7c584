"""vntransfer: transfer learning guided by how response depends on features.

Names are imported on first use, so that ``import vntransfer`` and ``vnt --help`` stay light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from vntransfer._version import __version__

if TYPE_CHECKING:
    from vntransfer.errors import ArgumentError as ArgumentError
    from vntransfer.errors import DataError as DataError
    from vntransfer.errors import DomainError as DomainError
    from vntransfer.errors import NotPositiveDefiniteError as NotPositiveDefiniteError
    from vntransfer.errors import NumericalWarning as NumericalWarning
    from vntransfer.errors import VnError as VnError

_EXPORTS = {
    "errors": (
        "ArgumentError",
        "DataError",
        "DomainError",
        "NotPositiveDefiniteError",
        "NumericalWarning",
        "VnError",
    ),
}
_HOME = {name: module for module, names in _EXPORTS.items() for name in names}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'vntransfer' has no attribute {name!r}")
    value = getattr(import_module(f"vntransfer.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
