"""The options of `relate` as one object that validates itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from vntransfer.checks import instance, number, one_of, whole
from vntransfer.errors import ArgumentError
from vntransfer.relations._matrices import check_divergence

Engine = Literal["local", "dask"]

RIDGE = 1e-3
"""Ridge of the covariances of standardized columns: the `auto` of `pairwise`."""


@dataclass(frozen=True)
class RelateSettings:
    """Options of `vntransfer.relate`, where they are explained."""

    domain: str | None = None
    response: str | None = None
    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    category: Sequence[str] = ()
    divergence: str = "conditional_von_neumann"
    n_resamples: int | None = None
    n_bootstrap: int = 200
    level: float = 0.95
    ridge: float = RIDGE
    random_state: int = 0
    engine: Engine = "local"
    scheduler: str | None = None

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "divergence": check_divergence(self.divergence),
            "ridge": number("ridge", self.ridge, exclusive=True),
            "level": number("level", self.level, minimum=0.5),
            "n_bootstrap": whole("n_bootstrap", self.n_bootstrap, minimum=20),
            "random_state": whole("random_state", self.random_state),
            "engine": one_of("engine", self.engine, Engine),
        }
        if checked["level"] >= 1:
            raise ArgumentError(f"level: expected a share from 0.5 to below 1, got {self.level}")
        if self.n_resamples is not None:
            checked["n_resamples"] = whole("n_resamples", self.n_resamples, minimum=1)
        for name in ("domain", "response", "scheduler"):
            instance(name, getattr(self, name), str | None, "a text or None")
        if (self.domain is None) != (self.response is None):
            raise ArgumentError("domain, response: a table needs both, domains (X, y) neither")
        if self.scheduler is not None and self.engine == "local":
            raise ArgumentError("scheduler: needs engine 'dask', got engine 'local'")
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def record(self, columns: int, n_resamples: int) -> dict[str, Any]:
        """Return the plain values that a result keeps."""
        kept = ("divergence", "level", "ridge", "n_bootstrap", "random_state")
        return {name: getattr(self, name) for name in kept} | {
            "columns": columns,
            "domain": self.domain or "domain",
            "response": self.response or "y",
            "n_resamples": n_resamples,
        }
