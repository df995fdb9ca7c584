"""What stands at the foot of a report's page: how the run and the page were made."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from vntransfer_lab.reports.report import Report
from vntransfer_lab.runner.provenance import versions
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
        **_made(invocations),
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


def _made(invocations: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Give commands and versions of the run."""
    commands = dict.fromkeys(str(one["command"]) for one in invocations)
    used = dict.fromkeys(_listed(one["versions"]) for one in invocations if "versions" in one)
    run = "\n".join(commands) or "the command was not recorded"
    return {"Run": run, "Run made with": "\n".join(used)}
