"""Where results come from: commands, versions and machine of every invocation on a run folder."""

import json
import os
import platform
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from vntransfer import __version__
from vntransfer_lab.errors import StoreError
from vntransfer_lab.runner.cells import canonical_json
from vntransfer_lab.runner.packed import is_packed, read_description
from vntransfer_lab.runner.store import Store

_WORDS = ("true", "false", "inf", "nan")  # of TOML, not texts
_PACKAGES = ("torch", "numpy", "scikit-learn")
_SOURCES = Path(__file__).parents[4]


def versions() -> dict[str, str]:
    """Versions that results depend on."""
    found = {"vntransfer": __version__, "python": platform.python_version()}
    return found | {name: metadata.version(name) for name in _PACKAGES}


def revision(folder: Path) -> str:
    """Commit of a working copy, with a plus if files differ from it; empty outside of one."""
    if not (folder / ".git").exists():  # an installed package, in whoever's repository
        return ""
    words = ["describe", "--always", "--exclude=*", "--abbrev=12", "--dirty=+"]
    try:
        asked = subprocess.run(
            ["git", "-C", str(folder), *words],
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
            env={k: v for k, v in os.environ.items() if not k.startswith("GIT_")},  # of hooks
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return asked.stdout.strip()


def command_line(verb: str, subject: str, options: Mapping[str, Any]) -> str:
    """Write a call of the runner as a command; options are named as in Python, None is left out.

    >>> command_line("run", "smoke", {"seeds": [3], "settings": {"n_samples": 50}, "jobs": None})
    "vnt bench run smoke --set 'seeds=[3]' --set n_samples=50"
    """
    words = ["vnt", "bench", verb, subject]
    for name, value in options.items():
        if value is None or value in ({}, []):
            continue
        if isinstance(value, Mapping):
            for key, setting in value.items():
                words += ["--set", f"{key}={_toml(setting)}"]
        elif name == "seeds" and not isinstance(value, int):
            words += ["--set", f"seeds={_toml(list(value))}"]
        elif name == "reuse":
            words += [word for folder in value for word in ("--reuse", folder)]
        elif isinstance(value, Sequence) and not isinstance(value, str):
            words += [f"--{name}", ",".join(value)]
        else:
            words += [f"--{name}", str(value)]
    return shlex.join(words)


def _toml(value: Any) -> str:
    """Write a value so that ``--set`` reads it as it was; names need no quotes there."""
    plain = isinstance(value, str) and value.isidentifier()
    return value if plain and value not in _WORDS else canonical_json(value)


@contextmanager
def recorded(store: Store, detail: Mapping[str, Any]) -> Iterator[None]:
    """Record an invocation, with a detail, while it lasts; one without an end was killed."""
    system = f"{platform.system()} {platform.machine()}"  # without the name of the machine
    here = {
        "versions": versions(),
        "revision": revision(_SOURCES),
        "machine": {"cores": os.cpu_count(), "system": system},
    }
    number = store.begin_invocation(json.dumps({**detail, **here}, default=str))
    try:
        yield
    except BaseException as reason:
        how = "stopped" if isinstance(reason, KeyboardInterrupt) else f"failed: {reason}"
        with suppress(StoreError):  # the reason may be that the disk is full
            store.end_invocation(number, how)
        raise
    store.end_invocation(number, "complete")


def read_provenance(folder: str | Path) -> dict[str, Any]:
    """Read how the results of a run folder, or packed results, were made.

    Parameters
    ----------
    folder
        A run folder, or packed results.

    Returns
    -------
    dict
        ``invocations``: in order of time, each with ``command``, ``overrides`` (what it changed of
        the preset), ``engine``, ``jobs``, ``reused`` (cells from other folders), ``versions``,
        ``revision`` (commit of a working copy, a plus if it was changed), ``machine``, ``began``
        and ``ended`` (UTC, ISO 8601; None: still running, or killed) and ``how`` it ended. Empty
        for packed results of versions that recorded nothing.

    Examples
    --------
    >>> import tempfile
    >>> from vntransfer_lab import run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = run("smoke", methods=["constant"], targets=["s1"], seeds=1, out=folder)
    ...     (only,) = read_provenance(folder)["invocations"]
    >>> only["command"], only["how"]
    ('vnt bench run smoke --methods constant --targets s1 --seeds 1', 'complete')
    """
    if is_packed(folder):
        described = read_description(folder)
        return {name: described[name] for name in ("invocations",) if name in described}
    with Store(folder) as store:
        told = [
            store.decode(one.detail)
            | {"began": _iso(one.began), "ended": _iso(one.ended), "how": one.how}
            for one in store.invocations()
        ]
    return {"invocations": told} if told else {}


def _iso(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
