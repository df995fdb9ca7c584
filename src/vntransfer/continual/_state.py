"""What checkpoints hold of a method and its parts."""

from typing import Any, ClassVar

import torch

from vntransfer.errors import ArgumentError


class Stateful:
    """Something with a state that checkpoints hold, and options that they must agree with.

    ``saved`` and ``fixed`` name the attributes. A state holds tensors, numbers, strings, None,
    lists or dicts of these, generators, and parts that have a state themselves.
    """

    saved: ClassVar[tuple[str, ...]] = ()
    fixed: ClassVar[tuple[str, ...]] = ()

    def options(self) -> dict[str, Any]:
        """Give the options that a checkpoint must agree with."""
        return {name: getattr(self, name) for name in self.fixed}

    def names_of_state(self) -> tuple[str, ...]:
        """Give the attributes that make up the state."""
        return self.saved

    def state(self) -> dict[str, Any]:
        """Everything that a checkpoint must hold; references, not copies."""
        state = {}
        for name in self.names_of_state():
            value = getattr(self, name)
            if isinstance(value, torch.Generator):
                value = value.get_state()
            state[name] = value.state() if hasattr(value, "load_state") else value
        return state

    def load_state(self, state: dict[str, Any]) -> None:
        """Take over the state that another one of this class and these options gave."""
        if set(state) != (expected := set(self.names_of_state())):
            raise ArgumentError(
                f"state: expected {sorted(expected)} for {type(self).__name__}, got "
                f"{sorted(state)}; it belongs to another method or version"
            )
        for name, value in state.items():
            own = getattr(self, name)
            if isinstance(own, torch.Generator):
                own.set_state(value)
            elif hasattr(own, "load_state"):
                own.load_state(value)
            else:
                setattr(self, name, value)
        self.restored()

    def restored(self) -> None:
        """Rebuild what a checkpoint does not hold: it keeps tuples as lists."""
