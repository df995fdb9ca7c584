"""Cells: the grid of a preset, each cell named by a hash of all that determines its result."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

from vntransfer.checks import one_of
from vntransfer_lab.errors import PresetError
from vntransfer_lab.runner.kinds import load_kind
from vntransfer_lab.runner.schema import Settings

if TYPE_CHECKING:
    from vntransfer_lab.runner.preset import Preset


def canonical_json(value: Any) -> str:
    """JSON text that is the same for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Everything that determines the result of a cell."""

    experiment: str
    version: str  # of the kind and of the method, as "kind.method"
    data: str
    data_hash: str  # of what the cell reads of the data
    target: str  # or stream
    method: str
    hyper: Settings  # of the method
    seed: int
    selection: str  # the rule that chooses among hyper-parameters and epochs
    settings: Settings  # of the experiment, with the values of this condition


IDENTITY = tuple(field.name for field in fields(Identity))


@dataclass(frozen=True, kw_only=True)
class Cell(Identity):
    """One computation of a run."""

    condition: tuple[str, ...] = ()  # names of the settings that the preset's grid varies
    # pairs (key, metric) of the cells that came first (see `Kind`), without those that failed
    given: tuple[tuple[str, float], ...] = ()

    @cached_property
    def key(self) -> str:
        """Hash of the identity; the other fields follow from the preset."""
        identity = {name: getattr(self, name) for name in IDENTITY}
        return hashlib.sha256(canonical_json(identity).encode()).hexdigest()[:32]

    @property
    def label(self) -> str:
        """A few words for people: what distinguishes it from its neighbors."""
        varied = [f"{name}={self.settings[name]}" for name in self.condition]
        return " ".join([self.data, self.target, *varied, self.method, f"seed {self.seed}"])


def points(fixed: Settings, grid: Mapping[str, list[Any]]) -> Iterator[Settings]:
    """All settings of a grid, in the order of the file."""
    for values in product(*grid.values()):
        yield {**fixed, **dict(zip(grid, values, strict=True))}


def expand(preset: "Preset") -> list[Cell]:
    """All cells of a preset, in a fixed order, each once."""
    kind = load_kind(preset.experiment)
    cells: dict[str, Cell] = {}
    known: set[str] = set()
    for data in preset.data:
        for point in points(preset.settings, preset.grid):
            settings = kind.canonical(data, point)
            targets = kind.targets(data, settings)
            known.update(targets)
            data_hash = kind.fingerprint(data, settings)
            for target in targets:
                if preset.targets and target not in preset.targets:
                    continue
                for method, common in preset.methods.items():
                    own = kind.methods[method]
                    fixed = preset.per_data.get(data, {}).get(method, common)
                    for hyper in points(fixed, preset.grids.get(method, {})):
                        for seed in preset.seeds:
                            cell = Cell(
                                experiment=preset.experiment,
                                version=kind.version_of(method),
                                data=data,
                                data_hash=data_hash,
                                target=target,
                                method=method,
                                hyper=own.named(hyper),
                                seed=seed,
                                selection=preset.selection,
                                settings=settings,
                                condition=tuple(preset.grid),
                            )
                            cells.setdefault(cell.key, cell)
    for target in preset.targets:
        one_of("targets", target, sorted(known), error=PresetError)
    return list(cells.values())
