"""Metrics, streams, heads and checkpoint files."""

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn

from helpers.tiny import classes, learn, net, pictures
from vntransfer.continual import (
    EWC,
    SGD,
    Heads,
    Task,
    accuracy_matrix,
    as_tasks,
    character_cnn,
    default_loss,
    dense,
    forgetting_curve,
    load_checkpoint,
    save_checkpoint,
    score,
    summary,
    train,
)
from vntransfer.errors import ArgumentError, DataError

R = np.array([[0.9, 0.2, 0.1], [0.7, 0.8, 0.3], [0.5, 0.6, 0.7]])


def test_signs_are_those_of_the_paper() -> None:
    assert summary(R, [0.1, 0.1, 0.1]) == pytest.approx(
        {"RA": 0.6, "LA": 0.8, "BT": -0.2, "FT": 0.15}
    )
    np.testing.assert_allclose(forgetting_curve(R), [0.8, 0.65, 0.5])
    assert summary(1 - R)["BT"] == pytest.approx(0.2)  # of errors: above zero is forgetting


def test_the_matrix_is_filled_row_by_row() -> None:
    tasks, one = classes(3), net()
    rows: list[int] = []
    full = accuracy_matrix(one, tasks, SGD(one), lr=0.05, callback=lambda i, _: rows.append(i))
    assert rows == [0, 1, 2]
    expected = [float((one(t.x_test).argmax(1) == t.y_test).float().mean()) for t in tasks]
    np.testing.assert_allclose(full[-1], expected, rtol=1e-6)


