"""Base class of all methods of continual learning: the hooks of a training loop."""

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from vntransfer.checks import whole
from vntransfer.continual.method_state import Stateful, tensors_of
from vntransfer.display import short
from vntransfer.errors import ArgumentError, DivergedError

if TYPE_CHECKING:
    from vntransfer.continual.training import Task

Given = ParamSpec("Given")
Criterion = Callable[[Tensor, Tensor], Tensor]
"""``criterion(output, y)``: mean loss of a batch, a scalar."""


def default_loss(output: Tensor, y: Tensor) -> Tensor:
    """Mean negative log-likelihood: cross-entropy for classes, half squared error for floats.

    The squared error is that of a Gaussian response with unit variance, summed over components.

    Parameters
    ----------
    output
        Logits (N, classes), or predictions (N,) or (N, m).
    y
        Class indices (N,), or responses, as many as there are predictions.

    Examples
    --------
    >>> float(default_loss(torch.zeros(2, 1), torch.tensor([1.0, 3.0])))
    2.5
    """
    if not y.is_floating_point():
        try:
            return functional.cross_entropy(output, y)
        except (IndexError, RuntimeError, ValueError) as error:
            raise ArgumentError(
                f"y: classes from {int(y.min())} to {int(y.max())}, shape {tuple(y.shape)}, do not "
                f"fit outputs of shape {tuple(output.shape)}; give classes 0, 1, ... of shape (N,) "
                f"and an output for each, or floats for regression ({error})"
            ) from error
    return 0.5 * (predictions(output, y) - y).square().sum() / len(y)


def predictions(output: Tensor, y: Tensor) -> Tensor:
    """Reshape the outputs of a network to the shape of the responses y (N, ...)."""
    # a single row may have lost its dimension, as .squeeze() does
    if output.numel() != y.numel() or (len(y) > 1 and len(output) != len(y)):
        raise ArgumentError(
            f"y: {y.numel()} responses, shape {tuple(y.shape)}, do not fit predictions of shape "
            f"{tuple(output.shape)}; the network needs one output per response"
        )
    return output.reshape(y.shape)


def _remembering(init: Callable[Given, None]) -> Callable[Given, None]:
    """Make a constructor record the options that are not the default, for ``repr``."""
    signature = inspect.signature(init)
    defaults = {name: own.default for name, own in signature.parameters.items()}

    @wraps(init)
    def remembering(*args: Given.args, **options: Given.kwargs) -> None:
        init(*args, **options)
        (_, own), *given = signature.bind(*args, **options).arguments.items()
        own._given = {
            name: value
            for name, value in given
            if name != "model" and _shown(value) != _shown(defaults[name])
        }

    return remembering


def _shown(value: object) -> str:
    """Short text of an option; a function is shown by its name."""
    name = getattr(value, "__qualname__", None)
    return short(repr(value) if name is None else name, 40)


def _checking(observe: Callable[..., tuple[Tensor, Tensor]]) -> Callable[..., Any]:
    """Make `observe` reject a batch or a network that no method can use."""

    @wraps(observe)
    def checking(method: "ContinualMethod", x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        method.check_batch(x, y)
        return observe(method, x, y)

    return checking


def _in_full_precision(hook: Callable[..., None]) -> Callable[..., None]:
    """Make a hook compute in the precision of the parameters inside an autocast block."""

    @wraps(hook)
    def precise(method: "ContinualMethod") -> None:
        device = method.parameters[0].device.type
        if not torch.is_autocast_enabled(device):
            return hook(method)
        with torch.autocast(device, enabled=False):
            return hook(method)

    return precise


WRAPPED: dict[str, Callable[..., Any]] = {
    "__init__": _remembering,
    "observe": _checking,
    "adjust_gradients": _in_full_precision,
    "after_task": _in_full_precision,
}
"""Decorators of the methods that a subclass defines."""


class ContinualMethod(Stateful):
    """A method of continual learning that any training loop can call.

    The hooks, in the order of a loop::

        method.before_task()
        for x, y in task:
            x, y = method.observe(x, y)        # statistics, memory; may return a larger batch
            criterion(model(x), y).backward()
            method.adjust_gradients()          # projections, penalties
            optimizer.step(); optimizer.zero_grad()
            method.after_step()                # proximal pull, path integrals
        method.after_task()

    A method sees data only through `observe`, once. From finished tasks it keeps sums and at most
    ``stored_samples`` samples.

    A new method overrides the hooks that it needs, names the attributes that make up its state in
    ``saved`` (see `vntransfer.continual.method_state.Stateful`) and lists in ``off`` the options
    that turn it into plain training.

    Parameters
    ----------
    model
        Any network. Its parameter objects and their precision must not change while the method
        is in use; layers can be frozen at any time.
    criterion
        Loss whose gradients the method computes itself (Fisher information, memories);
        `default_loss` if None.

    Attributes
    ----------
    tasks_done : int
        Number of finished tasks.
    """

    id: ClassVar[str]
    off: ClassVar[dict[str, Any]] = {"strength": 0.0}
    whole_step: ClassVar[bool] = False  # True: loops must call `step`, not the hooks
    by_gradients: ClassVar[bool] = True  # False: learning rate, epochs and loss do not matter

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, wrap in WRAPPED.items():
            if name in vars(cls):
                setattr(cls, name, wrap(vars(cls)[name]))

    @_remembering
    def __init__(self, model: nn.Module, *, criterion: Criterion | None = None) -> None:
        if not isinstance(model, nn.Module):
            raise ArgumentError(f"model: expected a torch.nn.Module, got {type(model).__name__}")
        named = {name: p for name, p in model.named_parameters() if p.requires_grad}
        if not named:
            raise ArgumentError("model: no parameter requires a gradient; nothing can be learned")
        self.model = model
        self.criterion: Criterion = default_loss if criterion is None else criterion
        self.names = list(named)
        self.parameters: list[Tensor] = list(named.values())
        self._dtypes = [p.dtype for p in self.parameters]
        self.tasks_done = 0
        self.in_task = False
        self.optimizer: torch.optim.Optimizer | None = None
        self.scaler: torch.amp.GradScaler | None = None
        self._handles: list[torch.utils.hooks.RemovableHandle] = []

    def __repr__(self) -> str:
        given = ", ".join(
            f"{name}={_shown(value)}" for name, value in getattr(self, "_given", {}).items()
        )
        return f"{type(self).__name__}({given})"

    def use(
        self, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler | None = None
    ) -> None:
        """Set the optimizer whose learning rate proximal steps follow.

        `step` and `vntransfer.continual.train` do this; in your own loop call it once. With mixed
        precision pass the scaler of the loss, too, and call ``scaler.unscale_(optimizer)`` before
        `adjust_gradients`.
        """
        self.optimizer, self.scaler = optimizer, scaler

    def check_batch(self, x: Tensor, y: Tensor) -> None:
        """Raise if a batch is empty or lacks responses, or if the network was converted."""
        if not len(x):
            raise ArgumentError(
                f"x: the batch has no rows, shape {tuple(x.shape)}; skip empty batches"
            )
        if len(x) != len(y):
            raise ArgumentError(f"y: {len(y)} responses for {len(x)} rows of x; give one per row")
        self._check_precision()

    def _check_precision(self) -> None:
        """Raise if the network was converted: the method's state was not."""
        for name, p, old in zip(self.names, self.parameters, self._dtypes, strict=True):
            if p.dtype is not old:
                raise ArgumentError(
                    f"model: {name!r} is {p.dtype} but was {old} when {type(self).__name__} was "
                    f"created; convert the network back (model.to({old})), or create the method "
                    f"after converting it"
                )

    def before_task(self) -> None:
        """Begin a task."""
        if self.in_task:
            raise ArgumentError(
                f"before_task: task {self.tasks_done + 1} has not ended; call after_task() first"
            )
        self._check_precision()
        self.in_task = True

    @_checking
    def observe(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Take a batch before the forward pass; return the batch to train on."""
        return x, y

    def adjust_gradients(self) -> None:
        """Change the gradients, after the backward pass."""

    def after_step(self) -> None:
        """Change the parameters, after the optimizer's step."""

    def after_task(self) -> None:
        """End a task: store what protects it and drop its samples."""
        if not self.in_task:
            raise ArgumentError("after_task: no task has begun; call before_task() first")
        self._check_precision()
        refuse_infinite("parameters of the network", *self.parameters)
        self.in_task = False
        self.tasks_done += 1

    def learn(self, task: "Task", **options: Any) -> Self:
        """Learn a task in one call, with options of `train`; return the method."""
        from vntransfer.continual.training import train  # which needs this module

        self.before_task()
        train(self.model, task, self, **options)
        self.after_task()
        return self

    def step(
        self, x: Tensor, y: Tensor, criterion: Criterion, optimizer: torch.optim.Optimizer
    ) -> Tensor:
        """Learn from one batch, as in the loop above; return the loss before the step."""
        if self.optimizer is not optimizer:
            self.use(optimizer)
        x, y = self.observe(x, y)
        loss = self._backward(x, y, criterion)
        self.adjust_gradients()
        optimizer.step()
        optimizer.zero_grad()
        self.after_step()
        return loss.detach()

    def _backward(self, x: Tensor, y: Tensor, criterion: Criterion) -> Tensor:
        """Compute the gradients of a batch's loss, and return the loss."""
        loss = criterion(self.model(x), y)
        loss.backward()
        return loss

    @property
    def stored_samples(self) -> int:
        """Number of samples of finished tasks that are kept."""
        return 0

    @property
    def bytes_kept(self) -> int:
        """Bytes of the network and of the method's state, as in a checkpoint."""
        held = [*self.model.state_dict().values(), *tensors_of(self.state())]
        return sum({t.data_ptr(): t.nbytes for t in held}.values())

    def names_of_state(self) -> tuple[str, ...]:
        """Names of the attributes that make up the state."""
        return ("tasks_done", "in_task", *self.saved)

    def options(self) -> dict[str, Any]:
        """Options that a checkpoint must agree with."""
        found, hidden = super().options(), {"optimizer", "scaler", *self.names_of_state()}
        for name, value in vars(self).items():
            if isinstance(value, Stateful):
                found |= {f"{name}.{option}": own for option, own in value.options().items()}
            elif name.startswith("_") or name in hidden:
                continue
            elif value is None or isinstance(value, str | bool | int | float):
                found[name] = value
        layers = [layer.name for layer in getattr(self, "layers", [])]
        return found | ({"layers": layers} if layers else {})

    def places(self) -> dict[int, int]:
        """Index of each parameter in ``parameters`` by its id; a copy has other ids."""
        return {id(p): k for k, p in enumerate(self.parameters)}

    def keep_hooks(self, handles: list[torch.utils.hooks.RemovableHandle]) -> None:
        """Register hooks on the network that `close` removes."""
        self._handles += handles

    def close(self) -> None:
        """Remove the hooks of this method from the network."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def rate(self) -> float | list[float]:
        """Learning rate of the optimizer: one number, or one per parameter where they differ."""
        rates = self.rates(self.parameters)
        return rates[0] if len(set(rates)) == 1 else rates

    def rates(self, parameters: Sequence[Tensor]) -> list[float]:
        """Learning rate of each of some parameters.

        With momentum m, the total effect of a gradient: lr (1 - dampening) / (1 - m). Zero for
        parameters that are frozen or unknown to the optimizer.
        """
        if self.optimizer is None:
            raise ArgumentError(
                f"after_step: {type(self).__name__} needs the learning rate; call "
                f"method.use(optimizer) once before the loop"
            )
        found: dict[int, float] = {}
        for group in self.optimizer.param_groups:
            found |= dict.fromkeys(map(id, group["params"]), _effective(group))
        return [found.get(id(p), 0.0) if p.requires_grad else 0.0 for p in parameters]


def _effective(group: dict[str, Any]) -> float:
    """Learning rate of a group of parameters, momentum included."""
    rate, momentum = float(group["lr"]), group.get("momentum", 0.0)
    if not momentum or momentum >= 1:
        return rate
    return rate * (1 - group.get("dampening", 0.0)) / (1 - float(momentum))


def seeded(random_state: Any) -> torch.Generator:
    """Check the option ``random_state`` and return a generator with that seed."""
    return torch.Generator().manual_seed(whole("random_state", random_state))


def refuse_infinite(what: str, *tensors: Tensor) -> None:
    """Raise if training has diverged: the state of a method must be finite."""
    if not all(bool(tensor.isfinite().all()) for tensor in tensors):
        raise DivergedError(
            f"{what} are not finite: training has diverged; start again with a lower learning rate"
        )


def gradients(parameters: Sequence[Tensor]) -> list[Tensor]:
    """Gradients of parameters, in place; missing ones are set to zeros first.

    A frozen parameter gets no gradient: changes to its zeros are lost.
    """
    found = []
    for p in parameters:
        own = p.grad
        if own is None:
            own = torch.zeros_like(p, requires_grad=False)
            if p.requires_grad:
                p.grad = own
        found.append(own)
    return found
