"""Presets: one TOML file per experiment, checked with errors that name the key.

The format is described in ``docs/own-experiments.md``; the shipped presets are the best examples.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic.dataclasses import dataclass

from vntransfer.checks import one_of, whole
from vntransfer_lab.errors import PresetError
from vntransfer_lab.runner.kinds import Kind, load_kind
from vntransfer_lab.runner.schema import Schema, Settings, Values, listed, parse, resolve
from vntransfer_lab.runner.selection import RULES

_MAX_SEEDS = 10_000


def _listed_names(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _counted_seeds(value: Any) -> Any:
    if type(value) is not int:
        return value
    return list(range(whole("number of seeds", value, minimum=1, maximum=_MAX_SEEDS)))


def _different(values: list[Any]) -> list[Any]:
    if len(set(values)) < len(values):
        raise ValueError(f"a value is given twice in {values}")
    return values


_Several = [Field(min_length=1), AfterValidator(_different)]
Names = Annotated[list[str], BeforeValidator(_listed_names), *_Several]
Seed = Annotated[int, Field(ge=0, le=2**32 - 1)]
Seeds = Annotated[list[Seed], BeforeValidator(_counted_seeds), *_Several]


class _Paper(Schema):
    source: str = ""
    claim: str = ""
    values: dict[str, dict[str, dict[str, Any]]] = Field(default_factory=dict)


class PresetTable(Schema):
    """A preset as it is written; what depends on the kind of experiment is checked later."""

    title: str
    experiment: str
    data: Names
    methods: dict[str, dict[str, Any]]
    # data set -> method -> options that it has on that set alone
    per_data: dict[str, dict[str, dict[str, Any]]] = Field(default_factory=dict)
    targets: Names | None = None
    common: Settings = Field(default_factory=dict)
    seeds: Seeds = Field(5, validate_default=True)
    selection: str = "fixed"
    baseline: str = ""
    settings: Settings = Field(default_factory=dict)
    grid: dict[str, Values] = Field(default_factory=dict)
    paper: _Paper = _Paper()


@dataclass(frozen=True)
class Preset:
    """A checked experiment with all defaults filled in; docs/own-experiments.md lists the keys."""

    name: str
    title: str
    experiment: str
    data: tuple[str, ...]
    methods: dict[str, Settings]
    seeds: tuple[int, ...]
    targets: tuple[str, ...] = ()  # empty for all of each data set
    # method -> setting -> values that the selection rule chooses from
    grids: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    # data set -> method -> all its settings, where they are others than on most sets
    per_data: dict[str, dict[str, Settings]] = field(default_factory=dict)
    selection: str = "fixed"
    baseline: str = ""
    settings: Settings = field(default_factory=dict)
    grid: dict[str, list[Any]] = field(default_factory=dict)  # conditions that are all shown
    # source, claim and values: data set -> target -> method -> metric -> value
    paper: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain lists and dictionaries, for the store."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "Preset":
        """Read what `as_dict` gave; results of 0.1.0.dev0 have an empty place for a search."""
        return cls(**{name: value for name, value in stored.items() if name != "search"})

    def paper_values(self, data: str, metric: str) -> dict[str, dict[str, float]]:
        """Return target -> method -> the paper's value of a metric, where it prints one."""
        found = {
            target: {method: own[metric] for method, own in methods.items() if metric in own}
            for target, methods in self.paper.get("values", {}).get(data, {}).items()
        }
        return {target: row for target, row in found.items() if row}


_SHIPPED = resources.files("vntransfer_lab") / "presets"


def shipped() -> list[str]:
    """Names of the presets that come with the package."""
    files = [file.name for file in _SHIPPED.iterdir()]
    return sorted(name.removesuffix(".toml") for name in files if name.endswith(".toml"))


def titles() -> dict[str, str]:
    """Names and titles of these presets."""
    return {name: read_preset(name)[1]["title"] for name in shipped()}


def load_preset(name: str | Path, **changes: Any) -> Preset:
    """Read a shipped preset or a ``.toml`` file, change it (see `override`) and check it."""
    called, raw = read_preset(name)
    return check(override(raw, **changes), called)


