"""Elastic weight consolidation with Kronecker factors."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from vntransfer.checks import number, whole
from vntransfer.continual._base import ContinualMethod, Criterion, refuse_infinite, seeded
from vntransfer.continual._fisher import sample_labels
from vntransfer.continual._layers import Layer, find_layers, sample_slopes
from vntransfer.continual._memory import Pending


def kronecker_factors(
    model: nn.Module, layers: Sequence[Layer], x: Tensor, y: Tensor, criterion: Criterion
) -> list[tuple[Tensor, Tensor]]:
    """Factors A (p, p) and G (outputs, outputs) of each layer's Fisher information A ⊗ G.

    A is the mean of aa' and G that of dd', d the slopes of the loss at the layer's output for the
    given labels. In a convolution a and d are taken at every position: A sums over positions, G
    is a mean over them (Grosse and Martens 2016).
    """
    A = [layer.zeros(layer.width) for layer in layers]
    G = [layer.zeros(layer.units) for layer in layers]
    positions = [1] * len(layers)
    for k, inputs, slopes in sample_slopes(model, layers, x, y, criterion):
        a, d = layers[k].rows(inputs), layers[k].slopes(slopes)
        A[k].addmm_(a.mT, a)
        G[k].addmm_(d.mT, d)
        positions[k] = max(1, len(a) // len(inputs))
    n = len(x)
    return [(a / n, g / (n * m)) for a, g, m in zip(A, G, positions, strict=True)]


class Spectra(NamedTuple):
    """Eigenvalues and eigenvectors of a layer's factors: A = U diag(α) U', G = V diag(γ) V'."""

    alpha: Tensor
    U: Tensor
    gamma: Tensor
    V: Tensor


class KFAC(ContinualMethod):
    """Kronecker-factored elastic weight consolidation (Ritter, Botev and Barber 2018).

    Each layer's matrix W, bias included, is held near its value W* at the end of the last task ::

        λ tr(G (W - W*) A (W - W*)')

    where A sums the mean of aa' (inputs) over the tasks and G is the mean over tasks of the mean of
    dd' (slopes of the log-likelihood, labels drawn from the prediction). A sum of Kronecker
    products does not have this form, so the factors are accumulated instead, as in online EWC, with
    one precision and one anchor. No factor 1/2, as in `EWC`. Parameters outside the layers are
    trained freely.

    The step is proximal and exact in the factors' eigenvectors, so no strength diverges. It costs
    two products with p x p matrices. It is taken once in ``every`` steps of the optimizer, with
    ``every`` times the learning rate.

    Parameters
    ----------
    model, criterion
        See `ContinualMethod`.
    strength
        λ.
    fisher_samples
        Number of samples, the first of a task, for the factors; None: all.
    every
        Steps between pulls.
    layers
        Names of layers to protect; None finds all.
    random_state
        Seed of the sampled labels.

    Examples
    --------
    >>> from vntransfer.continual import KFAC, Task
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> method = KFAC(net, strength=10.0).learn(Task(torch.eye(4), torch.arange(4) % 2))
    >>> [tuple(A.shape) for A in method.A], [tuple(G.shape) for G in method.G]
    ([(5, 5), (9, 9)], [(8, 8), (2, 2)])
    """

    id = "kfac"
    saved = ("A", "G", "spectra", "anchors", "pending", "since", "generator")

    def __init__(
        self,
        model: nn.Module,
        strength: float = 10.0,
        *,
        fisher_samples: int | None = None,
        every: int = 10,
        layers: Sequence[str] | None = None,
        random_state: int = 0,
        criterion: Criterion | None = None,
    ) -> None:
        super().__init__(model, criterion=criterion)
        self.strength = number("strength", strength)
        self.every = whole("every", every, minimum=1)
        self.pending = Pending(fisher_samples)
        self.generator = seeded(random_state)
        self.layers = find_layers(model, layers)
        self.A = [layer.zeros(layer.width) for layer in self.layers]
        self.G = [layer.zeros(layer.units) for layer in self.layers]
        self.anchors = [layer.matrix() for layer in self.layers]
        self.spectra: list[Spectra] = []
        self.since = 0

    def observe(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Keep samples for the factors."""
        if self.strength:
            self.pending.add(x, y)
        return x, y

    def after_step(self) -> None:
        """Pull the parameters, once in ``every`` steps."""
        if self.spectra:
            self.since += 1
            if self.since >= self.every:
                self._pull()

    @torch.no_grad()
    def _pull(self) -> None:
        """Minimize λ tr(GΔAΔ') + ‖W - W'‖²/2η in the eigenvectors of G and A."""
        rates = self.rates([layer.weight for layer in self.layers])
        for layer, eta, W0, (alpha, U, gamma, V) in zip(
            self.layers, rates, self.anchors, self.spectra, strict=True
        ):
            gap = V.mT @ (layer.matrix() - W0) @ U
            gap /= 1 + 2 * eta * self.since * self.strength * gamma.unsqueeze(1) * alpha
            layer.set_matrix(W0 + V @ gap @ U.mT)
        self.since = 0

    def after_task(self) -> None:
        """Add the task's factors; the current network becomes the anchor."""
        super().after_task()
        if not self.strength:
            return
        if self.since:
            self._pull()
        x, y = self.pending.take()
        y = sample_labels(self.model, x, y, self.criterion, self.generator)
        factors = kronecker_factors(self.model, self.layers, x, y, self.criterion)
        for layer, both in zip(self.layers, factors, strict=True):
            refuse_infinite(f"inputs or slopes of layer {layer.name!r}", *both)
        self.spectra = []
        for k, (A, G) in enumerate(factors):
            self.A[k] += A
            self.G[k] += (G - self.G[k]) / self.tasks_done
            self.spectra.append(Spectra(*_decompose(self.A[k]), *_decompose(self.G[k])))
        self.anchors = [layer.matrix() for layer in self.layers]

    def restored(self) -> None:
        """Name eigenvalues and eigenvectors."""
        self.spectra = [Spectra(*parts) for parts in self.spectra]


def _decompose(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues, at least zero, and eigenvectors."""
    values, vectors = torch.linalg.eigh(matrix.double())
    return values.clamp_min(0).to(matrix), vectors.to(matrix).contiguous()
