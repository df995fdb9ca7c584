"""What stands at the foot of a report's page: how the run and the page were made."""

import json
import platform
import shlex
from collections.abc import Mapping
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from vntransfer._version import __version__
from vntransfer.bench.preset import Preset, check, override, read_preset
from vntransfer.bench.report import Report
from vntransfer.bench.selection import RULES
from vntransfer.errors import VnError


def footer(loaded: Report, folder: Path, command: str) -> dict[str, str]:
    """Name -> text: commands, versions, seeds, selection rule, settings, hashes of the data.

    Parameters
    ----------
    loaded, folder
        The run and where it was read.
    command
        What makes the page.
    """
    preset = loaded.preset
    hashes = dict.fromkeys((record.data, record.data_hash) for record in loaded.records)
    rules = dict.fromkeys(record.selection for record in loaded.records)
    kinds = dict.fromkeys(record.version for record in loaded.records)
    settings: dict[str, Any] = {**preset.settings, **preset.grid}
    found = {
        **_made(preset, folder),
        "Page": command,
        "Page made with": _listed(versions()),
        "Preset": f"{preset.name}: experiment {preset.experiment}, version {', '.join(kinds)}",
        "Seeds": ", ".join(map(str, preset.seeds)),
        "Selection rule": "\n".join(f"{rule}: {RULES[rule][1]}" for rule in rules or RULES),
        "Settings": ", ".join(f"{k} = {json.dumps(v)}" for k, v in settings.items()),
        "Data": "\n".join(f"{data} {own}" for data, own in hashes),
    }
    return {name: text for name, text in found.items() if text}


def versions() -> dict[str, str]:
    """Versions that numbers and pages depend on.

    Examples
    --------
    >>> sorted(versions())
    ['numpy', 'python', 'torch', 'vntransfer']
    """
    found = {"vntransfer": __version__, "python": platform.python_version()}
    return found | {name: metadata.version(name) for name in ("torch", "numpy")}


def _listed(found: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in found.items())


def _made(preset: Preset, folder: Path) -> dict[str, str]:
    """Give commands and versions of the run: as recorded or, of older stores, as far as known."""
    recorded = _invocations(folder)
    if recorded:
        commands = dict.fromkeys(str(one["command"]) for one in recorded)
        used = dict.fromkeys(_listed(one["versions"]) for one in recorded if "versions" in one)
        return {"Run": "\n".join(commands), "Run made with": "\n".join(used)}
    command = derived_command(preset)
    if command is None:
        return {"Run": f"a changed preset {preset.name!r}: {json.dumps(preset.as_dict())}"}
    return {"Run": f"{command}  (derived from the stored preset; its versions were not recorded)"}


def _invocations(folder: Path) -> list[Mapping[str, Any]]:
    try:
        read = import_module("vntransfer.bench.provenance").read_provenance
        return list(read(folder).get("invocations", []))
    except (ModuleNotFoundError, VnError):  # packed results, and versions that recorded nothing
        return []


def derived_command(preset: Preset) -> str | None:
    """Command that gives a preset from the shipped one of its name; None when there is none.

    Examples
    --------
    >>> name, raw = read_preset("smoke")
    >>> derived_command(check(override(raw, seeds=2, settings={"n_samples": 50}), name))
    'vnt bench run smoke --seeds 2 --set n_samples=50'
    """
    try:
        _, raw = read_preset(preset.name)
        shipped = check(raw, preset.name)
    except VnError:
        return None
    words = ["vnt", "bench", "run", preset.name]
    changes: dict[str, Any] = {}
    if list(preset.methods) != list(shipped.methods):
        changes["methods"] = list(preset.methods)
        words += ["--methods", ",".join(preset.methods)]
    if preset.targets != shipped.targets:
        changes["targets"] = list(preset.targets)
        words += ["--targets", ",".join(preset.targets)]
    settings: dict[str, Any] = {}
    if preset.seeds != shipped.seeds:
        if preset.seeds == tuple(range(len(preset.seeds))):
            changes["seeds"] = len(preset.seeds)
            words += ["--seeds", str(len(preset.seeds))]
        else:
            settings["seeds"] = list(preset.seeds)
    for key in ("data", "selection"):
        if getattr(preset, key) != getattr(shipped, key):
            value = getattr(preset, key)
            settings[key] = list(value) if isinstance(value, tuple) else value
    for key, value in preset.settings.items():
        if value != shipped.settings.get(key):
            settings[key] = value
    for key, values in preset.grid.items():
        if values != shipped.grid.get(key):
            settings[f"grid.{key}"] = values
    for method, own in preset.methods.items():
        for key, value in own.items():
            if method in shipped.methods and value != shipped.methods[method].get(key):
                settings[f"methods.{method}.{key}"] = value
    for key, value in settings.items():
        words += ["--set", f"{key}={json.dumps(value)}"]
    try:
        again = check(override(raw, **changes, settings=settings), preset.name)
    except VnError:
        return None
    return shlex.join(words) if again.as_dict() == preset.as_dict() else None
