"""The estimator that all methods share: validation, scaling, selection, training, prediction."""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state

from vntransfer._version import __version__
from vntransfer.adaptation._checkpoint import Checkpoint
from vntransfer.adaptation._data import Data, predict
from vntransfer.adaptation._ensemble import Fitted, fit_ensemble
from vntransfer.adaptation._estimator import FitRows, TransferEstimator
from vntransfer.adaptation._member_training import Checkpoints, FitRun
from vntransfer.adaptation._objective import Error, Objective, Setup, SourceLoss
from vntransfer.adaptation._saving import SavableNetwork
from vntransfer.adaptation._scaler import Scaler
from vntransfer.adaptation._selection import EFFORT, select
from vntransfer.adaptation._training_loop import EpochCounter, Schedule, Training
from vntransfer.adaptation.network_predictor import NetworkValues, shares_for
from vntransfer.checks import fraction, is_sparse, number, whole
from vntransfer.display import percent
from vntransfer.domains import Name
from vntransfer.errors import ArgumentError, DataWarning
from vntransfer.networks import Activation, Net
from vntransfer.progress import Progress
from vntransfer.storage.files import fingerprint
from vntransfer.storage.pacing import paced

MIN_STEPS = 25
"""Fewest batches of an epoch, so that small tables are trained too."""

POSITIVE = ("lr", "clip", "ridge", "sharpness")
BELOW_ONE = ("dropout", "share")

OUTSIDE = 0.05
"""Share of a target's values beyond what can be learned from, above which a warning is given."""


@dataclass(eq=False, repr=False, kw_only=True)
class DomainRegressor(SavableNetwork, RegressorMixin, TransferEstimator):  # type: ignore[misc]
    """What all regressors of this package share.

    Inputs are standardized on all rows (sources and target), responses on the rows of the sources.
    Every batch holds equally many rows of every source and of the target. Without
    adaptation, a source of n < 20 rows counts n/20 as much as a larger one. The learning rate rises
    over 30 steps and falls to zero like a cosine; the model is the mean of the parameters over the
    last steps. All members of the ensemble are trained as one batched network.

    Parameters
    ----------
    loss
        Error of a source: "mixed" (half RMSE, half Huber loss: steep near a good fit, but not
        dominated by a few rows), "mse", "rmse", "huber", or "jeffreys", the paper's √J(cov[x, y] :
        cov[x, ŷ]) on the inputs, with the mean residual of the sources added to predictions
        afterwards; see `JeffreysLoss` for what it cannot see.
    members
        Networks (of each candidate, if there are several) that differ in initial parameters and
        dropout; predictions are their mean.
    hidden, width, dropout, activation, input_scales
        The default network: sizes of hidden layers, number of features, whether each input has a
        trained scale, see `vntransfer.networks.mlp`.
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
        Options of AdamW; adversaries and domain classifiers have the same decay.
    schedule
        "cosine": the learning rate rises over 30 steps and falls to zero; or "constant".
    clip
        Largest gradient norm of each block of parameters.
    average
        Share of the last steps over which parameters are averaged.
    bounded
        Whether predictions are kept within the range of the sources' responses.
    clip_inputs
        Whether values are clipped to the range of the column in the sources. Beyond it the
        predictions of a network are arbitrary.
    device
        Torch device, such as "cpu" or "cuda".
    checkpoint
        Folder in which the state is saved after each epoch. The same ``fit`` resumes from there,
        with the same numbers as without an interruption; another one uses files of its own. Delete
        the folder when the fit is done, or when you change the ``forward`` of your own module:
        modules are identified by their ``repr``. `vntransfer.storage.Paced` writes less often.
    random_state
        Seed; no global random state of torch is used.

    Attributes
    ----------
    source_weights_ : dict
        Weight of each source by its name; with several targets, of each target by its name.
    selection_ : Selection
        With ``trade_off="auto"``: what was chosen, and why.
    history_ : list of dict
        Per epoch: losses, weights, the discrepancy of what is aligned.
    net_ : Net
        The trained networks (on standardized data), all members side by side.
    step_times_ : StepTimes
        Number and processor time of the training steps; not saved.
    """

    loss: Error = "mixed"
    members: int = 1
    hidden: tuple[int, ...] = (64,)
    width: int = 24
    dropout: float = 0.1
    activation: Activation = "leaky_relu"
    input_scales: bool = False
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
    bounded: bool = True
    clip_inputs: bool = True
    device: str = "cpu"
    checkpoint: Any = None
    random_state: Any = None

    _needs_target: ClassVar[bool] = True
    _several: ClassVar[bool] = True
    _multi_output: ClassVar[bool] = True
    _steps: ClassVar[type[Objective]] = SourceLoss
    _trade_offs: ClassVar[tuple[float, ...]] = ()

    def _objective(self, setup: Setup, adapts: bool = True) -> Objective:
        """Make the method's objective, or that of the sources alone."""
        kind = self._steps if adapts else SourceLoss
        return kind(setup, self).to(setup.device)

    def _error(self) -> Error:
        """Name the error of a source that the method minimizes."""
        return self.loss

    def _candidates(self) -> Sequence[Mapping[str, Any]]:
        """Options that ``trade_off="auto"`` compares with source-only, four for every method."""
        return [{"trade_off": mu} for mu in self._trade_offs]

    def _merges(self) -> bool:
        """Whether the method merges all sources."""
        return False

    def _fit_rows(self, rows: FitRows, progress: Progress | None) -> Self:
        """Fit; what was there before stays as it is until the end."""
        rows = replace(rows, weights=_drawing_weights(rows))
        groups, own = rows.groups, rows.groups.source_rows
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        kept = None if rows.weights is None else rows.weights[own]
        drawn = own if kept is None else own[kept > 0]
        x_scaler = Scaler.fit(rows.x, within=rows.x[drawn] if self.clip_inputs else None)
        for name, places in groups.targets.items():
            if (share := x_scaler.outside(rows.x[places])) > OUTSIDE:
                whose = "the target" if len(groups.targets) == 1 else f"target {name!r}"
                warnings.warn(
                    f"{percent(share)} of the values of {whose} are outside the range "
                    f"of the sources and are clipped to it",
                    DataWarning,
                    stacklevel=3,
                )
        y = rows.y.reshape(len(rows.y), -1)
        y_scaler = Scaler.fit(y[own], kept)
        scaled = torch.from_numpy(((y - y_scaler.mean) / y_scaler.scale).astype(np.float32))
        used = scaled[torch.from_numpy(drawn)]
        limits = (used.amin(0).numpy(), used.amax(0).numpy()) if self.bounded else None
        data = Data(
            rows.x, x_scaler, scaled, weights=rows.weights, limits=limits, device=self.device
        )
        chooses = bool(groups.targets) and getattr(self, "trade_off", None) == "auto"
        total = self.epochs + (2 * math.ceil(EFFORT * self.epochs) if chooses else 0)
        run = FitRun(seed, EpochCounter(progress, total), self._checkpoints(rows, seed))
        selection, seen = select(self, data, groups, run) if chooses else (None, None)
        ensemble = fit_ensemble(self, data, groups, run, selection)
        members = ensemble.shares, ensemble.offset
        self._values = NetworkValues(x_scaler, y_scaler, limits, *members, rows.y.ndim == 1)
        self._fitted = Fitted(data, groups, seen)
        self.net_, self.history_ = ensemble.net, ensemble.history
        self.source_weights_, self.step_times_ = ensemble.source_weights, ensemble.step_times
        if seen is not None:
            self.step_times_ += seen.step_times
        if selection is not None:
            self.selection_ = selection
        elif hasattr(self, "selection_"):
            del self.selection_
        return self

    def _checkpoints(self, rows: FitRows, seed: int) -> Checkpoints | None:
        """Make the file of each stage of training, if there is a folder for them."""
        if self.checkpoint is None:
            return None
        if not isinstance(self.random_state, int | np.integer):
            raise ArgumentError(
                f"random_state: expected a whole number together with checkpoint, to identify the "
                f"fit, got {self.random_state!r}"
            )
        named, x = {**rows.groups.sources, **rows.groups.targets}, rows.x
        inputs = (x.shape, x.data, x.indices, x.indptr) if is_sparse(x) else (x,)
        arrays = *inputs, rows.y, rows.weights, *named.values()
        return checkpoint_files(self, seed, list(named), *arrays)

    def _check_options(self, rows: int = 2) -> None:
        """Raise if an option is impossible; ``rows`` are a batch's least."""
        for name, low in {"epochs": 1, "batch_size": rows, "members": 1}.items():
            whole(name, getattr(self, name), minimum=low)
        if self.steps is not None:
            whole("steps", self.steps, minimum=1)
        for name in POSITIVE:
            if hasattr(self, name):
                number(name, getattr(self, name), exclusive=True)
        fraction("average", self.average)
        if np.shape(self.betas) != (2,) or not all(0 <= number("betas", b) < 1 for b in self.betas):
            raise ArgumentError(f"betas: expected two numbers below 1, got {self.betas!r}")
        for name in BELOW_ONE:
            if fraction(name, value := getattr(self, name, 0)) == 1:
                raise ArgumentError(f"{name}: expected a number below 1, got {value!r}")
        super()._check_options()
        try:
            torch.zeros(1, device=self.device)
        except (RuntimeError, TypeError, AssertionError) as error:
            raise ArgumentError(f"device: {self.device!r} cannot be used ({error})") from None

    def _training(self, largest: int, batch_size: int, effort: float) -> Training:
        steps = self.steps
        if steps is None:
            steps = max(MIN_STEPS, math.ceil(largest / batch_size))
        return Training(math.ceil(effort * self.epochs), int(steps), self.average)

    def predict(self, X: Any, target: Name | Sequence[Name] | None = None) -> NDArray[np.float64]:
        """Predict responses (n,) or (n, m).

        Parameters
        ----------
        X
            Rows (n, p).
        target
            Target that the rows belong to, if the model has several.
        """
        X = self._new_rows(X)
        own = self._values
        data = Data(X, own.x_scaler, torch.zeros(0, 0), limits=own.limits, device=self.device)
        shares = torch.from_numpy(shares_for(own.shares, target))
        every = predict(self.net_, data, np.arange(X.shape[0])) + torch.from_numpy(own.offset)
        scaled = torch.einsum("m,mnc->nc", shares.double(), data.bound(every).double()).numpy()
        out = self._finite(np.asarray(scaled * own.y_scaler.scale + own.y_scaler.mean))
        return out[:, 0] if own.one_column else out