def test_only_the_own_head_competes() -> None:
    tasks, heads = pictures()
    own = tasks[1]
    logits = torch.zeros(len(own.y_test), 6)
    logits[:, 5] = 9.0  # another head is surer
    logits[torch.arange(len(own.y_test)), own.y_test] = 1.0

    class Fixed(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return logits

    assert score(Fixed(), own) == 1.0
    assert heads.columns(1) == own.columns == slice(2, 4)
    mixed = torch.tensor([0, 3, 5])
    loss = heads(logits[:3], mixed)
    single = [float(heads(logits[i : i + 1], mixed[i : i + 1])) for i in range(3)]
    assert float(loss) == pytest.approx(sum(single) / 3)


def test_several_responses_are_averaged() -> None:
    x, y = torch.zeros(3, 2), torch.tensor([[1.0, 3.0]] * 3)
    assert score(nn.Identity(), Task(x, y, x, y)) == 5.0


class Arrays(NamedTuple):
    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray


class Stream(list[Arrays]):
    head_sizes: tuple[int, ...] = ()


def test_streams_become_tensors() -> None:
    x, y = np.zeros((4, 3), dtype=np.float32), np.array([0, 1, 0, 1])
    stream = Stream([Arrays(x, y, x, y)] * 2)
    assert [task.columns for task in as_tasks(stream)] == [None, None]
    stream = Stream([Arrays(x, y / 2, x, y / 2)])
    assert as_tasks(stream)[0].y.tolist() == [0.0, 0.5, 0.0, 0.5]


def test_small_labels_are_counted_through_many_heads() -> None:
    x, y = np.zeros((2, 3)), np.array([0, 199], dtype=np.uint8)
    stream = Stream([Arrays(x, y, x, y)] * 3)
    stream.head_sizes = (200,) * 3
    expected = [[0, 199], [200, 399], [400, 599]]
    assert [task.y.tolist() for task in as_tasks(stream)] == expected
    assert [task.y_test.tolist() for task in as_tasks(stream)] == expected


def test_wrong_shapes_are_named() -> None:
    with pytest.raises(ArgumentError, match=r"square.* \(2, 3\)"):
        summary(R[:2])
    with pytest.raises(ArgumentError, match=r"initial: .* got \(2,\)"):
        summary(R, [0.1, 0.1])
    with pytest.raises(DataError, match="3 labels for the 4 rows of x"):
        Task(np.zeros((4, 2)), np.zeros(3))
    with pytest.raises(DataError, match="give both or none"):
        Task(np.zeros((4, 2)), np.zeros(4), np.zeros((4, 2)))
    with pytest.raises(DataError, match=r"tensor.*numpy.* list"):
        Task([[1.0]], np.zeros(1))
    with pytest.raises(DataError, match="no test samples"):
        score(net(), Task(np.zeros((4, 6)), np.zeros(4)))
    x = torch.zeros(3, 2)
    for y in (torch.zeros(3), torch.zeros(2, 3)):
        with pytest.raises(ArgumentError, match=r"shape \(3, 2\)"):
            default_loss(x, y)
    with pytest.raises(ArgumentError, match=r"shape \(3, 2\)"):
        score(nn.Identity(), Task(x, torch.zeros(3), x, torch.zeros(3)))
    for model, labels in ((nn.Identity(), (3, 1)), (nn.Flatten(0), (3,))):
        y = torch.zeros(labels).long()
        with pytest.raises(ArgumentError, match=r"y_test: classes of shape .* do not fit outputs"):
            score(model, Task(x, y, x, y))
    with pytest.raises(ArgumentError, match="sizes: empty"):
        Heads([])
    for y in (5, -1):
        with pytest.raises(ArgumentError, match=r"counted through all heads, 0 to 4"):
            Heads([2, 3])(torch.zeros(1, 5), torch.tensor([y]))
    with pytest.raises(ArgumentError, match=r"outputs of shape \(1, 4\)"):
        Heads([2, 3])(torch.zeros(1, 4), torch.tensor([0]))
    method = SGD(net())
    method.before_task()
    for name, value in (("lr", 0.0), ("batch_size", 0), ("epochs", 1.5)):
        with pytest.raises(ArgumentError, match=f"{name}: expected a"):
            train(method.model, classes(1)[0], method, **{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (partial(dense, [10]), r"sizes: expected at least .* got \[10\]"),
        (partial(character_cnn, [2], size=15), "size: expected a whole number from 16"),
        (partial(character_cnn, [2], channels=0), "^channels: "),
        (partial(character_cnn, [2], hidden=0), "^hidden: "),
        (partial(character_cnn, [2, 0]), "heads: expected a whole number from 1"),
        (partial(character_cnn, []), "heads: empty"),
    ],
)
def test_networks_that_cannot_be_are_named(make: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make(generator=torch.Generator().manual_seed(0))


def test_a_single_row_may_lose_its_dimension() -> None:
    assert default_loss(torch.ones(2), torch.zeros(1, 2)) == 1.0
    assert default_loss(torch.tensor(2.0), torch.zeros(1)) == 2.0


def test_batches_are_shuffled_by_seed_and_epoch_only() -> None:
    task = Task(torch.arange(9.0), torch.arange(9.0))

    def order(**options: int) -> list[float]:
        return [float(v) for x, _ in task.batches(2, **options) for v in x]

    assert order() == list(range(9))
    assert order(random_state=1) == order(random_state=1) != order(random_state=2)
    assert order(random_state=1, epoch=1) != order(random_state=1)
    assert sorted(order(random_state=1, epoch=1)) == list(range(9))
    assert order(random_state=1)[4:] == order(random_state=1, start=2)


def test_momentum_is_part_of_a_checkpoint(tmp_path: Path) -> None:
    tasks, file = classes(2), tmp_path / "m.safetensors"

    def adam(model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.Adam(model.parameters(), lr=0.01)

    straight, first, second = net(), net(), net(seed=5)
    optimizer = adam(straight)
    learn(EWC(straight), tasks, optimizer=optimizer)
    optimizer, method = adam(first), EWC(first)
    learn(method, tasks[:1], optimizer=optimizer)
    save_checkpoint(file, first, method, optimizer=optimizer)
    optimizer, method = adam(second), EWC(second)
    load_checkpoint(file, second, method, optimizer=optimizer)
    learn(method, tasks[1:], optimizer=optimizer)
    for p, q in zip(straight.parameters(), second.parameters(), strict=True):
        assert torch.equal(p, q)


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"vntransfer": "no json"},
        {"vntransfer": "3"},
        {"vntransfer": '{"format": "vntransfer-continual-1", "id": "sgd"}'},
        {"vntransfer": '{"format": "x", "id": "sgd", "tree": {"tensor": "gone"}}'},
        {"vntransfer": '{"format": "x", "id": "sgd", "tree": {"dict": [["model", 1]]}}'},
        {"vntransfer": '{"format": "x", "id": "sgd", "tree": {"dict": []}}'},
    ],
)
def test_other_safetensors_files_are_refused(header: dict[str, str], tmp_path: Path) -> None:
    model, file = net(), tmp_path / "a.safetensors"
    file.write_bytes(safetensors.torch.save({"a": torch.zeros(1)}, metadata=header))
    with pytest.raises(DataError, match="not a checkpoint of continual learning"):
        load_checkpoint(file, model, SGD(model))


def test_damaged_or_foreign_checkpoints_are_refused(tmp_path: Path) -> None:
    model, file = net(), tmp_path / "a.safetensors"
    with pytest.raises(DataError, match="not a checkpoint of continual learning"):
        load_checkpoint(file, model, SGD(model))
    save_checkpoint(file, model, SGD(model))
    with pytest.raises(DataError, match=r"4\.bias.* \(3,\)"):
        load_checkpoint(file, net(5), SGD(net(5)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(DataError, match="saved without an optimizer"):
        load_checkpoint(file, model, SGD(model), optimizer=optimizer)
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(DataError, match="not a checkpoint of continual learning"):
        load_checkpoint(file, model, SGD(model))
    with pytest.raises(ArgumentError, match="cannot store 'position/when'"):
        save_checkpoint(file, model, SGD(model), position={"when": object()})
    with pytest.raises(ArgumentError, match="belongs to another method"):
        SGD(model).load_state({"tasks_done": 0})
