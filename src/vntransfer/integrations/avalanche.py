"""Continual-learning methods as plugins for Avalanche's strategies."""

from typing import Any

import torch

from vntransfer.continual import ContinualMethod
from vntransfer.errors import ArgumentError


def as_plugin(method: ContinualMethod) -> Any:
    """Wrap a method so that any of Avalanche's strategies can use it.

    The strategy's callbacks call the method's hooks: an experience is a task, ``before_forward``
    passes the batch to `observe` (replayed samples become part of it, with the task label of the
    first sample), ``after_backward`` adjusts the gradients, ``after_update`` ends the step. Methods
    that replace a whole step (MER) cannot be used.

    Parameters
    ----------
    method
        Method created for the strategy's network.

    Returns
    -------
    object
        Plugin to pass as ``plugins=[...]``: a subclass of Avalanche's ``SupervisedPlugin`` where
        Avalanche can be imported, otherwise an object with the same callbacks.

    Examples
    --------
    >>> import torch
    >>> from vntransfer.continual import EWC
    >>> plugin = as_plugin(EWC(torch.nn.Linear(2, 2)))
    >>> plugin.method.id
    'ewc'
    """
    if not isinstance(method, ContinualMethod):
        raise ArgumentError(
            f"method: expected a method of vntransfer.continual, got {type(method).__name__}"
        )
    if method.whole_step:
        raise ArgumentError(
            f"method: {type(method).__name__} replaces the whole training step, which a plugin "
            f"cannot do; use vntransfer.continual.train"
        )
    return type("MethodPlugin", (_Callbacks, *_bases()), {})(method)


def _bases() -> tuple[type, ...]:
    try:
        from avalanche.core import SupervisedPlugin
    except (ImportError, RuntimeError):  # absent, or its torchvision does not fit torch
        return ()
    return (SupervisedPlugin,)


class _Callbacks:
    """Avalanche's callbacks in terms of the hooks."""

    def __init__(self, method: ContinualMethod) -> None:
        super().__init__()
        self.method = method

    def before_training_exp(self, strategy: Any, *args: Any, **kwargs: Any) -> None:
        if strategy.model is not self.method.model:
            raise ArgumentError(
                "method: was created for another network than the strategy's; create one for it"
            )
        self.method.use(strategy.optimizer)
        self.method.before_task()

    def before_forward(self, strategy: Any, *args: Any, **kwargs: Any) -> None:
        x, y, *rest = strategy.mbatch
        seen, labels = self.method.observe(x, y)
        added = len(seen) - len(x)
        if added:
            rest = [torch.cat((part, part[:1].expand(added, *part.shape[1:]))) for part in rest]
        strategy.mbatch = [seen, labels, *rest]

    def after_backward(self, strategy: Any, *args: Any, **kwargs: Any) -> None:
        self.method.adjust_gradients()

    def after_update(self, strategy: Any, *args: Any, **kwargs: Any) -> None:
        self.method.after_step()

    def after_training_exp(self, strategy: Any, *args: Any, **kwargs: Any) -> None:
        self.method.after_task()
