"""What every method of the registry keeps."""

import contextlib
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from helpers.tiny import (
    classes,
    cnn,
    flat,
    learn,
    make,
    make_steps,
    net,
    pictures,
    responses,
    values,
)
from vntransfer.continual import (
    METHODS,
    SGD,
    ContinualMethod,
    Task,
    accuracy_matrix,
    load_checkpoint,
    save_checkpoint,
    score,
    train,
)
from vntransfer.continual.method_state import tensors_of
from vntransfer.errors import ArgumentError, DataError, DivergedError
from vntransfer.workflows.task_network import MethodState

every_method = pytest.mark.parametrize("name", METHODS)
by_gradients = pytest.mark.parametrize(
    "name", [name for name, method in METHODS.items() if method.by_gradients]
)
penalties = pytest.mark.parametrize(
    "name", [name for name, method in METHODS.items() if "strength" in method.off]
)
hooked = pytest.mark.parametrize(
    "name", [name for name, method in METHODS.items() if not method.whole_step]
)


@pytest.mark.parametrize("name", [name for name, m in METHODS.items() if m.off or m is SGD])
@pytest.mark.parametrize("batch_size", [1, 5])
def test_switched_off_it_is_plain_training_bit_for_bit(name: str, batch_size: int) -> None:
    plain, other = net(), net()
    learn(SGD(plain), classes(), batch_size=batch_size)
    learn(make(name, other, **METHODS[name].off), classes(), batch_size=batch_size)
    assert values(plain) == values(other)


@every_method
def test_same_seed_same_result_and_global_state_untouched(name: str) -> None:
    before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    one, two, other = net(), net(), net(seed=1)
    for model in (one, two, other):
        learn(make(name, model), classes(), random_state=3)
    assert values(one) == values(two) != values(other)
    assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before)  # noqa: NPY002


@by_gradients
@pytest.mark.parametrize("batch_size", [1, 8])
@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value encountered")
def test_a_network_that_diverges_is_no_riddle(name: str, batch_size: int) -> None:
    """A task is not ended with parameters that are not finite: the error says what to do."""
    model = net()
    with contextlib.suppress(DivergedError):
        learn(make(name, model), classes(), lr=1e30, batch_size=batch_size)
        assert bool(flat(model).isfinite().all())
    assert not bool((flat(model).abs() < 1e20).all())


@pytest.mark.parametrize("name", [name for name in METHODS if name != "sgd"])
def test_it_changes_what_later_tasks_do(name: str) -> None:
    plain, other = net(), net()
    learn(SGD(plain), classes())
    learn(make(name, other), classes())
    assert values(plain) != values(other)


@every_method
def test_finished_tasks_are_never_read_again(name: str) -> None:
    clean, poisoned = net(), net()
    learn(make(name, clean), classes())
    method = make(name, poisoned)
    for task in classes():
        learn(method, [task])
        task.x.fill_(float("nan"))
        task.y.fill_(-1)
    assert values(clean) == values(poisoned)


@every_method
def test_what_is_kept_is_declared(name: str) -> None:
    method = make(name, net())
    sizes = []
    for task in classes(6, n=30):
        learn(method, [task])
        rows = [t for t in tensors_of(method.state()) if t.shape[1:] == task.x.shape[1:]]
        held = {len(t) for t in rows if t.ndim == 2 and not _is_weight(t, method)}
        assert max(held, default=0) <= max(method.stored_samples, 6)  # a preallocated memory
        sizes.append(sum(t.numel() for t in tensors_of(method.state())))
    if method.stored_samples == 0 and name != "rsp":  # which says what it keeps per task
        assert len(set(sizes[1:])) == 1
    network = sum(p.nbytes for p in method.parameters)
    kept = sum(t.nbytes for t in MethodState.of(method).arrays.values())  # of a checkpoint
    assert max(network, kept) <= method.bytes_kept <= network + kept


def _is_weight(tensor: Tensor, method: ContinualMethod) -> bool:
    return any(tensor.shape == p.shape for p in method.parameters)


@every_method
@pytest.mark.parametrize(("stop", "batch_size"), [(0, 2), (7, 2), (0, 1), (7, 1)])
def test_restored_from_a_checkpoint_it_goes_on_identically(
    name: str, stop: int, batch_size: int, tmp_path: Path
) -> None:
    tasks, file = classes(4), tmp_path / "here.safetensors"
    options: dict[str, Any] = {"lr": 0.05, "batch_size": batch_size, "random_state": 3, "epochs": 2}

    def interrupted(model: torch.nn.Module, method: ContinualMethod) -> None:
        learn(method, tasks[:2], **options)
        if stop:
            method.before_task()
            make_steps(method, tasks[2], 0, stop, **options)
        save_checkpoint(file, model, method, position={"task": 2, "step": stop})

    straight, first, second = net(), net(), net(seed=9)
    learn(make(name, straight), tasks, **options)
    interrupted(first, make(name, first))
    method = make(name, second)
    position = load_checkpoint(file, second, method)
    assert position == {"task": 2, "step": stop}
    if not stop:
        method.before_task()
    make_steps(method, tasks[2], position["step"], None, **options)
    method.after_task()
    learn(method, tasks[3:], **options)
    assert values(straight) == values(second)


