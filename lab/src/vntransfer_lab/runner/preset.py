"""Presets: one TOML file per experiment, checked with errors that name the key.

The format is described in ``docs/bench.md``; the shipped presets are the best examples.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from vntransfer_lab.errors import PresetError
from vntransfer_lab.runner.kinds import Kind, load_kind
from vntransfer_lab.runner.options import Option, Settings, check_names, resolve, table
from vntransfer_lab.runner.search_space import Search, check_search, restore_search
from vntransfer_lab.runner.selection import RULES

_KEYS = (
    "title",
    "experiment",
    "data",
    "targets",
    "methods",
    "common",
    "seeds",
    "selection",
    "baseline",
    "settings",
    "grid",
    "search",
    "paper",
)
_MAX_SEEDS = 10_000


@dataclass(frozen=True)
class Preset:
    """A checked experiment: every default is filled in.

    Parameters
    ----------
    name, title
        How it is called and what its tables are headed.
    experiment
        A kind of experiment, see `vntransfer_lab.runner.kinds.load_kind`.
    data
        Names of data sets.
    targets
        Names of targets (streams); empty for all of each data set.
    methods
        Method -> its settings; ``grids`` adds values to choose from.
    grids
        Method -> setting -> values that the selection rule chooses from.
    seeds
        Seeds of the repetitions.
    selection
        The rule that chooses hyper-parameters and epoch.
    baseline
        Method that the others are compared with; empty for none.
    settings
        Settings of the experiment.
    grid
        Setting -> values: conditions that are all run and all shown.
    search
        Trials of hyper-parameters, in place of ``grids``.
    paper
        ``source``, ``claim`` and ``values`` (data set -> target -> method -> metric -> value).
    """

    name: str
    title: str
    experiment: str
    data: tuple[str, ...]
    methods: dict[str, Settings]
    seeds: tuple[int, ...]
    targets: tuple[str, ...] = ()
    grids: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    selection: str = "fixed"
    baseline: str = ""
    settings: Settings = field(default_factory=dict)
    grid: dict[str, list[Any]] = field(default_factory=dict)
    paper: dict[str, Any] = field(default_factory=dict)
    search: Search | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain lists and dictionaries, for the store."""
        return asdict(self)


def restore(stored: Mapping[str, Any]) -> Preset:
    """Turn what `Preset.as_dict` gave (and JSON made of it) back into a preset."""
    lists = {key: tuple(stored[key]) for key in ("data", "seeds", "targets")}
    search = stored.get("search")  # absent in older stores
    return Preset(**{**stored, **lists, "search": restore_search(search) if search else None})


def shipped() -> dict[str, str]:
    """Names and titles of the presets that come with the package.

    Examples
    --------
    >>> "smoke" in shipped()
    True
    """
    folder = resources.files("vntransfer_lab") / "presets"
    files = sorted(f.name for f in folder.iterdir() if f.name.endswith(".toml"))
    return {
        name.removesuffix(".toml"): tomllib.loads((folder / name).read_text("utf-8"))["title"]
        for name in files
    }


