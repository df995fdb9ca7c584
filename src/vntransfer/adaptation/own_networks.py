"""Train a network of any architecture, on any samples, by the objective of a method."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from vntransfer.adaptation._base import DomainRegressor, checkpoint_files
from vntransfer.adaptation._objective import Batch, Setup
from vntransfer.adaptation._training_loop import Record, train
from vntransfer.checks import instance
from vntransfer.domains import Rows, balanced
from vntransfer.errors import ArgumentError
from vntransfer.networks import Net
from vntransfer.step_times import StepTimes

Read = Callable[[Sequence[Rows], int], Batch]
"""Gives the samples with these numbers, (B,) per domain; the responses of the first K domains."""


class OwnNetwork(NamedTuple):
    """A network of one member, and the facts that an objective needs."""

    net: Net
    width: int  # features of a row
    n_responses: int  # columns of a prediction
    make_head: Callable[[], nn.Module]  # makes another head, for an adversary
    generator: torch.Generator  # source of all random numbers of network and objective


class TrainedNetwork(NamedTuple):
    """Result of `train_network`; the network itself is trained in place."""

    source_weights: dict[str, float]
    history: list[Record]  # per epoch
    step_times: StepTimes


def train_network(
    method: DomainRegressor,
    own: OwnNetwork,
    read: Read,
    sources: Mapping[str, Rows],
    target: Rows | None,
    *,
    random_state: int,
    key: Sequence[object] = (),
) -> TrainedNetwork:
    """Train your own network on labeled sources and an unlabeled target.

    Prefer this to ``method.fit`` if samples are not rows of a matrix, such as images whose rows are
    the cells of a grid. The last parameters are used, not their average, which would not fit the
    statistics of batch normalization.

    Parameters
    ----------
    method
        A method of ``METHODS`` that trains networks: its objective, error, ``epochs``, ``steps``,
        ``batch_size``, ``lr``, ``weight_decay``, ``clip``, ``device`` and ``checkpoint`` are used.
    own
        The network.
    read
        Function that returns a batch of samples.
    sources, target
        Numbers of the samples of each source by name, and of the target (None: no adaptation).
    random_state
        Seed of the batches.
    key
        Everything else that the result depends on; it identifies the checkpoint.

    Examples
    --------
    >>> from vntransfer import DARNRegressor
    >>> from vntransfer.networks import Linear
    >>> generator = torch.Generator().manual_seed(0)
    >>> x = torch.randn(30, 2, generator=generator)
    >>> def read(chosen, n_sources):
    ...     rows = torch.tensor(np.stack(chosen))
    ...     return Batch(x[rows], x[rows[:n_sources]].sum(-1, keepdim=True))
    >>> net = Net(Linear(2, 4, generator, shared=True), Linear(4, 1, generator))
    >>> own = OwnNetwork(net, 4, 1, lambda: Linear(4, 1, generator), generator)
    >>> sources = {"a": np.arange(10), "b": np.arange(10, 20)}
    >>> method = DARNRegressor(epochs=2, batch_size=5)
    >>> found = train_network(method, own, read, sources, np.arange(20, 30), random_state=0)
    >>> sorted(found.source_weights), found.history[1]["loss"] < found.history[0]["loss"]
    (['a', 'b'], True)
    """
    instance("method", method, DomainRegressor, "a method of METHODS that trains networks")
    method._check_options(rows=1)
    if method._error() == "jeffreys":
        raise ArgumentError(
            "loss, first_term: 'jeffreys' compares a response with input columns, which samples "
            "may not have; use 'mse', 'rmse', 'huber' or 'mixed'"
        )
    domains, size = [*sources.values()], method.batch_size
    if method._merges():  # as many samples as the other methods see of all sources
        domains, size = [np.concatenate(domains)], size * len(sources)
    k, lengths = len(domains), [float(len(rows)) for rows in domains]
    prior = torch.tensor([lengths], device=method.device) / sum(lengths)
    setup = Setup(
        k,
        own.width,
        own.n_responses,
        own.generator,
        prior=prior,
        device=method.device,
        make_head=own.make_head,
    )
    aimed = [] if target is None or not method._needs_target else [target]
    objective = method._objective(setup, bool(aimed))
    domains += aimed

    def batches(skip: int) -> Iterator[Batch]:
        drawn = balanced(domains, size, random_state=random_state)
        return (read(list(chosen), k) for chosen in islice(drawn, skip, None))

    checkpoint = None
    if method.checkpoint is not None:
        make = checkpoint_files(method, random_state, list(sources), *domains, *key)
        checkpoint = make("own", own.net, {"own": own.generator})
    history, times = train(
        own.net,
        objective,
        batches,
        method._training(int(max(lengths)), size, 1.0)._replace(average=0.0),
        shares=torch.ones(1),
        checkpoint=checkpoint,
    )
    w = objective.weights[0].tolist()
    if method._merges():
        w = [len(rows) / sum(lengths) for rows in sources.values()]
    return TrainedNetwork(dict(zip(sources, w, strict=True)), history, times)