@hooked
def test_your_own_loop_is_the_loop(name: str) -> None:
    theirs, ours = net(), net()
    learn(make(name, theirs), classes())
    method = make(name, ours)
    optimizer = torch.optim.SGD(ours.parameters(), lr=0.05)
    method.use(optimizer)
    for task in classes():
        method.before_task()
        for x, y in task.batches(2):
            x, y = method.observe(x, y)
            torch.nn.functional.cross_entropy(ours(x), y).backward()
            method.adjust_gradients()
            optimizer.step()
            optimizer.zero_grad()
            method.after_step()
        method.after_task()
    assert values(theirs) == values(ours)


@every_method
def test_regression(name: str) -> None:
    model = net(1)
    before = score(model, responses()[0])
    matrix = accuracy_matrix(model, responses(), make(name, model), lr=0.05, batch_size=2)
    assert matrix.shape == (3, 3)
    assert np.isfinite(matrix).all()
    assert matrix[0, 0] < before


@every_method
def test_pictures_with_a_head_per_task(name: str) -> None:
    tasks, heads = pictures()
    model = cnn()
    later = [p.detach().clone() for p in model.heads[2].parameters()]
    method = make(name, model, criterion=heads)
    learn(method, tasks[:2], epochs=2)
    assert all(torch.equal(p, q) for p, q in zip(model.heads[2].parameters(), later, strict=True))
    learn(method, tasks[2:], epochs=2)
    assert not torch.equal(model.heads[2].weight, later[0])
    assert all(p.isfinite().all() for p in model.parameters())


@every_method
def test_double_precision(name: str) -> None:
    model = net(dtype=torch.float64)
    method = learn(make(name, model), classes(dtype=torch.float64))
    assert all(p.dtype == torch.float64 for p in model.parameters())
    assert all(t.dtype != torch.float32 for t in tensors_of(method.state()))


@penalties
def test_no_strength_diverges(name: str) -> None:
    model = net()
    learn(make(name, model, strength=1e6), classes(5))
    assert all(p.isfinite().all() for p in model.parameters())
    assert float(flat(model).abs().max()) < 10


@penalties
@pytest.mark.parametrize("bad", [-1.0, float("nan"), "much", True])
def test_wrong_strength_is_named(name: str, bad: Any) -> None:
    with pytest.raises(ArgumentError, match="strength: expected a"):
        make(name, net(), strength=bad)


@every_method
def test_seeds_are_whole_numbers(name: str) -> None:
    if "random_state" not in inspect.signature(METHODS[name]).parameters:
        pytest.skip("draws nothing")
    with pytest.raises(ArgumentError, match="random_state: expected a whole number"):
        make(name, net(), random_state=0.5)
    make(name, net(), random_state=np.int64(1))


@every_method
def test_the_order_of_the_hooks_is_checked(name: str) -> None:
    model = net()
    method = make(name, model)
    with pytest.raises(ArgumentError, match="no task has begun"):
        method.after_task()
    with pytest.raises(ArgumentError, match="no task has begun"):
        train(model, classes()[0], method)
    method.before_task()
    with pytest.raises(ArgumentError, match="task 1 has not ended"):
        method.before_task()
    with pytest.raises(ArgumentError, match="another network"):
        train(net(), classes()[0], method)


@every_method
def test_a_checkpoint_of_another_method_is_refused(name: str, tmp_path: Path) -> None:
    model, other = net(), "sgd" if name != "sgd" else "ewc"
    save_checkpoint(tmp_path / "a", model, make(name, model))
    with pytest.raises(DataError, match=f"holds a method '{name}'"):
        load_checkpoint(tmp_path / "a", model, make(other, model))


@every_method
def test_it_is_documented(name: str) -> None:
    text = METHODS[name].__doc__ or ""
    assert METHODS[name].id == name
    assert "Examples\n" in text
    assert "Parameters\n" in text


def test_a_model_without_parameters_is_refused() -> None:
    with pytest.raises(ArgumentError, match="no parameter requires a gradient"):
        SGD(torch.nn.ReLU())
    with pytest.raises(ArgumentError, match=r"expected a torch\.nn\.Module, got int"):
        SGD(3)  # type: ignore[arg-type]


