"""The estimator that all methods share: validation, scaling, training, prediction."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from vntransfer._arrays import number
from vntransfer.adaptation._loop import Record, Training, train
from vntransfer.adaptation._objective import (
    NETWORK,
    Batch,
    Error,
    Objective,
    Setup,
    Step,
    source_errors,
)
from vntransfer.adaptation._scaling import Scaler
from vntransfer.domains import Groups, Name, Rows, balanced, group
from vntransfer.errors import ArgumentError, DomainError
from vntransfer.networks import Activation, Net, linear, mlp

MIN_STEPS = 16
"""Fewest batches of an epoch, so that small tables are trained too."""

CHUNK = 4096
"""Rows that are predicted at once."""


@dataclass(eq=False, repr=False, kw_only=True)
class DomainRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """What all regressors of this package share.

    Inputs are standardised on all rows (sources and target), responses on the rows of the sources.
    Every batch holds equally many rows of every source and of the target. The learning rate rises
    over 30 steps and falls to zero like a cosine; the model is the mean of the parameters over the
    last steps.

    Parameters
    ----------
    hidden, width, dropout, activation
        The network: sizes of hidden layers, number of features, see `vntransfer.networks.mlp`.
    epochs
        Passes over the largest source; a pass has at least 16 batches.
    batch_size
        Rows per domain and batch.
    lr, weight_decay
        Of AdamW.
    clip
        Largest gradient norm of each block of parameters.
    average
        Share of the last steps over which parameters are averaged.
    patience
        Stop after so many epochs without a better error on held-out rows of the sources, and keep
        the best epoch (no averaging then); None: no rows are held out.
    validation_fraction
        Share of each source's rows that are held out if ``patience`` is given.
    random_state
        Seed; no global random state of torch is used.
    callback
        Called with the record of each epoch.

    Attributes
    ----------
    source_weights_ : dict
        Weight of each source by its name.
    history_ : list of dict
        Per epoch: losses, discrepancy, weights, error on held-out rows.
    net_ : Net
        The trained network (on standardised data).
    """

    hidden: tuple[int, ...] = (64,)
    width: int = 24
    dropout: float = 0.1
    activation: Activation = "leaky_relu"
    epochs: int = 30
    batch_size: int = 64
    lr: float = 1e-2
    weight_decay: float = 1.0
    clip: float = 1.0
    average: float = 0.2
    patience: int | None = None
    validation_fraction: float = 0.1
    random_state: Any = None
    callback: Callable[[Record], None] | None = None

    _uses_target: ClassVar[bool] = True

    def _objective(self, setup: Setup) -> Objective:
        """Make the method's objective."""
        raise NotImplementedError

    def _error(self) -> Error:
        """Name the error of a source that the method minimises."""
        return "mse"

    def _merges(self) -> bool:
        """Whether all sources are one to this method."""
        return False

    def fit(self, X: Any, y: Any, sample_domain: Any = None, target: str | None = None) -> Self:
        """Train on labelled sources and the unlabelled target.

        Parameters
        ----------
        X
            Rows of all domains (n, p), dense or sparse; see `stack`.
        y
            Responses (n,) or (n, m); those of the target are never read and can be NaN.
        sample_domain
            Domain of each row: integers (0 and above are sources, below 0 is the target) or names.
            None: all rows are one source, and there is no target.
        target
            With names: which one is the target, "target" if not given.
        """
        X = validate_data(
            self, X, accept_sparse="csr", dtype=(np.float64, np.float32), ensure_min_samples=2
        )
        groups = group(sample_domain, X.shape[0], target=target)
        if groups.target is None and sample_domain is not None and self._uses_target:
            raise DomainError(
                f"sample_domain: no target among {list(groups.sources)}; mark its rows by an "
                f"integer below 0, or say target=... with names"
            )
        labels = self._read_labels(y, groups, X.shape[0])
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(2**31 - 1))
        self._x_scaler = Scaler.fit(X)
        self._y_scaler = Scaler.fit(labels[groups.source_rows])
        scaled = (labels - self._y_scaler.mean) / self._y_scaler.scale
        data = _Data(X, self._x_scaler, torch.from_numpy(scaled.astype(np.float32)))
        self._fit(data, groups, seed)
        return self

    def _read_labels(self, y: Any, groups: Groups, n_rows: int) -> NDArray[np.float64]:
        """Responses (n, m) of the sources; zero for the target."""
        if y is None:
            raise ArgumentError(
                f"y: {type(self).__name__} requires y to be passed, but the target y is None"
            )
        given = np.asarray(y)
        if given.ndim not in (1, 2) or len(given) != n_rows:
            raise DomainError(
                f"y: expected {n_rows} responses (n,) or (n, m) as X has rows, got shape "
                f"{given.shape}"
            )
        rows = groups.source_rows
        own = check_array(given[rows], ensure_2d=False, dtype=np.float64, input_name="y")
        labels = np.zeros((n_rows, 1 if given.ndim == 1 else given.shape[1]))
        labels[rows] = own.reshape(len(rows), -1)
        self._one_column = given.ndim == 1
        return labels

    def _fit(self, data: "_Data", groups: Groups, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        streams = groups.merged() if self._merges() else groups
        held, sources = self._hold_out(streams, seed)
        rows = list(sources.values())
        options = self._training(max(map(len, rows)))
        n_responses = data.y.shape[1]
        net = Net(
            mlp(
                self.n_features_in_,
                self.hidden,
                self.width,
                dropout=self.dropout,
                activation=self.activation,
                generator=generator,
            ),
            linear(self.width, n_responses, generator),
        )
        setup = Setup(len(rows), self.width, n_responses, generator)
        own = self._objective(setup)
        adapts = self._uses_target and groups.target is not None
        objective = own if adapts or not self._uses_target else SourceLoss(setup, self._error())
        if adapts and groups.target is not None:
            rows.append(groups.target)

        def finish(record: Record) -> None:
            record["weights"] = self._named(record["weights"], groups)
            if self.callback is not None:
                self.callback(record)

        self.net_ = net
        self.history_ = train(
            net,
            objective,
            data.batches(rows, len(sources), self.batch_size, seed),
            options,
            validate=(lambda: self._validation(data, held)) if held else None,
            progress=finish,
        )
        self.source_weights_ = self._named(objective.weights.tolist(), groups)
        self._offset = torch.zeros(n_responses)
        if self._error() == "jeffreys":  # which does not see the mean
            self._offset = self._residual(data, groups.source_rows).mean(0)

    def _training(self, largest: int) -> Training:
        for name in ("epochs", "batch_size"):
            value = getattr(self, name)
            low = 2 if name == "batch_size" else 1
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < low:
                raise ArgumentError(f"{name}: expected a whole number from {low} on, got {value!r}")
        if not 0 <= number("average", self.average) <= 1:
            raise ArgumentError(f"average: expected a share from 0 to 1, got {self.average!r}")
        return Training(
            epochs=int(self.epochs),
            steps=max(MIN_STEPS, math.ceil(largest / self.batch_size)),
            lr=number("lr", self.lr, exclusive=True),
            weight_decay=number("weight_decay", self.weight_decay),
            clip=number("clip", self.clip, exclusive=True),
            average=self.average,
            patience=self.patience,
        )

    def _hold_out(self, groups: Groups, seed: int) -> tuple[list[Rows], dict[Name, Rows]]:
        """Held-out rows and training rows of the sources."""
        if self.patience is None:
            return [], groups.sources
        number("patience", self.patience, minimum=1)
        share = number("validation_fraction", self.validation_fraction, exclusive=True)
        held, kept = [], {}
        for name, rows in groups.sources.items():
            mixed = np.random.default_rng(seed + 1).permutation(rows)
            cut = min(int(share * len(rows)), len(rows) - 1)
            held += [mixed[:cut]] if cut else []
            kept[name] = np.sort(mixed[cut:])
        if not held:
            raise DomainError(
                f"validation_fraction: {share:g} of the sources' rows is less than one row; raise "
                f"it or set patience=None"
            )
        return held, kept

    def _residual(self, data: "_Data", rows: Rows) -> torch.Tensor:
        return data.y[torch.from_numpy(rows)] - _predict(self.net_, data, rows)

    def _validation(self, data: "_Data", held: list[Rows]) -> float:
        """RMSE on held-out rows, averaged over sources."""
        gaps = [self._residual(data, rows) for rows in held]
        if self._error() == "jeffreys":
            gaps = [gap - gap.mean(0) for gap in gaps]
        return float(torch.stack([gap.square().mean().sqrt() for gap in gaps]).mean())

    def _named(self, weights: list[float], groups: Groups) -> dict[Name, float]:
        """Weights by name; a method that merges the sources weights them by their rows."""
        if self._merges():
            total = len(groups.source_rows)
            return {name: len(rows) / total for name, rows in groups.sources.items()}
        return dict(zip(groups.sources, weights, strict=True))

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict responses (n,) or (n, m)."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32), reset=False)
        data = _Data(X, self._x_scaler, torch.zeros(0, 0))
        scaled = (_predict(self.net_, data, np.arange(X.shape[0])) + self._offset).double().numpy()
        out = np.asarray(scaled * self._y_scaler.scale + self._y_scaler.mean)
        return out[:, 0] if self._one_column else out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags


class SourceLoss(Objective):
    """Mean error of the sources: what remains of every method without a target."""

    def __init__(self, setup: Setup, error: Error) -> None:
        super().__init__(setup)
        self.error = error

    def forward(self, net: Net, batch: Batch) -> Iterator[Step]:
        """Give the one step of a batch."""
        loss = source_errors(self.error, batch, net(batch.x)).mean()
        self.note(loss=loss)
        yield NETWORK, loss


class _Data:
    """Scaled inputs, sparse ones only as far as they are asked for, and responses (n, m)."""

    def __init__(self, x: Any, scaler: Scaler, y: torch.Tensor) -> None:
        self.sparse = scipy.sparse.issparse(x)
        self.x, self.scaler, self.y = x if self.sparse else scaler.transform(x), scaler, y

    def inputs(self, rows: Rows) -> torch.Tensor:
        """Give scaled rows (n, p)."""
        chosen = self.x[rows]
        return torch.from_numpy(self.scaler.transform(chosen) if self.sparse else chosen)

    def batches(self, rows: list[Rows], k: int, size: int, seed: int) -> Iterator[Batch]:
        """Endless batches of domains, of which the first k are sources."""
        for chosen in balanced(rows, size, seed=seed):
            x = self.inputs(chosen.ravel()).reshape(*chosen.shape, -1)
            yield Batch(x, self.y[torch.from_numpy(chosen[:k])])


@torch.no_grad()
def _predict(net: Net, data: _Data, rows: Rows) -> torch.Tensor:
    net.eval()
    pieces = [rows[i : i + CHUNK] for i in range(0, len(rows), CHUNK)]
    return torch.cat([net(data.inputs(piece)) for piece in pieces])
