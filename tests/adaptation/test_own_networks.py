"""Networks and samples of the caller's own, trained by the objective of a method."""

from typing import Any

import numpy as np
import pytest
import torch

from vntransfer.adaptation import METHODS, Batch, OwnNetwork, train_network
from vntransfer.errors import ArgumentError
from vntransfer.networks import Linear, Net

ROWS = torch.randn(40, 3, generator=torch.Generator().manual_seed(1))
SOURCES = {"a": np.arange(12), "b": np.arange(12, 30)}
TARGET = np.arange(30, 40)


def trained(method: str, **options: Any) -> tuple[Net, dict[str, float]]:
    def read(chosen: Any, n_sources: int) -> Batch:
        rows = torch.tensor(np.stack(chosen))
        assert not np.isin(rows[:n_sources], TARGET).any()
        return Batch(ROWS[rows], ROWS[rows[:n_sources]].sum(-1, keepdim=True))

    generator = torch.Generator().manual_seed(0)
    net = Net(Linear(3, 4, generator, shared=True), Linear(4, 1, generator))
    own = OwnNetwork(net, 4, 1, lambda: Linear(4, 1, generator), generator)
    short = {"epochs": 1, "steps": 3, "batch_size": 4}
    made = METHODS[method].make(**short | options)
    return net, train_network(made, own, read, SOURCES, TARGET, random_state=0).source_weights


@pytest.mark.parametrize("name", [name for name, own in METHODS.items() if own.neural])
def test_every_method_trains_a_given_network(name: str) -> None:
    options = {"trade_off": 1.0} if hasattr(METHODS[name].make(), "trade_off") else {}
    net, weights = trained(name, **options)
    assert sum(weights.values()) == pytest.approx(1)
    again, _ = trained(name, **options)
    for own, same in zip(net.parameters(), again.parameters(), strict=True):
        assert torch.isfinite(own).all()
        assert torch.equal(own, same)


@pytest.mark.parametrize("options", [{"loss": "jeffreys"}, {"epochs": 0}])
def test_options_that_cannot_be_used_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="|".join(options)):
        trained("darn", **options)


def test_only_networks_are_trained() -> None:
    with pytest.raises(ArgumentError, match="method: expected a method"):
        train_network(METHODS["ridge"].make(), None, None, SOURCES, None, random_state=0)  # type: ignore[arg-type]
