"""What a method keeps, as plain data beside tensors: for models that go on learning later."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from torch import Tensor

from vntransfer.continual._base import ContinualMethod
from vntransfer.continual._checkpoints import flatten, unflatten
from vntransfer.errors import ArgumentError, DataError


class MethodState(NamedTuple):
    """The state of a method: its structure, fit for JSON, and its tensors by name.

    Examples
    --------
    >>> import torch
    >>> from vntransfer.continual import EWC
    >>> method_state = MethodState.of(EWC(torch.nn.Linear(2, 1)))
    >>> method_state.restore(EWC(torch.nn.Linear(2, 1)))
    """

    structure: Any
    tensors: Mapping[str, Tensor]

    @classmethod
    def of(cls, method: ContinualMethod) -> "MethodState":
        """Copy the state of a method."""
        tensors: dict[str, Tensor] = {}
        return cls(flatten(method.state(), tensors), tensors)

    def restore(self, method: ContinualMethod) -> None:
        """Give the state to a method that was made with the same options."""
        copies = {name: tensor.clone() for name, tensor in self.tensors.items()}
        try:
            method.load_state(unflatten(self.structure, copies))
        except (ArgumentError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise DataError(
                f"state: is not that of the method {method.id!r} ({error}); learn the model again"
            ) from error
