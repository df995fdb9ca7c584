"""Loaded data sets: provenance, and domains or a stream of tasks.

Its record in the registry is `vntransfer_lab.data.registry.Entry`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import whole
from vntransfer.display import one_line, short
from vntransfer.errors import DataError, DomainError

Features = Any  # an ndarray (n, ...) or a scipy CSR matrix (n, p)
Labels = NDArray[Any]


@dataclass(frozen=True)
class Provenance:
    """Source and preparation of a data set.

    A loader gives only ``built``; `vntransfer_lab.data.load` adds the rest from the registry and
    the files that were read.

    Examples
    --------
    >>> print(Provenance(built=("generated, seed 0",), license="none needed").describe())
    license   none needed
    built     generated, seed 0
    files     none read
    """

    built: tuple[str, ...] = ()  # one line per step of the construction
    sources: tuple[str, ...] = ()  # addresses, the official one first
    license: str = ""
    citation: str = ""
    sha256: Mapping[str, str] = field(default_factory=dict)  # of the files that were read
    verified: bool = False  # whether all of them have a hash that is known to be right

    def describe(self) -> str:
        """Describe it in several lines."""
        lines = [("source", address) for address in self.sources]
        lines += [("license", self.license)] if self.license else []
        lines += [("cite", self.citation)] if self.citation else []
        lines += [("built", step) for step in self.built]
        lines += [("sha256", f"{value}  {name}") for name, value in self.sha256.items()]
        state = "verified: hashes are known" if self.verified else "unverified: no hash known"
        lines += [("files", state if self.sha256 else "none read")]
        return "\n".join(f"{key:<9} {text}" for key, text in lines)


def _check_rows(where: str, x: Features, y: Labels) -> None:
    """Raise unless x and y are finite numbers with matching rows, at least two."""
    if getattr(x, "ndim", 0) < 2:
        raise DataError(f"{where}: X needs rows and columns, got shape {np.shape(x)}")
    if x.shape[0] != y.shape[0]:
        raise DataError(f"{where}: X has {x.shape[0]} rows but y has {y.shape[0]}; drop the rest")
    if x.shape[0] < 2:
        raise DataError(
            f"{where}: has {x.shape[0]} row(s), at least 2 are needed; drop it or merge it"
        )
    stored = x.data if hasattr(x, "tocsr") else x
    for letter, values in (("X", stored), ("y", y)):
        if values.dtype.kind not in "biuf":
            raise DataError(f"{where}: {letter} has type {values.dtype}; expected numbers")
        if values.dtype.kind != "f" or not isinstance(values, np.ndarray):  # made on access
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(values.sum()):  # no temporary as large as the data
                continue
        if len(bad := np.argwhere(~np.isfinite(values))):
            raise DataError(
                f"{where}: {letter} has {len(bad)} values that are not finite, the first at index "
                f"{tuple(map(int, bad[0]))}; drop or impute these rows"
            )


@dataclass(frozen=True, eq=False)
class Domains(Mapping[str, tuple[Features, Labels]]):
    """Named domains of one data set: a mapping ``{domain: (X, y)}``.

    X is an array (n, p) or (n, height, width, ...) or a scipy CSR matrix, y an array with n >= 2
    rows; all numbers are finite and rows have the same shape everywhere.

    Examples
    --------
    >>> x, y = np.zeros((3, 2)), np.arange(3.0)
    >>> toy = Domains("toy", {"a": (x, y), "b": (x, y)}, feature_names=("u", "v"))
    >>> list(toy), toy["a"][0].shape, toy.targets
    (['a', 'b'], (3, 2), ('a', 'b'))
    >>> toy.summary()
    'toy: 2 domains, 6 rows x 2 features'
    """

    name: str
    domains: Mapping[str, tuple[Features, Labels]]
    feature_names: tuple[str, ...] = ()  # empty when the columns have none (pixels)
    response_name: str = "y"  # what y is, with its unit
    targets: tuple[str, ...] = ()  # domains that serve as target by default; empty: each of them
    provenance: Provenance = field(default_factory=Provenance)
    extras: dict[str, Any] = field(default_factory=dict)  # test rows, units, anything else

    __hash__ = object.__hash__
    __eq__ = object.__eq__

    def __post_init__(self) -> None:
        if not self.domains:
            raise DomainError(f"{self.name}: has no domains; give at least one")
        shapes: dict[tuple[int, ...], str] = {}
        for domain, (x, y) in self.domains.items():
            _check_rows(f"{self.name}, domain {domain!r}", x, y)
            shapes.setdefault(tuple(x.shape[1:]), domain)
        if len(shapes) > 1:
            seen = ", ".join(f"{shape} in {domain!r}" for shape, domain in shapes.items())
            raise DomainError(f"{self.name}: rows of X differ in shape: {seen}")
        (shape,) = shapes
        if self.feature_names and len(self.feature_names) != shape[0]:
            raise DomainError(
                f"{self.name}: feature_names has {len(self.feature_names)} names for {shape[0]} "
                "columns"
            )
        if unknown := [target for target in self.targets if target not in self.domains]:
            raise DomainError(
                f"{self.name}: targets {unknown} are not among its domains {list(self.domains)}"
            )
        if not self.targets:
            object.__setattr__(self, "targets", tuple(self.domains))

    def __getitem__(self, domain: str) -> tuple[Features, Labels]:
        try:
            return self.domains[domain]
        except KeyError:
            raise DomainError(
                f"{self.name}: no domain {domain!r}; it has {', '.join(self.domains)}"
            ) from None

    def __contains__(self, domain: object) -> bool:
        return domain in self.domains

    def __iter__(self) -> Iterator[str]:
        return iter(self.domains)

    def __len__(self) -> int:
        return len(self.domains)

    def __repr__(self) -> str:
        size = self.summary().removeprefix(self.name)
        return one_line(f"Domains {short(self.name)}{size}")

    def summary(self) -> str:
        """One line: name, number of domains, rows, shape of a row."""
        rows = sum(x.shape[0] for x, _ in self.domains.values())
        shape = next(iter(self.domains.values()))[0].shape[1:]
        plural = "" if len(self) == 1 else "s"
        size = " x ".join(map(str, shape))
        return f"{self.name}: {len(self)} domain{plural}, {rows} rows x {size} features"


@dataclass(frozen=True, eq=False)
class StreamTask:
    """Training and test rows of one task of a stream."""

    x: NDArray[Any]
    y: Labels
    x_test: NDArray[Any]
    y_test: Labels
    name: str = ""

    def __post_init__(self) -> None:
        _check_rows(f"task {self.name!r}, training", self.x, self.y)
        _check_rows(f"task {self.name!r}, test", self.x_test, self.y_test)
        if self.x.shape[1:] != self.x_test.shape[1:]:
            raise DataError(
                f"task {self.name!r}: rows of x have shape {self.x.shape[1:]}, rows of x_test "
                f"{self.x_test.shape[1:]}; make them equal"
            )


@dataclass(frozen=True, eq=False)
class TaskStream:
    """Tasks that arrive one after another, each generated on access.

    Examples
    --------
    >>> x, y = np.zeros((4, 9)), np.array([0, 1, 0, 1])
    >>> stream = TaskStream("toy", 3, lambda t: StreamTask(x, y, x, y, name=f"task {t}"), 2)
    >>> len(stream), stream[-1].name, [task.name for task in stream]
    (3, 'task 2', ['task 0', 'task 1', 'task 2'])
    >>> stream
    <TaskStream toy: 3 tasks, 4 + 4 rows each, 9 features, 2 classes>
    """

    name: str
    n_tasks: int
    make: Callable[[int], StreamTask]  # makes task 0 to n_tasks - 1
    n_classes: int  # size of a head that serves every task; labels are 0 to n_classes - 1
    head_sizes: tuple[int, ...] | None = None  # classes of each task, where each has its own head
    provenance: Provenance = field(default_factory=Provenance)
    extras: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        whole("n_tasks", self.n_tasks, minimum=1)
        if self.head_sizes is not None and len(self.head_sizes) != self.n_tasks:
            raise DomainError(
                f"{self.name}: head_sizes has {len(self.head_sizes)} numbers for "
                f"{self.n_tasks} tasks"
            )

    def __len__(self) -> int:
        return self.n_tasks

    def __iter__(self) -> Iterator[StreamTask]:
        return map(self.make, range(self.n_tasks))

    def __getitem__(self, index: int) -> StreamTask:
        return self.make(range(self.n_tasks)[index])

    def __repr__(self) -> str:
        size = self.summary().removeprefix(self.name)
        return one_line(f"TaskStream {short(self.name)}{size}")

    def summary(self) -> str:
        """One line: name, number of tasks, rows and features of the first one."""
        first, plural = self[0], "" if len(self) == 1 else "s"
        size = " x ".join(map(str, first.x.shape[1:]))
        return (
            f"{self.name}: {len(self)} task{plural}, {len(first.x)} + {len(first.x_test)} rows "
            f"each, {size} features, {self.n_classes} classes"
        )
