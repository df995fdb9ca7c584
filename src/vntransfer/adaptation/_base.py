"""The estimator that all methods share: validation, scaling, selection, training, prediction."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from vntransfer._version import __version__
from vntransfer.adaptation._batches import Data, predict
from vntransfer.adaptation._checkpoint import Checkpoint
from vntransfer.adaptation._ensemble import Checkpoints, fit_ensemble
from vntransfer.adaptation._fit_rows import FitRows, read_table
from vntransfer.adaptation._fitted_state import State
from vntransfer.adaptation._member_training import Start
from vntransfer.adaptation._objective import Error, Objective, Setup, choose
from vntransfer.adaptation._saving import SavableNetwork
from vntransfer.adaptation._scaling import Scaler
from vntransfer.adaptation._selection import select
from vntransfer.adaptation._training_loop import Record, Schedule, Training
from vntransfer.checks import number, whole
from vntransfer.domains import Name, Target, group, target_names
from vntransfer.errors import ArgumentError, DataWarning, DomainError
from vntransfer.networks import Activation, Net
from vntransfer.storage.files import fingerprint
from vntransfer.storage.pacing import paced

MIN_STEPS = 25
"""Fewest batches of an epoch, so that small tables are trained too."""

OUTSIDE = 0.05
"""Share of a target's values beyond what can be learned from, above which a warning is given."""