def read_preset(name: str | Path) -> tuple[str, dict[str, Any]]:
    """Name and raw content of a shipped preset, or of a ``.toml`` file.

    A preset that ``extends`` a shipped one has everything of it that it does not say itself.

    Examples
    --------
    >>> read_preset("smoke")[1]["experiment"]
    'smoke'
    """
    path = Path(name)
    if path.suffix == ".toml":
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise PresetError(f"preset {str(path)!r}: cannot be read ({error})") from None
    else:
        check_names([str(name)], shipped(), "preset (or a file that ends in .toml)")
        text = (resources.files("vntransfer_lab") / "presets" / f"{name}.toml").read_text("utf-8")
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PresetError(f"preset {str(name)!r}: not valid TOML: {error}") from None
    called = path.stem if path.suffix == ".toml" else str(name)
    if "extends" in raw:
        base = Option("").check(raw.pop("extends"), f"{called}: extends")
        check_names([base], shipped(), f"{called}: extends")
        inherited = read_preset(base)[1]
        own = table(raw.get("methods", inherited["methods"]), f"{called}: methods")
        if inherited.get("baseline") not in own:
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

    Parameters
    ----------
    raw
        Content of a preset file.
    methods
        Methods to keep (or to add, with their defaults); the baseline is dropped with its method.
    targets, seeds
        Take the place of the preset's. A number of seeds takes the first ones of a list in the
        preset, and goes on after its largest.
    settings
        Dotted keys of the file (``"methods.ridge.alpha"``, ``"grid.noise"``, ``"selection"``) or
        plain names of the experiment's settings (``"n_samples"``).

    Examples
    --------
    >>> override({"seeds": 5, "settings": {}}, seeds=1, settings={"n_samples": 9})
    {'seeds': 1, 'settings': {'n_samples': 9}}
    >>> override({"seeds": [11, 12]}, seeds=1), override({"seeds": [11, 12]}, seeds=3)
    ({'seeds': [11]}, {'seeds': [11, 12, 13]})
    """
    changed = {k: dict(v) if isinstance(v, Mapping) else v for k, v in raw.items()}
    if methods is not None:
        given = changed.get("methods", {})
        changed["methods"] = {name: given.get(name, {}) for name in methods}
        if changed.get("baseline") not in methods:
            changed.pop("baseline", None)
    if targets is not None:
        changed["targets"] = list(targets)
    if isinstance(seeds, int):
        changed["seeds"] = _first(raw.get("seeds"), seeds)
    elif seeds is not None:
        changed["seeds"] = list(seeds)
    for key, value in (settings or {}).items():
        path = key.split(".") if "." in key or key in _KEYS else ["settings", key]
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


def check(raw: Mapping[str, Any], name: str) -> Preset:
    """Check the content of a preset and fill in all defaults.

    Examples
    --------
    >>> raw = {"title": "t", "experiment": "smoke", "data": "synthetic", "methods": {"ridge": {}}}
    >>> check(raw, "mine").methods
    {'ridge': {'alpha': 1.0}}
    >>> check(raw | {"seed": 5}, "mine")
    Traceback (most recent call last):
    vntransfer_lab.errors.PresetError: mine: unknown 'seed' (did you mean 'seeds'?); known: ...
    """
    check_names(raw, _KEYS, name)
    for key in ("title", "experiment", "data", "methods"):
        if key not in raw:
            raise PresetError(f"{name}: {key!r} is missing; add it")
    experiment = Option("").check(raw["experiment"], f"{name}: experiment")
    kind = load_kind(experiment)
    shared = table(raw.get("common", {}), f"{name}: common")
    known = {option for method in kind.methods.values() for option in method.options}
    check_names(shared, known, f"{name}: common")
    methods, grids = _methods(raw["methods"], shared, kind, f"{name}: methods")
    baseline = Option("").check(raw.get("baseline", ""), f"{name}: baseline")
    if baseline:
        check_names([baseline], methods, f"{name}: baseline")
    grid = table(raw.get("grid", {}), f"{name}: grid")
    check_names(grid, kind.settings, f"{name}: grid")
    selection = Option("", choices=tuple(RULES)).check(
        raw.get("selection", "fixed"), f"{name}: selection"
    )
    if grids and RULES[selection][0] is None:
        raise PresetError(
            f"{name}: selection {selection!r} cannot choose from the grid of "
            f"{', '.join(grids)}; use another rule or drop the grid"
        )
    search = None
    if "search" in raw:
        search = check_search(raw["search"], kind, methods, grids, selection, f"{name}: search")
    given_settings = table(raw.get("settings", {}), f"{name}: settings")
    return Preset(
        name=name,
        title=Option("").check(raw["title"], f"{name}: title"),
        experiment=experiment,
        data=_names(raw["data"], f"{name}: data"),
        targets=_names(raw["targets"], f"{name}: targets") if "targets" in raw else (),
        methods=methods,
        grids=grids,
        seeds=_seeds(raw.get("seeds", 5), f"{name}: seeds"),
        selection=selection,
        baseline=baseline,
        settings=resolve(kind.settings, given_settings, f"{name}: settings"),
        grid={
            key: _values(values, kind.settings[key], f"{name}: grid.{key}")
            for key, values in grid.items()
        },
        paper=_paper(raw.get("paper", {}), kind, f"{name}: paper"),
        search=search,
    )


def _names(value: Any, where: str) -> tuple[str, ...]:
    names = tuple(Option([""]).check([value] if isinstance(value, str) else value, where))
    if len(set(names)) < len(names):
        raise PresetError(f"{where}: a name is given twice in {list(names)}")
    return names


def _first(given: Any, count: int) -> int | list[int]:
    """Take the first seeds of a list, or just their number where the preset has no list."""
    if not isinstance(given, list) or not all(type(seed) is int for seed in given) or not given:
        return count
    after = max(given) + 1
    return [*given[:count], *range(after, after + count - len(given))] if count > 0 else count


def _seeds(value: Any, where: str) -> tuple[int, ...]:
    if type(value) is int:
        Option(1, low=1, high=_MAX_SEEDS).check(value, where)
        return tuple(range(value))
    seeds = tuple(Option([0], low=0, high=2**32 - 1).check(value, where))
    if len(set(seeds)) < len(seeds):
        raise PresetError(f"{where}: a seed is given twice in {list(seeds)}")
    return seeds


def _values(value: Any, option: Option, where: str) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise PresetError(f"{where}: expected a non-empty list of values, got {value!r}")
    return [option.check(item, f"{where}[{i}]") for i, item in enumerate(value)]


def _methods(
    value: Any, shared: Settings, kind: Kind, where: str
) -> tuple[dict[str, Settings], dict[str, dict[str, list[Any]]]]:
    given = table(value, where)
    for name in kind.retired.keys() & given.keys():
        raise PresetError(f"{where}: {kind.retired[name]}")
    if given.get("all") == {}:
        check_names(given, [*kind.methods, "all"], where)
        given = {name: given.get(name, {}) for name in kind.methods}
    if not given:
        raise PresetError(f"{where}: name at least one of {', '.join(kind.methods)}")
    check_names(given, kind.methods, where)
    methods, grids = {}, {}
    for name, content in given.items():
        options = kind.methods[name].options
        own = {option: shared[option] for option in shared if option in options}
        fixed = own | table(content, f"{where}.{name}")
        grid = table(fixed.pop("grid", {}), f"{where}.{name}.grid")
        check_names(grid, options, f"{where}.{name}.grid")
        methods[name] = resolve(options, fixed, f"{where}.{name}")
        if grid:
            grids[name] = {
                key: _values(values, options[key], f"{where}.{name}.grid.{key}")
                for key, values in grid.items()
            }
    return methods, grids


def _paper(value: Any, kind: Kind, where: str) -> dict[str, Any]:
    given = table(value, where)
    check_names(given, ("source", "claim", "values"), where)
    checked: dict[str, Any] = {
        key: Option("").check(given[key], f"{where}.{key}")
        for key in ("source", "claim")
        if key in given
    }
    values: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    for data, targets in table(given.get("values", {}), f"{where}.values").items():
        for target, numbers in table(targets, f"{where}.values.{data}").items():
            place = f"{where}.values.{data}.{target}"
            row = table(numbers, place)
            check_names(row, kind.methods, place)
            values.setdefault(data, {})[target] = {
                method: _metrics(number, kind.metric, f"{place}.{method}")
                for method, number in row.items()
            }
    return {**checked, "values": values}


def _metrics(value: Any, metric: str, where: str) -> dict[str, float]:
    """One number is the experiment's metric; a table names its metrics."""
    named = value if isinstance(value, Mapping) else {metric: value}
    return {name: Option(0.0).check(number, where) for name, number in named.items()}
