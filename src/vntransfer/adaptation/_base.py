"""The estimator that all methods share: validation, scaling, selection, training, prediction."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, validate_data
from torch import Tensor

from vntransfer._arrays import number
from vntransfer._version import __version__
from vntransfer.adaptation._checkpoint import Checkpoint
from vntransfer.adaptation._data import Data, predict
from vntransfer.adaptation._ensemble import Ensemble, fit_ensemble
from vntransfer.adaptation._loop import Record, Training
from vntransfer.adaptation._members import fingerprint
from vntransfer.adaptation._objective import Error, Objective, Setup, choose
from vntransfer.adaptation._scaling import Scaler
from vntransfer.adaptation._selection import Selection, select
from vntransfer.domains import TARGET, Groups, Name, group
from vntransfer.errors import ArgumentError, DomainError
from vntransfer.networks import Activation

MIN_STEPS = 25
"""Fewest batches of an epoch, so that small tables are trained too."""

Target = str | Sequence[str] | None


@dataclass(eq=False, repr=False, kw_only=True)
class DomainRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """What all regressors of this package share.

    Inputs are standardised on all rows (sources and target), responses on the rows of the sources.
    Every batch holds equally many rows of every source and of the target. The learning rate rises
    over 30 steps and falls to zero like a cosine; the model is the mean of the parameters over the
    last steps. All members of the ensemble are trained as one batched network.

    Parameters
    ----------
    loss
        Error of a source: "mixed" (half RMSE, half Huber loss: steep near a good fit, and not ruled
        by a few rows), "mse", "rmse", "huber", or "jeffreys", the paper's √J(cov[x, y] : cov[x, ŷ])
        on the inputs, with the mean residual of the sources added to predictions afterwards; see
        `JeffreysLoss` for what it cannot see.
    members
        Networks (of each candidate, if there are several) that differ in initial parameters and
        dropout; predictions are their mean.
    hidden, width, dropout, activation
        The default network: sizes of hidden layers, number of features, see
        `vntransfer.networks.mlp`.
    extractor, head
        Networks of your own: torch modules from (n, p) to (n, d) and from (n, d) to (n, m), which
        all members start from, or functions that make a new one from the numbers of columns,
        ``extractor(p)`` and ``head(d, m)``.
    epochs, steps
        Number of epochs, and batches in each; None: a pass over the largest source, at least 25.
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
    bounded
        Whether predictions are kept within the range of the sources' responses.
    device
        Of torch, such as "cpu" or "cuda".
    warm_start
        Whether another ``fit`` starts from the networks of the last one, with its selection.
    checkpoint
        Folder in which the state is kept after each epoch: the same ``fit`` continues from there,
        with the same numbers as if it had never stopped. Remove it when the fit is done.
    random_state
        Seed; no global random state of torch is used.
    callback
        Called with the record of each epoch; its "stage" is "selection" or "training".

    Attributes
    ----------
    source_weights_ : dict
        Weight of each source by its name; with several targets, of each target by its name.
    selection_ : Selection
        With ``trade_off="auto"``: what was chosen, and why.
    history_ : list of dict
        Per epoch: losses, discrepancy, weights, error on held-out rows.
    net_ : Net
        The trained networks (on standardised data), all members side by side.
    """

    loss: Error = "mixed"
    members: int = 1
    hidden: tuple[int, ...] = (64,)
    width: int = 24
    dropout: float = 0.1
    activation: Activation = "leaky_relu"
    extractor: Any = None
    head: Any = None
    epochs: int = 20
    steps: int | None = None
    batch_size: int = 64
    lr: float = 1e-2
    weight_decay: float = 1.0
    clip: float = 5.0
    average: float = 0.2
    patience: int | None = None
    validation_fraction: float = 0.1
    bounded: bool = True
    device: str = "cpu"
    warm_start: bool = False
    checkpoint: Any = None
    random_state: Any = None
    callback: Callable[[Record], None] | None = None

    _uses_target: ClassVar[bool] = True
    _trade_offs: ClassVar[tuple[float, ...]] = ()

    def _objective(self, setup: Setup) -> Objective:
        """Make the method's objective."""
        raise NotImplementedError

    def _error(self) -> Error:
        """Name the error of a source that the method minimises."""
        return self.loss

    def _candidates(self) -> Sequence[Mapping[str, Any]]:
        """Options that ``trade_off="auto"`` compares with source-only, four for every method."""
        return [{"trade_off": mu} for mu in self._trade_offs]

    def _merges(self) -> bool:
        """Whether all sources are one to this method."""
        return False

    def fit(
        self,
        X: Any,
        y: Any,
        sample_domain: Any = None,
        target: Target = None,
        sample_weight: Any = None,
    ) -> Self:
        """Train on labelled sources and the unlabelled target, or several targets.

        Parameters
        ----------
        X
            Rows of all domains (n, p), dense or sparse; see `stack`.
        y
            Responses (n,) or (n, m); those of the target are never read and can be NaN.
        sample_domain
            Domain of each row: integers (0 and above are sources, below 0 targets) or names. None:
            all rows are one source, and there is no target.
        target
            With names: which one is the target, "target" if not given, or a list: each gets its own
            weights and networks, on the same sources and initial parameters. An empty list: train
            on the sources alone and `adapt` later.
        sample_weight
            Weights (n,) by which rows are drawn within their domain; not negative.
        """
        X = validate_data(
            self, X, accept_sparse="csr", dtype=(np.float64, np.float32), ensure_min_samples=2
        )
        groups = group(sample_domain, X.shape[0], target=target, several=True)
        if not groups.targets and sample_domain is not None and self._uses_target and target != []:
            raise DomainError(
                f"sample_domain: no target among {list(groups.sources)}; mark its rows by an "
                f"integer below 0, or say target=... with names (target=[] to adapt later)"
            )
        labels = self._read_labels(y, groups, X.shape[0])
        weights = self._read_weights(sample_weight, groups, X.shape[0])
        again = self.warm_start and hasattr(self, "net_")
        if not again:
            self._x_scaler = Scaler.fit(X)
            self._y_scaler = Scaler.fit(labels[groups.source_rows])
        rows = groups.source_rows
        self._sources = X[rows], labels[rows], weights[rows] if weights is not None else None
        self._source_names = np.empty(len(rows), dtype=object)
        for name, own in groups.sources.items():
            self._source_names[np.searchsorted(rows, own)] = name
        return self._fit(X, labels, groups, weights, again)

    def adapt(self, X: Any) -> Self:
        """Adapt to a target given later; the networks trained so far are the start.

        Parameters
        ----------
        X
            Rows (n, p) of the new target.
        """
        check_is_fitted(self)
        if not hasattr(self, "_sources"):
            raise DomainError(
                "adapt: the rows of the sources are not saved with a model; fit it here, or fit "
                "with all rows and warm_start=True"
            )
        X = validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32), reset=False)
        x, labels, weights = self._sources
        names = self._source_names.tolist()
        own = {name: np.flatnonzero(self._source_names == name) for name in sorted(set(names))}
        target: Name = TARGET if isinstance(names[0], str) else -1
        groups = Groups(own, {target: np.arange(len(names), len(names) + X.shape[0])})
        if weights is not None:
            weights = np.concatenate((weights, np.ones(X.shape[0])))
        empty = np.zeros((X.shape[0], labels.shape[1]))
        sparse = scipy.sparse.issparse(x)
        rows = scipy.sparse.vstack([x, X], format="csr") if sparse else np.concatenate((x, X))
        return self._fit(rows, np.concatenate((labels, empty)), groups, weights, True)

    def _fit(
        self,
        X: Any,
        labels: NDArray[np.float64],
        groups: Groups,
        weights: NDArray[np.float64] | None,
        again: bool,
    ) -> Self:
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        scaled = ((labels - self._y_scaler.mean) / self._y_scaler.scale).astype(np.float32)
        source_rows = groups.source_rows
        own = torch.from_numpy(scaled[source_rows])
        self._range = own.amin(0), own.amax(0)
        data = Data(
            X, self._x_scaler, torch.from_numpy(scaled), weights=weights, device=self.device
        )
        old: Ensemble | None = getattr(self, "_ensemble", None) if again else None
        adapts = self._uses_target and bool(groups.targets)
        selection: Selection | None = None
        if adapts and getattr(self, "trade_off", None) == "auto":
            selection = getattr(self, "selection_", None) if again else None
            selection = selection or select(self, data, groups, seed)
            self.selection_ = selection
        self._ensemble: Ensemble = fit_ensemble(
            self,
            data,
            groups,
            seed=seed,
            selection=selection,
            start=None if old is None else old.net,
            checkpoints=self._checkpoints(X, labels, groups),
            callback=self.callback,
        )
        self._publish()
        return self

    def _publish(self) -> None:
        """Show what the ensemble holds."""
        self.net_ = self._ensemble.net
        self.history_ = self._ensemble.history
        self.source_weights_ = self._ensemble.source_weights

    def _checkpoints(
        self, X: Any, labels: NDArray[np.float64], groups: Groups
    ) -> Callable[[str, dict[str, torch.Generator]], Checkpoint] | None:
        """Make the file of each stage of training, if there is a folder for them."""
        if self.checkpoint is None:
            return None
        options = {
            k: v for k, v in self.get_params().items() if k not in ("callback", "checkpoint")
        }
        domains = [
            (name, *rows)
            for part in (groups.sources, groups.targets)
            for name, rows in part.items()
        ]
        key = fingerprint(
            type(self).__name__, options, __version__, torch.__version__, X, labels, domains
        )
        folder = Path(self.checkpoint)
        return lambda stage, generators: Checkpoint(
            folder / f"{stage}.safetensors", key, generators
        )

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

    def _read_weights(self, given: Any, groups: Groups, n_rows: int) -> NDArray[np.float64] | None:
        """Weights of rows, or None if all are alike."""
        if given is None:
            return None
        weights = np.broadcast_to(np.asarray(given, dtype=np.float64), (n_rows,)).copy()
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise ArgumentError("sample_weight: expected finite numbers of at least 0")
        for name, rows in (groups.sources | groups.targets).items():
            if weights[rows].sum() == 0:
                raise ArgumentError(f"sample_weight: the weights of domain {name!r} are all zero")
        return None if np.ptp(weights) == 0 else weights

    def _training(self, largest: int, batch_size: int, effort: float) -> Training:
        choose("loss", self._error(), Error)
        steps = self.steps
        if steps is None:
            steps = max(MIN_STEPS, math.ceil(largest / batch_size))
        sizes = {"epochs": self.epochs, "steps": steps, "batch_size": self.batch_size}
        for name, value in {**sizes, "members": self.members}.items():
            low = 2 if name == "batch_size" else 1
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < low:
                raise ArgumentError(f"{name}: expected a whole number from {low} on, got {value!r}")
        if not 0 <= number("average", self.average) <= 1:
            raise ArgumentError(f"average: expected a share from 0 to 1, got {self.average!r}")
        return Training(
            epochs=math.ceil(effort * self.epochs),
            steps=int(steps),
            lr=number("lr", self.lr, exclusive=True),
            weight_decay=number("weight_decay", self.weight_decay),
            clip=number("clip", self.clip, exclusive=True),
            average=self.average,
            patience=self.patience,
        )

    def _held_out_share(self) -> float | None:
        """Share of rows that are held out for early stopping."""
        if self.patience is None:
            return None
        number("patience", self.patience, minimum=1)
        return number("validation_fraction", self.validation_fraction, exclusive=True)

    def _bound(self, scaled: Tensor) -> Tensor:
        """Keep predictions within the range of the sources' responses."""
        return scaled.clamp(*self._range) if self.bounded else scaled

    def predict(self, X: Any, target: Name | None = None) -> NDArray[np.float64]:
        """Predict responses (n,) or (n, m).

        Parameters
        ----------
        X
            Rows (n, p).
        target
            Of several targets, the one that the rows are of.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32), reset=False)
        data = Data(X, self._x_scaler, torch.zeros(0, 0), device=self.device)
        shares = self._ensemble.shares_for(target)
        every = predict(self.net_, data, np.arange(X.shape[0])) + self._ensemble.offset
        scaled = torch.einsum("m,mnc->nc", shares.double(), self._bound(every).double()).numpy()
        out = np.asarray(scaled * self._y_scaler.scale + self._y_scaler.mean)
        return out[:, 0] if self._one_column else out

    def save(self, folder: str | Path) -> None:
        """Write the fitted model into a folder: `model.safetensors` and `model.json`, no code.

        `vntransfer.load_model` reads it. Rows of the sources are not saved, nor are modules of your
        own.
        """
        from vntransfer.adaptation._storage import save_network

        save_network(self, folder)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags
