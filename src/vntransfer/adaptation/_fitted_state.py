"""What a fit ends with, and what is saved of it."""

from dataclasses import dataclass

from torch import Tensor

from vntransfer.adaptation._ensemble import Ensemble
from vntransfer.adaptation._fit_rows import FitRows
from vntransfer.adaptation._scaling import Scaler
from vntransfer.adaptation._selection import Selection, Virtual
from vntransfer.domains import Groups


@dataclass(frozen=True)
class State:
    """What a fit ends with."""

    x_scaler: Scaler
    y_scaler: Scaler
    limits: tuple[Tensor, Tensor] | None
    one_column: bool
    ensemble: Ensemble
    selection: Selection | None
    sources: FitRows | None  # None after loading
    virtual: Virtual | None = None  # what the selection saw

    def knows(self, groups: Groups) -> bool:
        """Whether the sources have the names of these."""
        return self.sources is not None and list(self.sources.groups.sources) == list(
            groups.sources
        )