@dataclass(eq=False, repr=False, kw_only=True)
class DomainRegressor(SavableNetwork, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """What all regressors of this package share.

    Inputs are standardized on all rows (sources and target), responses on the rows of the sources.
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
        ``extractor(p)`` and ``head(d, m)``. Parameters that need no gradient stay frozen; batch
        normalization sees the rows of all domains of a batch together.
    epochs, steps
        Number of epochs, and batches in each; None: a pass over the largest source, at least 25.
    batch_size
        Rows per domain and batch.
    lr, weight_decay, betas
        Of AdamW; the decay is also that of adversaries and domain classifiers.
    schedule
        "cosine": the learning rate rises over 30 steps and falls to zero; or "constant".
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
    clip_inputs
        Whether values are kept within the range that the column has in the sources: a network
        knows nothing beyond it, and what it says there is as good as random.
    device
        Of torch, such as "cpu" or "cuda".
    warm_start
        Whether another ``fit`` starts from the networks of the last one, with its selection.
    checkpoint
        Folder in which the state is kept after each epoch: the same ``fit`` continues from there,
        with the same numbers as if it had never stopped; another one begins files of its own.
        Remove it when the fit is done, and when the ``forward`` of a module of your own changes:
        modules are told apart by their ``repr``. `vntransfer.storage.Paced` writes less often.
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
        Per epoch: losses, weights, the discrepancy of what is aligned, the error on held-out rows.
    net_ : Net
        The trained networks (on standardized data), all members side by side.
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
    betas: tuple[float, float] = (0.9, 0.99)
    schedule: Schedule = "cosine"
    clip: float = 5.0
    average: float = 0.2
    patience: int | None = None
    validation_fraction: float = 0.1
    bounded: bool = True
    clip_inputs: bool = True
    device: str = "cpu"
    warm_start: bool = False
    checkpoint: Any = None
    random_state: Any = None
    callback: Callable[[Record], None] | None = None

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sample_domain": True}

    _uses_target: ClassVar[bool] = True
    _trade_offs: ClassVar[tuple[float, ...]] = ()

    def _objective(self, setup: Setup) -> Objective:
        """Make the method's objective."""
        raise NotImplementedError

    def _error(self) -> Error:
        """Name the error of a source that the method minimizes."""
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
        """Train on labeled sources and the unlabeled target, or several targets.

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
            Weights (n,) by which rows of the sources are drawn; those of targets are not read.
        """
        X = validate_data(
            self, X, accept_sparse="csr", dtype=(np.float64, np.float32), ensure_min_samples=2
        )
        groups = group(sample_domain, X.shape[0], target=target, several=True)
        later = target_names(target) == []
        if not groups.targets and sample_domain is not None and self._uses_target and not later:
            raise DomainError(
                f"sample_domain: no target among {list(groups.sources)}; mark its rows by an "
                f"integer below 0, or say target=... with names (target=[] to adapt later)"
            )
        table = read_table(type(self).__name__, X, y, groups, sample_weight)
        old = self._state if self.warm_start and hasattr(self, "net_") else None
        if old is not None:
            for name, given, scaler in (("X", X, old.x_scaler), ("y", table.y, old.y_scaler)):
                if given.shape[1] != len(scaler.mean):
                    raise ArgumentError(
                        f"{name}: {given.shape[1]} column(s), but the fitted networks have "
                        f"{len(scaler.mean)}; fit anew with warm_start=False"
                    )
        return self._fit(table, old)

    def adapt(self, X: Any) -> Self:
        """Adapt to a target given later; the networks trained so far are the start.

        Inputs stay scaled as in the fit. A fitted model holds the rows of its sources for this; a
        saved one does not.

        Parameters
        ----------
        X
            Rows (n, p) of the new target.
        """
        check_is_fitted(self)
        old = self._state
        if old.sources is None:
            raise DomainError(
                "adapt: the rows of the sources are not saved with a model; fit it here, or fit "
                "with all rows and warm_start=True"
            )
        X = validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32), reset=False)
        return self._fit(old.sources.with_target(X), old)

    def _fit(self, table: FitRows, old: State | None) -> Self:
        """Fit; what was there before stays as it is until the end."""
        self._check_options()
        groups, own = table.groups, table.groups.source_rows
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        kept = None if table.weights is None else table.weights[own]
        drawn = own if kept is None else own[kept > 0]
        if old is None:
            x_scaler = Scaler.fit(table.x, within=table.x[drawn] if self.clip_inputs else None)
        else:
            x_scaler = old.x_scaler
        for name, rows in groups.targets.items():
            if (share := x_scaler.outside(table.x[rows])) > OUTSIDE:
                warnings.warn(
                    f"X: {share:.0%} of the values of target {name!r} lie outside of what the "
                    f"sources have in these columns and are cut there",
                    DataWarning,
                    stacklevel=3,
                )
        y_scaler = Scaler.fit(table.y[own], kept) if old is None else old.y_scaler
        scaled = torch.from_numpy(((table.y - y_scaler.mean) / y_scaler.scale).astype(np.float32))
        used = scaled[torch.from_numpy(drawn)]
        limits = (used.amin(0), used.amax(0)) if self.bounded else None
        data = Data(
            table.x, x_scaler, scaled, weights=table.weights, limits=limits, device=self.device
        )
        adapts = self._uses_target and bool(groups.targets)
        selection, virtual = None, None
        files = self._checkpoints(table, seed)
        if adapts and getattr(self, "trade_off", None) == "auto":
            known = old is not None and old.selection is not None and old.knows(groups)
            selection = old.selection if old is not None and known else None
            if selection is None:
                selection, virtual = select(self, data, groups, seed, files)
        ensemble = fit_ensemble(
            self,
            data,
            groups,
            seed=seed,
            selection=selection,
            start=None if old is None else Start(old.ensemble.net, old.ensemble.labels),
            checkpoints=files,
            callback=self.callback,
        )
        one, sources = table.one_column, table.sources()
        self._publish(State(x_scaler, y_scaler, limits, one, ensemble, selection, sources, virtual))
        return self

    def _publish(self, state: State) -> None:
        """Show what a fit ended with."""
        self._state = state
        self.net_ = state.ensemble.net
        self.history_ = state.ensemble.history
        self.source_weights_ = state.ensemble.source_weights
        if state.selection is not None:
            self.selection_ = state.selection
        elif hasattr(self, "selection_"):
            del self.selection_

    def _checkpoints(self, table: FitRows, seed: int) -> Checkpoints | None:
        """Make the file of each stage of training, if there is a folder for them.

        Its name has a hash of all that the result depends on, the initial network included: how it
        is written, what of it is trained, and its values.
        """
        if self.checkpoint is None:
            return None
        if not isinstance(self.random_state, int | np.integer):
            raise ArgumentError(
                f"random_state: expected a whole number together with checkpoint, so that the same "
                f"fit can be told from another, got {self.random_state!r}"
            )
        code = ("callback", "checkpoint", "extractor", "head")
        options = {k: v for k, v in self.get_params().items() if k not in code}
        named = {**table.groups.sources, **table.groups.targets}
        versions = __version__, torch.__version__
        arrays = *table.inputs(), table.y, table.weights, *named.values()
        key = fingerprint(type(self).__name__, options, versions, seed, list(named), *arrays)

        def make(stage: str, net: Net, generators: dict[str, torch.Generator]) -> Checkpoint:
            start = [value.cpu().numpy() for value in net.state_dict().values()]
            moved = [name for name, p in net.named_parameters() if p.requires_grad]
            own = fingerprint(key, stage, net, moved, *start)
            place = paced(self.checkpoint) / f"{stage}-{own[:16]}.safetensors"
            return Checkpoint(place, own, generators)

        return make

    def _check_options(self, rows: int = 2) -> None:
        """Raise if an option that all methods share is impossible; ``rows`` are a batch's least."""
        for name, low in {"epochs": 1, "batch_size": rows, "members": 1}.items():
            whole(name, getattr(self, name), minimum=low)
        for name in ("steps", "patience"):
            if (value := getattr(self, name)) is not None:
                whole(name, value, minimum=1)
        if np.shape(self.betas) != (2,) or not all(0 <= number("betas", b) < 1 for b in self.betas):
            raise ArgumentError(f"betas: expected two shares below 1, got {self.betas!r}")
        choose("loss", self._error(), Error)
        choose("schedule", self.schedule, Schedule)
        if not 0 <= number("dropout", self.dropout) < 1:
            raise ArgumentError(f"dropout: expected a share below 1, got {self.dropout!r}")
        if not 0 <= number("average", self.average) <= 1:
            raise ArgumentError(f"average: expected a share from 0 to 1, got {self.average!r}")
        if not 0 < number("validation_fraction", self.validation_fraction) < 1:
            raise ArgumentError(
                f"validation_fraction: expected a share between 0 and 1, got "
                f"{self.validation_fraction!r}"
            )
        try:
            torch.zeros(1, device=self.device)
        except (RuntimeError, TypeError, AssertionError) as error:
            raise ArgumentError(f"device: {self.device!r} cannot be used ({error})") from None

    def _training(self, largest: int, batch_size: int, effort: float) -> Training:
        steps = self.steps
        if steps is None:
            steps = max(MIN_STEPS, math.ceil(largest / batch_size))
        return Training(
            epochs=math.ceil(effort * self.epochs),
            steps=int(steps),
            lr=number("lr", self.lr, exclusive=True),
            weight_decay=number("weight_decay", self.weight_decay),
            clip=number("clip", self.clip, exclusive=True),
            average=self.average,
            patience=self.patience,
            betas=(float(self.betas[0]), float(self.betas[1])),
            schedule=self.schedule,
        )

    def _held_out_share(self) -> float | None:
        """Share of rows that are held out for early stopping."""
        return None if self.patience is None else self.validation_fraction

    def predict(self, X: Any, target: Name | Sequence[Name] | None = None) -> NDArray[np.float64]:
        """Predict responses (n,) or (n, m).

        Parameters
        ----------
        X
            Rows (n, p).
        target
            Of several targets, the one that the rows are of; a list of one will do.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32), reset=False)
        state = self._state
        data = Data(X, state.x_scaler, torch.zeros(0, 0), limits=state.limits, device=self.device)
        shares = state.ensemble.shares_for(target)
        every = predict(self.net_, data, np.arange(X.shape[0])) + state.ensemble.offset
        scaled = torch.einsum("m,mnc->nc", shares.double(), data.bound(every).double()).numpy()
        out = np.asarray(scaled * state.y_scaler.scale + state.y_scaler.mean)
        return out[:, 0] if state.one_column else out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags
