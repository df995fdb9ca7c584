"""The adapter for Avalanche: with its documented callbacks always, with itself where it imports."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from helpers.tiny import classes, learn, make, net, values
from vntransfer.continual import METHODS, Task
from vntransfer.errors import ArgumentError
from vntransfer.integrations.avalanche import as_plugin

hooked = pytest.mark.parametrize(
    "name", [name for name, method in METHODS.items() if not method.whole_step]
)


class Strategy:
    """Avalanche's documented training loop, with nothing but the callbacks."""

    def __init__(self, model: torch.nn.Module, plugin: Any) -> None:
        self.model, self.plugin = model, plugin
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        self.mbatch: list[Tensor] = []

    def train(self, task: Task, label: int) -> None:
        self.plugin.before_training_exp(self)
        for x, y in task.batches(2):
            self.mbatch = [x, y, torch.full_like(y, label)]
            self.optimizer.zero_grad()
            self.plugin.before_forward(self)
            x, y, tasks = self.mbatch
            assert len(x) == len(y) == len(tasks)
            loss = cross_entropy(self.model(x), y)
            loss.backward()
            self.plugin.after_backward(self)
            self.optimizer.step()
            self.plugin.after_update(self)
        self.plugin.after_training_exp(self)


@hooked
def test_callbacks_are_the_hooks(name: str) -> None:
    theirs, ours = net(), net()
    strategy = Strategy(theirs, as_plugin(make(name, theirs)))
    for label, task in enumerate(classes()):
        strategy.train(task, label)
    learn(make(name, ours), classes())
    assert values(theirs) == values(ours)


@pytest.mark.parametrize("name", ["ewc", "er", "agem"])
def test_in_avalanche_itself(name: str) -> None:
    try:
        from avalanche.benchmarks import benchmark_from_datasets
        from avalanche.benchmarks.utils import as_classification_dataset
        from avalanche.training.supervised import Naive
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"avalanche-lib cannot be imported: {error}")
    from torch.utils.data import TensorDataset

    sets = []
    for task in classes():
        data = TensorDataset(task.x, task.y)
        data.targets = task.y.tolist()
        sets.append(as_classification_dataset(data))
    benchmark = benchmark_from_datasets(train=sets)
    theirs, ours = net(), net()
    method = make(name, theirs)
    strategy = Naive(
        model=theirs,
        optimizer=torch.optim.SGD(theirs.parameters(), lr=0.05),
        criterion=torch.nn.CrossEntropyLoss(),
        train_mb_size=2,
        plugins=[as_plugin(method)],
        evaluator=None,
    )
    for experience in benchmark.train_stream:
        strategy.train(experience, shuffle=False)
    learn(make(name, ours), classes())
    assert method.tasks_done == 3
    assert values(theirs) == values(ours)


def test_what_cannot_be_carried_is_said() -> None:
    with pytest.raises(ArgumentError, match="MER replaces the whole training step"):
        as_plugin(make("mer", net()))
    with pytest.raises(ArgumentError, match="expected a method"):
        as_plugin(3)  # type: ignore[arg-type]
    plugin = as_plugin(make("ewc", net()))
    with pytest.raises(ArgumentError, match="another network"):
        Strategy(net(), plugin).train(classes()[0], 0)