def test_numpy_arrays_of_any_kind_are_taken() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(9, 6))
    model = net()
    learn(SGD(model), [Task(x, np.arange(9, dtype=np.uint8) % 3), Task(x > 0, np.arange(9) % 3)])


def read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "change",
    [
        lambda a: a[::-1].copy()[::-1],  # strides below zero
        lambda a: a.astype(a.dtype.newbyteorder()),
        read_only,
        lambda a: np.rec.fromarrays([a, a.astype(np.int8)]).f0,  # nine bytes apart
    ],
)
def test_numpy_arrays_of_any_layout_are_taken(change: Any) -> None:
    x, y = np.arange(6.0).reshape(3, 2), np.arange(3)
    task = Task(change(x), change(y))
    assert (task.x.tolist(), task.y.tolist()) == (x.tolist(), y.tolist())


def test_a_checkpoint_of_other_options_is_refused(tmp_path: Path) -> None:
    model, file = net(), tmp_path / "a.safetensors"
    save_checkpoint(file, model, METHODS["covp"](model))
    with pytest.raises(DataError, match=r"sides='both'.*'input'"):
        load_checkpoint(file, model, METHODS["covp"](model, 10.0, sides="input"))
    with pytest.raises(DataError, match="was saved with layers="):
        load_checkpoint(file, model, METHODS["covp"](model, layers=["0"]))


def test_mer_in_a_loop_of_hooks_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"observe: MER .* call method.step"):
        METHODS["mer"](net()).observe(torch.zeros(1, 2), torch.zeros(1))


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.array([[1.0], [np.nan]]), np.array([0, 1]), "x: contains NaN"),
        (np.array([[1.0], [2.0]]), np.array([0.0, np.inf]), "y: contains NaN"),
        (np.array([["a"], ["b"]], dtype=object), np.array([0, 1]), "x: expected numbers"),
        (torch.tensor(1.0), torch.tensor([1]), "x: expected rows, got a single number"),
    ],
)
def test_a_task_says_what_is_wrong_with_it(x: Any, y: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Task(x, y)


@pytest.mark.parametrize("y", [torch.tensor([0, 7]), torch.tensor([[0], [1]])])
def test_classes_that_do_not_fit_the_outputs_are_named(y: torch.Tensor) -> None:
    model = torch.nn.Linear(2, 3)
    method = METHODS["sgd"](model)
    method.before_task()
    with pytest.raises(ArgumentError, match=r"y: classes from 0 to .* do not fit outputs of shape"):
        train(model, Task(torch.zeros(2, 2), y), method, batch_size=2)


@pytest.mark.parametrize("name", ["rsp", "rewc", "gpm"])
def test_layers_that_sleep_are_named(name: str) -> None:
    class Heads(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.asleep = torch.nn.Linear(4, 6), torch.nn.Linear(6, 6)
            self.head = torch.nn.Linear(6, 3)

        def forward(self, x: torch.Tensor) -> Tensor:
            return self.head(self.body(x).relu())  # type: ignore[no-any-return]

    def whole() -> None:
        train(model, task, method)
        method.after_task()

    model = Heads()
    method = METHODS[name](model)
    task = Task(torch.randn(12, 4), torch.arange(12) % 3)
    method.before_task()
    with pytest.raises(ArgumentError, match=r"asleep(' comes before| took no part)"):
        whole()


@every_method
def test_repr_names_the_options_that_are_not_the_default(name: str) -> None:
    method = METHODS[name]
    assert repr(method(net())) == f"{method.__name__}()"
    options = [key for key in inspect.signature(method).parameters if key not in ("model",)]
    assert "criterion" in options  # the signature is still that of the constructor
    own = method(net(), criterion=torch.nn.functional.cross_entropy)
    assert repr(own) == f"{method.__name__}(criterion=cross_entropy)"
    if "strength" in options:
        assert repr(method(net(), strength=3.25)) == f"{method.__name__}(strength=3.25)"
    if "seed" in options:
        assert repr(method(net(), seed=7)) == f"{method.__name__}(seed=7)"


def test_repr_of_a_method_of_your_own() -> None:
    class Mine(METHODS["ewc"]):  # type: ignore[misc]
        def __init__(self, model: torch.nn.Module, speed: float = 1.0) -> None:
            super().__init__(model, strength=5.0)

    class Plain(ContinualMethod):
        id = "plain"

    assert repr(Mine(net())) == "Mine()"
    assert repr(Mine(net(), 2.0)) == "Mine(speed=2.0)"
    assert repr(Plain(net())) == "Plain()"
    with pytest.raises(TypeError, match="speeed"):
        Mine(net(), speeed=2.0)
