"""The settings of `adapt`, checked once and passed down."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from vntransfer.adaptation import METHODS
from vntransfer.adaptation.candidates import maker
from vntransfer.checks import instance, one_of, texts, whole
from vntransfer.checks import names as check_names
from vntransfer.errors import ArgumentError
from vntransfer.tables.files import expand
from vntransfer.tables.frame import in_memory
from vntransfer.tables.problem import LEAST, TableColumns
from vntransfer.workflows.evidence import REFERENCE
from vntransfer.workflows.response_transform import Asked

COMPARED = ("boosting", REFERENCE)
"""What every method is compared with."""

MAX_ROWS = 20_000
"""Rows of each source that methods learn from, unless the user asks for more."""

STREAMED = "closed_form"
"""The method that learns from moments alone, and so from rows that pass by once."""

LARGE = 2**28
"""Bytes of files from which on rows are not held in memory."""


@dataclass(frozen=True)
class AdaptSettings:
    """Arguments of `adapt`, which explains them.

    Examples
    --------
    >>> AdaptSettings(TableColumns("town", "price"), ["new"], scheduler="tcp://head:8786")
    Traceback (most recent call last):
    vntransfer.errors.ArgumentError: scheduler: needs engine 'dask', got engine None
    """

    columns: TableColumns
    targets: Sequence[str]
    method: str = "auto"
    use_target_labels: bool = False
    candidates: Sequence[str] | None = None
    compare: Sequence[str] = COMPARED
    transform: Asked = "auto"
    random_state: int = 0
    max_rows: int = MAX_ROWS
    n_jobs: int | None = None
    engine: Literal["local", "dask"] | None = None
    scheduler: str | None = None

    def __post_init__(self) -> None:
        def put(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        METHODS[instance("method", self.method, str, "the id of a method")]
        put("random_state", whole("random_state", self.random_state))
        whole("max_rows", self.max_rows, minimum=LEAST)
        if self.n_jobs is not None:
            whole("n_jobs", self.n_jobs, minimum=1)
        instance("use_target_labels", self.use_target_labels, bool, "True or False")
        if self.candidates is not None:
            every = texts("candidates", self.candidates, "a list of methods, or None for all")
            put("candidates", every)
        put("compare", texts("compare", self.compare, "a list of methods, or () for none"))
        for option in ("candidates", "compare"):
            for name in getattr(self, option) or ():
                maker(name, option)
        one_of("transform", self.transform, Asked)
        put("targets", check_names("target", self.targets))
        instance("scheduler", self.scheduler, str | None, "a text or None")
        if self.scheduler is not None and self.engine != "dask":
            raise ArgumentError(f"scheduler: needs engine 'dask', got engine {self.engine!r}")
        if self.engine is not None:
            one_of("engine", self.engine, ("local", "dask"))
            if self.method != STREAMED:
                raise ArgumentError(
                    f"engine: only method {STREAMED!r} reads rows in blocks, got {self.method!r}; "
                    f"omit the engine or use that method"
                )

    def in_blocks(self, data: Any) -> bool:
        """Whether a table is read in blocks: because that was asked for, or it is large."""
        if in_memory(data):
            if self.engine is not None:
                raise ArgumentError("engine: the table is in memory; omit the engine")
            return False
        if self.engine is not None or self.method != STREAMED:
            return self.engine is not None
        return sum(file.stat().st_size for file in expand(data, "data")) > LARGE
