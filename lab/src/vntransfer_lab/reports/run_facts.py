"""What stands at the foot of a report's page: how the run and the page were made."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from vntransfer.errors import VnError
from vntransfer_lab.reports.report import Report
from vntransfer_lab.runner.preset import Preset, check, override, read_preset
from vntransfer_lab.runner.provenance import command_line, versions
from vntransfer_lab.runner.selection import RULES


def footer(
    loaded: Report, invocations: Sequence[Mapping[str, Any]], command: str
) -> dict[str, str]:
    """Name -> text: commands, versions, seeds, selection rule, settings, hashes of the data.

    Parameters
    ----------
    loaded
        The run.
    invocations
        What `vntransfer_lab.runner.provenance.read_provenance` says of it; empty for older stores.
    command
        What makes the page.
    """
    preset = loaded.preset
    hashes = dict.fromkeys((record.data, record.data_hash) for record in loaded.records)
    rules = dict.fromkeys(record.selection for record in loaded.records)
    kinds = dict.fromkeys(record.version for record in loaded.records)
    settings: dict[str, Any] = {**preset.settings, **preset.grid}
    found = {
        **_made(preset, invocations),
        "Page": command,
        "Page made with": _listed(versions()),
        "Preset": f"{preset.name}: experiment {preset.experiment}, version {', '.join(kinds)}",
        "Seeds": ", ".join(map(str, preset.seeds)),
        "Selection rule": "\n".join(f"{rule}: {RULES[rule][1]}" for rule in rules or RULES),
        "Settings": ", ".join(f"{k} = {json.dumps(v)}" for k, v in settings.items()),
        "Data": "\n".join(f"{data} {own}" for data, own in hashes),
    }
    return {name: text for name, text in found.items() if text}


def _listed(found: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in found.items())


def _made(preset: Preset, invocations: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Give commands and versions of the run: as recorded or, of older stores, as far as known."""
    if invocations:
        commands = dict.fromkeys(str(one["command"]) for one in invocations)
        used = dict.fromkeys(_listed(one["versions"]) for one in invocations if "versions" in one)
        return {"Run": "\n".join(commands), "Run made with": "\n".join(used)}
    command = derived_command(preset)
    if command is None:
        return {"Run": f"a changed preset {preset.name!r}: {json.dumps(preset.as_dict())}"}
    return {"Run": f"{command}  (derived from the stored preset; its versions were not recorded)"}


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
    changes: dict[str, Any] = {}
    if list(preset.methods) != list(shipped.methods):
        changes["methods"] = list(preset.methods)
    if preset.targets != shipped.targets:
        changes["targets"] = list(preset.targets)
    if preset.seeds != shipped.seeds:
        count = len(preset.seeds)
        counted = check(override(raw, seeds=count), preset.name).seeds == preset.seeds
        changes["seeds"] = count if counted else list(preset.seeds)
    changes["settings"] = _changed_settings(preset, shipped)
    try:
        again = check(override(raw, **changes), preset.name)
    except VnError:
        return None
    exact = again.as_dict() == preset.as_dict()
    return command_line("run", preset.name, changes) if exact else None


def _changed_settings(preset: Preset, shipped: Preset) -> dict[str, Any]:
    """Dotted keys and values that ``--set`` takes."""
    found: dict[str, Any] = {}
    for key in ("data", "selection"):
        value = getattr(preset, key)
        if value != getattr(shipped, key):
            found[key] = list(value) if isinstance(value, tuple) else value
    found |= {k: v for k, v in preset.settings.items() if v != shipped.settings.get(k)}
    found |= {f"grid.{k}": v for k, v in preset.grid.items() if v != shipped.grid.get(k)}
    for method, own in preset.methods.items():
        given = shipped.methods.get(method, own)
        found |= {f"methods.{method}.{k}": v for k, v in own.items() if v != given.get(k)}
    return found