def read_preset(name: str | Path) -> tuple[str, dict[str, Any]]:
    """Name and raw content of a shipped preset, or of a ``.toml`` file.

    A preset that ``extends`` a shipped one has everything of it that it does not say itself.
    """
    file: Traversable = Path(name)
    called = Path(name).stem
    if Path(name).suffix != ".toml":
        known = "preset (or a file that ends in .toml)"
        called = one_of(known, str(name), shipped(), error=PresetError)
        file = _SHIPPED / f"{name}.toml"
    try:
        raw = tomllib.loads(file.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise PresetError(f"preset {str(name)!r}: not valid TOML: {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise PresetError(f"preset {str(name)!r}: cannot be read ({error})") from None
    if "extends" in raw:
        base = one_of(f"{called}: extends", raw.pop("extends"), shipped(), error=PresetError)
        inherited = read_preset(base)[1]
        own = raw.get("methods", inherited["methods"])
        if inherited.get("baseline") not in parse(Settings, own, called, "methods"):
            inherited.pop("baseline", None)  # dropped with its method
        raw = {**inherited, **raw}
    return called, raw


def override(
    raw: Mapping[str, Any],
    *,
    methods: Sequence[str] | None = None,
    targets: Sequence[str] | None = None,
    seeds: int | Sequence[int] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Raw preset with some of its content replaced, before it is checked.

    Methods are kept, or added with their defaults; the baseline is dropped with its method. A
    number of seeds takes the first ones of a list in the preset, and continues after its largest.
    Settings are dotted keys of the file (``"methods.ridge.alpha"``, ``"grid.noise"``,
    ``"selection"``) or plain names of the experiment's settings (``"n_samples"``).
    """
    changed = {k: dict(v) if isinstance(v, Mapping) else v for k, v in raw.items()}
    if methods is not None:
        given = changed.get("methods", {})
        changed["methods"] = {name: given.get(name, {}) for name in methods}
        if changed.get("baseline") not in methods:
            changed.pop("baseline", None)
        for data, own in changed.get("per_data", {}).items():
            changed["per_data"][data] = {name: v for name, v in own.items() if name in methods}
    if targets is not None:
        changed["targets"] = list(targets)
    if isinstance(seeds, int):
        changed["seeds"] = _first(raw.get("seeds"), seeds)
    elif seeds is not None:
        changed["seeds"] = list(seeds)
    settings = settings or {}
    if "data" in settings and "per_data" in changed:
        kept = _listed_names(settings["data"])
        changed["per_data"] = {k: v for k, v in changed["per_data"].items() if k in kept}
    for key, value in settings.items():
        top = "." in key or key in PresetTable.model_fields
        path = key.split(".") if top else ["settings", key]
        if path[0] == "settings" and isinstance(changed.get("grid"), dict):
            changed["grid"].pop(path[-1], None)
        place = changed
        for part in path[:-1]:
            inner = place.get(part, {})
            if not isinstance(inner, Mapping):
                raise PresetError(f"set {key}: {part!r} is not a table")
            place[part] = dict(inner)
            place = place[part]
        place[path[-1]] = value
    return changed


def _first(given: Any, count: int) -> int | list[int]:
    """Take the first seeds of a list, or just their number where the preset has no list."""
    if not isinstance(given, list) or not all(type(seed) is int for seed in given) or not given:
        return count
    after = max(given) + 1
    return [*given[:count], *range(after, after + count - len(given))] if count > 0 else count


def check(raw: Mapping[str, Any], name: str) -> Preset:
    """Check the content of a preset and fill in all defaults."""
    table = parse(PresetTable, raw, name)
    one_of(f"{name}: selection", table.selection, RULES, error=PresetError)
    kind = load_kind(table.experiment)
    methods, grids = _methods(table, kind, name)
    if table.baseline:
        one_of(f"{name}: baseline", table.baseline, methods, error=PresetError)
    if grids and RULES[table.selection][0] is None:
        raise PresetError(
            f"{name}: selection {table.selection!r} cannot choose from the grid of "
            f"{', '.join(grids)}; use another rule or drop the grid"
        )
    return Preset(
        name=name,
        **{key: getattr(table, key) for key in ("title", "experiment", "selection", "baseline")},
        data=tuple(table.data),
        methods=methods,
        seeds=tuple(table.seeds),
        targets=tuple(table.targets or ()),
        grids=grids,
        per_data=_per_data(table, kind, methods, name),
        settings=resolve(kind.settings, table.settings, name, "settings"),
        grid=listed(kind.settings, table.grid, name, "grid"),
        paper=_paper(table.paper, kind, name),
    )


def _methods(
    table: PresetTable, kind: Kind, name: str
) -> tuple[dict[str, Settings], dict[str, dict[str, list[Any]]]]:
    """Options of each method, and the values to choose from."""
    given = dict(table.methods)
    for method in kind.retired.keys() & given.keys():
        raise PresetError(f"{name}: methods: {kind.retired[method]}")
    if not given:
        raise PresetError(f"{name}: methods: name at least one of {', '.join(kind.methods)}")
    known = {option for own in kind.methods.values() for option in own.options.model_fields}
    for option in table.common:
        one_of(f"{name}: common", option, sorted(known), error=PresetError)
    methods, grids = {}, {}
    for method, content in given.items():
        one_of(f"{name}: methods", method, kind.methods, error=PresetError)
        options = kind.methods[method].options
        shared = {k: v for k, v in table.common.items() if k in options.model_fields}
        fixed = shared | content
        place = (name, "methods", method)
        if grid := listed(options, fixed.pop("grid", {}), *place, "grid"):
            grids[method] = grid
        methods[method] = resolve(options, fixed, *place)
    return methods, grids


def _per_data(
    table: PresetTable, kind: Kind, methods: Mapping[str, Settings], name: str
) -> dict[str, dict[str, Settings]]:
    """Return the settings on single data sets: those of the preset with some replaced."""
    found: dict[str, dict[str, Settings]] = {}
    for data, own in table.per_data.items():
        one_of(f"{name}: per_data", data, table.data, error=PresetError)
        for method, content in own.items():
            one_of(f"{name}: per_data.{data}", method, methods, error=PresetError)
            place = (name, "per_data", data, method)
            given = {**methods[method], **content}
            options = kind.methods[method].options
            found.setdefault(data, {})[method] = resolve(options, given, *place)
    return found


def _paper(given: _Paper, kind: Kind, name: str) -> dict[str, Any]:
    """Return the paper's words and values; one number is the experiment's metric."""
    values: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    for data, targets in given.values.items():
        for target, row in targets.items():
            place = (name, "paper", "values", data, target)
            found = values.setdefault(data, {}).setdefault(target, {})
            for method, value in row.items():
                one_of(f"{name}: {'.'.join(place[1:])}", method, kind.methods, error=PresetError)
                named = value if isinstance(value, Mapping) else {kind.metric: value}
                found[method] = parse(dict[str, float], dict(named), *place, method)
    said: dict[str, Any] = {key: getattr(given, key) for key in given.model_fields_set}
    return said | {"values": values}