def _drawing_weights(rows: FitRows) -> NDArray[np.float64] | None:
    """Weights by which rows are drawn from each source; None if all are drawn alike."""
    weights = rows.weights
    if weights is None:
        return None
    for name, places in rows.groups.sources.items():
        if weights[places].sum() == 0:
            raise ArgumentError(f"sample_weight: the weights of domain {name!r} are all zero")
    return None if np.ptp(weights[rows.groups.source_rows]) == 0 else weights


def checkpoint_files(model: DomainRegressor, *given: Any) -> Checkpoints:
    """Make the files of a fit's stages, in the folder of the ``checkpoint`` option.

    Their names have a hash of all that the result depends on: options, versions, what is given, and
    the initial network (how it is written, what of it is trained, and its values).
    """
    code = ("checkpoint", "extractor", "head")
    options = {k: v for k, v in model.get_params().items() if k not in code}
    key = fingerprint(type(model).__name__, options, __version__, torch.__version__, *given)

    def make(stage: str, net: Net, generators: dict[str, torch.Generator]) -> Checkpoint:
        start = [value.cpu().numpy() for value in net.state_dict().values()]
        moved = [name for name, p in net.named_parameters() if p.requires_grad]
        own = fingerprint(key, stage, net, moved, *start)
        place = paced(model.checkpoint) / f"{stage}-{own[:16]}.safetensors"
        return Checkpoint(place, own, generators)

    return make
