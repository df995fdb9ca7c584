"""Members of one or several ensembles, trained as one batched network."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vntransfer.adaptation._checkpoint import Checkpoint
from vntransfer.adaptation._data import Data, predict
from vntransfer.adaptation._objective import Setup, support
from vntransfer.adaptation._training_loop import EpochCounter, Record, train
from vntransfer.domains import Rows
from vntransfer.errors import ArgumentError
from vntransfer.networks import Linear, Net, Stacked, mlp
from vntransfer.step_times import StepTimes

if TYPE_CHECKING:
    from vntransfer.adaptation._base import DomainRegressor

Checkpoints = Callable[[str, Net, dict[str, torch.Generator]], Checkpoint]
"""Makes the file of a stage from its initial network and its generators."""


class FitRun(NamedTuple):
    """What all trainings of a fit share."""

    seed: int  # of initial parameters, dropout and batches
    epochs: EpochCounter
    checkpoints: Checkpoints | None = None


@dataclass(frozen=True)
class TrainingPlan:
    """What is trained together: M members, each with K sources and, if it adapts, a target."""

    stage: str  # name of this training among those of a fit
    domains: Sequence[Rows]  # rows of D domains
    # domains (M, K + 1) of each member, its target last; (M, K) without a target
    order: NDArray[np.intp]
    options: Sequence[Mapping[str, Any]]  # changes of the method's options, one mapping per member
    adapts: bool  # whether the method's objective is used, or only the error of the sources
    batch_size: int  # rows of each domain in a batch
    shares: NDArray[np.float64]  # of the members (M,) in the values that the history tells
    starts: int  # different initial networks, which the members repeat
    effort: float = 1.0  # share of the epochs
    strict: bool = True  # whether a member whose loss is not finite is an error
    counted: bool = True  # whether its epochs are reported

    @property
    def n_sources(self) -> int:
        """K."""
        return self.order.shape[1] - self.adapts

    def shares_for(self, target: int, targets: int) -> NDArray[np.float64]:
        """Shares of the members (M,) in predictions for one of the targets."""
        if not self.adapts:
            return self.shares
        return self.shares * targets * (self.order[:, -1] == self.n_sources + target)

    @property
    def sources(self) -> list[int]:
        """Domains that are a source to some member."""
        return sorted(set(self.order[:, : self.n_sources].ravel().tolist()))


@dataclass(frozen=True)
class Trained:
    """The members after training: network, weights of sources (M, K), mean residuals, records."""

    net: Net
    weights: Tensor
    offset: Tensor  # (M, 1, m)
    history: list[Record]
    step_times: StepTimes

    def predict(self, data: Data, rows: Rows) -> Tensor:
        """Scaled predictions (M, n, m)."""
        return predict(self.net, data, rows) + self.offset


def train_members(model: "DomainRegressor", data: Data, plan: TrainingPlan, run: FitRun) -> Trained:
    """Train the members of a plan; of the model only options are read."""
    seed = run.seed
    with own_random_state(seed, torch.device(data.device)):
        generator = torch.Generator().manual_seed(seed)
        n_members, n_responses = len(plan.order), data.y.shape[1]
        sizes = data.x.shape[1], n_responses
        net = build(model, *sizes, n_members, generator).to(data.device)
        repeated = torch.arange(n_members) % plan.starts
        for value in net.state_dict().values():
            value.copy_(value[repeated])
        net.eval()
        width = net.extractor(data.inputs(plan.domains[0][:1])[None]).shape[-1]
        mass = torch.stack([data.mass(rows).sum() for rows in plan.domains]).to(data.device)
        order = torch.from_numpy(plan.order[:, : plan.n_sources]).to(data.device)
        rows_of = mass[order]
        counts = torch.tensor([float(len(rows)) for rows in plan.domains], device=data.device)
        setup = Setup(
            plan.n_sources,
            width,
            n_responses,
            generator,
            plan.options,
            (rows_of / rows_of.sum(1, keepdim=True)).float(),
            support(counts[order]),
            data.device,
        )
        objective = model._objective(setup, plan.adapts)
        largest = max(len(plan.domains[i]) for i in plan.sources)
        generators = {"own": generator, "torch": torch.default_generator}
        make = run.checkpoints
        history, times = train(
            net,
            objective,
            lambda skip: data.batches(
                plan.domains,
                plan.order,
                plan.n_sources,
                size=plan.batch_size,
                random_state=seed,
                skip=skip,
            ),
            model._training(largest, plan.batch_size, plan.effort)._replace(strict=plan.strict),
            shares=torch.from_numpy(plan.shares / plan.shares.sum()).float(),
            after_epoch=run.epochs if plan.counted else None,
            checkpoint=None if make is None else make(plan.stage, net, generators),
        )
        offset = torch.zeros(n_members, 1, n_responses)
        if model._error() == "jeffreys":  # which does not see the mean
            mass_of, sums = {}, {}
            for i in plan.sources:
                rows, w = plan.domains[i], data.mass(plan.domains[i])[:, None]
                gaps = data.responses(rows).cpu() - predict(net, data, rows)
                mass_of[i], sums[i] = w.sum(), (w * gaps).sum(1)
            for m, own in enumerate(plan.order[:, : plan.n_sources].tolist()):
                offset[m] = sum(sums[i][m] for i in own) / sum(mass_of[i] for i in own)
        return Trained(net, objective.weights.detach().cpu(), offset, history, times)


@contextmanager
def own_random_state(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch's own state, for modules that draw from it, and put it back afterwards."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.default_generator.manual_seed(seed)
        if device.type == "cuda":
            torch.cuda.manual_seed(seed)
        yield


def build(
    model: "DomainRegressor", p: int, m: int, members: int, generator: torch.Generator
) -> Net:
    """Make networks from p inputs to m responses: the default, or of the user's modules."""
    if model.extractor is None:
        extractor: nn.Module = mlp(
            p,
            model.hidden,
            model.width,
            members=members,
            dropout=model.dropout,
            activation=model.activation,
            input_scales=model.input_scales,
            generator=generator,
        )
    else:
        own = [_module("extractor", model.extractor, p) for _ in range(members)]
        extractor = Stacked(own, shared=True)
    with torch.no_grad():
        extractor.eval()
        probe = torch.zeros(1, 2, p)
        width = int(extractor(probe).shape[-1])
    if model.head is None:
        head: nn.Module = Linear(width, m, generator, members=members)
    else:
        head = Stacked([_module("head", model.head, width, m) for _ in range(members)])
        with torch.no_grad():
            shape = tuple(head.eval()(torch.zeros(members, 1, 2, width)).shape[2:])
        if shape != (2, m):
            raise ArgumentError(
                f"head: expected a module from (n, {width}) to (n, {m}), got (2, {width}) -> "
                f"{shape}"
            )
    return Net(extractor, head)


def _module(name: str, given: Any, *sizes: int) -> nn.Module:
    """Give a member its own module: a copy of the given one, or one that the function makes."""
    if isinstance(given, nn.Module):
        return copy.deepcopy(given)
    made = given(*sizes) if callable(given) else given
    if not isinstance(made, nn.Module):
        raise ArgumentError(
            f"{name}: expected a torch module, or a function that creates one from "
            f"{len(sizes)} number(s) of columns, got {type(made).__name__}"
        )
    return made
