"""The one list of methods."""

from vntransfer.continual._base import Method
from vntransfer.continual.sgd import SGD

METHODS: dict[str, type[Method]] = {method.id: method for method in (SGD,)}
"""Methods by their ids."""
