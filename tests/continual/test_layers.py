"""Layers as matrices: their rows, slopes, gradients and neighbors."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from helpers.tiny import classes, cnn, generator, net, pictures
from vntransfer.continual import REWC, RSP, ContinualMethod, Freeze, L2Anchor, Task, train
from vntransfer.continual._fisher import diagonal_fisher
from vntransfer.continual._layers import (
    Layer,
    LayerFisher,
    Tape,
    find_layers,
    layer_fisher,
    layer_inputs,
)
from vntransfer.continual._unit_groups import Junction
from vntransfer.errors import ArgumentError

CONVOLUTIONS: list[dict[str, Any]] = [
    {},
    {"bias": False},
    {"padding": 1, "stride": 2},
    {"padding": "same", "dilation": 2},
    {"padding": (2, 1), "padding_mode": "reflect"},
]


def conv(**options: Any) -> nn.Conv2d:
    return nn.Conv2d(2, 4, (3, 2), dtype=torch.float64, **options)


@pytest.mark.parametrize("options", CONVOLUTIONS)
def test_a_convolution_is_its_patches_times_its_matrix(options: dict[str, Any]) -> None:
    layer = Layer("conv", conv(**options))
    x = torch.randn(3, 2, 6, 7, generator=generator(), dtype=torch.float64)
    out = layer.module(x)
    torch.testing.assert_close(layer.rows(x) @ layer.matrix().mT, layer.slopes(out))


@pytest.mark.parametrize("options", CONVOLUTIONS)
def test_the_gradient_is_slopes_times_rows(options: dict[str, Any]) -> None:
    module = conv(**options)
    (layer,) = find_layers(module)
    x = torch.randn(3, 2, 6, 7, generator=generator(), dtype=torch.float64)
    _check_gradient(layer, module, x)


def test_the_gradient_of_a_dense_layer_with_leading_dimensions() -> None:
    module = nn.Linear(5, 3, dtype=torch.float64)
    (layer,) = find_layers(module)
    _check_gradient(layer, module, torch.randn(2, 4, 5, generator=generator()).double())


def _check_gradient(layer: Layer, module: nn.Module, x: Tensor) -> None:
    tape = Tape([layer])
    tape.start()
    module(x).square().sum().backward()
    (((seen, d),),) = tape.take()
    assert torch.equal(seen, x)
    torch.testing.assert_close(layer.slopes(d).mT @ layer.rows(x), layer.gradient())
    twice = 2 * layer.gradient()
    layer.add_gradient(layer.slopes(d), layer.rows(x))
    torch.testing.assert_close(layer.gradient(), twice)
    layer.add_gradient(None, -twice)
    assert float(layer.gradient().abs().max()) < 1e-12


def test_a_matrix_is_a_copy_and_can_be_written_back() -> None:
    for bias in (True, False):
        layer = Layer("a", nn.Linear(3, 2, bias=bias))
        matrix = layer.matrix()
        matrix += 1
        assert not torch.equal(matrix, layer.matrix())
        layer.set_matrix(matrix)
        assert torch.equal(matrix, layer.matrix())


def test_the_tape_records_training_passes_alone() -> None:
    model = net()
    layers = find_layers(model)
    tape = Tape(layers)
    x = torch.randn(4, 6, generator=generator())
    model(x).sum().backward()  # not started
    tape.start()
    with torch.no_grad():
        model(x)
    model(x)  # never differentiated
    assert tape.take() == [[], [], []]
    tape.start()
    model(x).sum().backward()
    model(x[:2]).sum().backward()
    assert [len(a) for a, _ in tape.take()[0]] == [4, 2]
    tape.close()
    tape.start()
    model(x).sum().backward()
    assert tape.take() == [[], [], []]


@pytest.mark.parametrize("rule", ["observed", "squared_mean"])
@pytest.mark.parametrize("kind", ["dense", "convolutional"])
def test_squared_gradients_are_those_of_torch_func(
    kind: str, rule: LayerFisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vntransfer.continual._layers.CHUNK", 7)
    model: nn.Module
    if kind == "dense":
        task, model, options = classes()[0], net(), {}
    else:
        (task, *_), heads = pictures()
        model, options = cnn(), {"criterion": heads}
    criterion = options.get("criterion", nn.functional.cross_entropy)
    layers = find_layers(model)
    ours = layer_fisher(model, layers, task.x, task.y, criterion, kind=rule)
    names = [name for name, _ in model.named_parameters()]
    found = diagonal_fisher(model, task.x, task.y, kind=rule, **options)
    theirs = dict(zip(names, found, strict=True))
    for layer, F in zip(layers, ours, strict=True):
        weight, bias = layer.split(F)
        torch.testing.assert_close(weight, theirs[f"{layer.name}.weight"])
        torch.testing.assert_close(bias, theirs[f"{layer.name}.bias"])


def test_layers_are_found_in_order_without_heads() -> None:
    assert [layer.name for layer in find_layers(net())] == ["0", "2", "4"]
    assert [layer.name for layer in find_layers(net(), ["4", "0"])] == ["4", "0"]
    assert [layer.name for layer in find_layers(cnn())] == ["body.0", "body.4"]
    inner = [layer.name for layer in find_layers(nn.Sequential(nn.Identity(), cnn()))]
    assert inner == ["1.body.0", "1.body.4"]
    assert [layer.name for layer in REWC(nn.Sequential(cnn())).layers] == ["0.body.0", "0.body.4"]


@pytest.mark.parametrize(
    ("model", "names", "message"),
    [
        (net(), ["0", "9"], "no layer '9'; it has 0, 1, 2"),
        (net(), ["1"], "'1' is a ReLU, neither"),
        (net(), ["0", "0"], "occurs twice"),
        (net(), "0", "got the text '0'"),
        (nn.Conv2d(4, 4, 3, groups=2), [""], "in 2 groups"),
        (nn.Linear(2, 2).requires_grad_(False), [""], "frozen weight"),
        (nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), None, r"1\.weight, 1\.bias are"),
        (nn.Embedding(3, 3), None, "weight are parameters"),
        (nn.ReLU(), None, "no trainable"),
    ],
)
def test_what_cannot_be_used_is_named(model: nn.Module, names: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        find_layers(model, names)


def test_layers_that_take_no_part_are_named() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    spare = nn.Linear(2, 2)
    with pytest.raises(ArgumentError, match="spare took no part"):
        layer_inputs(model, [Layer("spare", spare)], torch.zeros(1, 2))


def test_junctions_of_channels() -> None:
    first, second = Layer("a", nn.Conv2d(1, 3, 3)), Layer("b", nn.Conv2d(3, 5, 3))
    flat = Layer("c", nn.Linear(20, 2))
    between, last = Junction(first, second), Junction(second, flat)
    x = torch.randn(2, 3, 4, 4, generator=generator())
    torch.testing.assert_close(between.activations(x), x.mean((2, 3)))
    y = torch.randn(2, 5, 2, 2, generator=generator())
    torch.testing.assert_close(last.activations(y.flatten(1)), y.mean((2, 3)))
    weight = flat.weight.detach().reshape(2, 5, 4)
    assert torch.equal(last.outgoing(), weight.abs().amax(-1).mT)
    assert torch.equal(last.incoming(), second.weight.detach().abs().amax((2, 3)))
    assert between.outgoing().shape == (3, 5)


def test_layers_that_do_not_follow_each_other_are_refused() -> None:
    a, b = Layer("a", nn.Linear(4, 3)), Layer("b", nn.Linear(5, 2))
    with pytest.raises(ArgumentError, match=r"3 .*'a'.* 5 .*'b'"):
        Junction(a, b)
    with pytest.raises(ArgumentError, match="do not follow each other"):
        Junction(a, Layer("c", nn.Conv2d(6, 2, 3)))


class HeadFirst(nn.Module):
    """Adds its layers in another order than it calls them."""

    def __init__(self) -> None:
        super().__init__()
        self.head, self.body = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.body(x)))


@pytest.mark.parametrize("method", [RSP, REWC, L2Anchor, Freeze])
def test_layers_called_in_another_order_than_added_are_refused(
    method: type[ContinualMethod],
) -> None:
    protected = method(HeadFirst())
    protected.before_task()
    with pytest.raises(ArgumentError, match="'head' comes before 'body'"):
        train(protected.model, Task(torch.zeros(2, 4), torch.tensor([0, 1])), protected)
    with pytest.raises(ArgumentError, match="'head' comes before 'body'"):
        protected.model(torch.zeros(2, 4))  # trying again does not help
    protected.close()
    assert not any(m._forward_pre_hooks for m in protected.model.modules())


def test_names_in_the_order_of_calls_are_taken() -> None:
    method = RSP(HeadFirst(), layers=["body", "head"])
    method.before_task()
    train(method.model, Task(torch.zeros(2, 4), torch.tensor([0, 1])), method)
    assert [layer.name for layer in method.layers] == ["body", "head"]
    assert not any(m._forward_pre_hooks for m in method.model.modules())


@pytest.mark.parametrize("inplace", [False, True])
def test_slopes_are_those_before_an_activation_in_place(inplace: bool) -> None:
    first, last = (nn.Linear(*size, dtype=torch.float64) for size in ((4, 5), (5, 2)))
    model = nn.Sequential(first, nn.ReLU(inplace=inplace), last)
    layers = find_layers(model)
    tape = Tape(layers)
    tape.start()
    x = torch.randn(6, 4, generator=generator()).double()
    model(x).square().sum().backward()
    for layer, ((a, d),) in zip(layers, tape.take(), strict=True):
        torch.testing.assert_close(layer.slopes(d).mT @ layer.rows(a), layer.gradient())
