"""Every data set by name, read from ``registry.toml``: its files, addresses, hashes and loader.

In that file, ``sources`` are publications: license, citation and files, in a folder of the
source's name. ``sets`` are what can be loaded; what a set says itself comes before what its source
says. Hashes are those that the makers published, or of known compact forms; none is guessed.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.resources import files as package_files
from inspect import Parameter, getdoc, signature
from pathlib import Path
from typing import Any, Literal

from vntransfer.checks import number, one_of, whole
from vntransfer.progress import Progress
from vntransfer_lab.data.base import Domains, TaskStream


@dataclass(frozen=True)
class Compact:
    """A file that serves in place of the official one."""

    name: str
    hash: str | None = None
    partial: bool = False  # holds only some of the rows: it loads, with a `DataWarning`


@dataclass(frozen=True)
class RemoteFile:
    """One official file of a data set, and under which names it may be found on disk."""

    name: str  # official; the key under which a loader gets the path
    folder: str  # below the data folder
    urls: tuple[str, ...] = ()  # the official address first, then mirrors
    hashes: tuple[str, ...] = ()
    """``"md5:..."`` or ``"sha256:..."``: that of the official file first, then of other wrappings
    of the same content. Empty where none is known."""
    size: int | None = None  # bytes
    also: tuple[str, ...] = ()  # other official names that serve: the unpacked file or folder
    compact: Compact | None = None
    optional: bool = False  # whether the loader can do without


@dataclass(frozen=True)
class Entry:
    """The registry's record of one data set."""

    name: str
    title: str
    loader: str
    """``"module:function"``, imported when called as ``function(files, **fixed, **parameters)``;
    ``files`` maps `RemoteFile.name` to the path that was found."""
    kind: Literal["domains", "stream", "table"] = "domains"  # a table has one domain
    files: tuple[RemoteFile, ...] = ()  # empty for generated data
    fixed: Mapping[str, Any] = field(default_factory=dict)
    origin: str = ""  # address where the data come from; needed where the files have none
    license: str = "none needed: generated"
    citation: str = ""
    notes: str = ""

    @property
    def parameters(self) -> dict[str, str]:
        """Parameters that can be set, and what the loader's docstring says of them."""
        function, asked = self._loader()
        text = getdoc(function) or ""
        meanings: dict[str, str] = {}
        for names, lines in re.findall(r"^(\w+(?:, \w+)*)\n((?:    .*\n?)+)", text, re.MULTILINE):
            meanings |= dict.fromkeys(names.split(", "), " ".join(lines.split()))
        return {k: f"{meanings.get(k, '')} [default: {p.default!r}]" for k, p in asked.items()}

    def _loader(self) -> tuple[Any, dict[str, Parameter]]:
        """Return the function, and those of its parameters that a caller may set."""
        module, function = self.loader.split(":")
        loader = getattr(import_module(module), function)
        own = {
            key: p for key, p in signature(loader).parameters.items() if p.kind == p.KEYWORD_ONLY
        }
        return loader, {k: p for k, p in own.items() if k not in self.fixed and k != "progress"}

    def call(
        self, files: Mapping[str, Path], *, progress: Progress | None = None, **parameters: Any
    ) -> Domains | TaskStream:
        """Import the loader and call it, with parameters of the types of their defaults."""
        loader, asked = self._loader()
        for key, value in parameters.items():
            default = asked[one_of(f"{self.name}: parameter", key, asked)].default
            if isinstance(default, bool):
                one_of(key, value, (True, False))
            elif isinstance(default, int):
                whole(key, value)
            elif isinstance(default, float):
                number(key, value)
        if "progress" in signature(loader).parameters:
            parameters["progress"] = progress
        loaded: Domains | TaskStream = loader(files, **self.fixed, **parameters)
        return loaded


def _entry(name: str, own: dict[str, Any], sources: dict[str, Any]) -> Entry:
    """Join what a set says with what its source says, and find its files."""
    folder = own.pop("source", None)
    source = dict(sources.get(folder, {}))
    files = source.pop("files", {})
    wanted = own.pop("file", None)
    return Entry(
        name=name,
        files=tuple(_file(key, folder, f) for key, f in files.items() if wanted in (None, key)),
        **{**source, **own, "loader": f"vntransfer_lab.data.{own['loader']}"},
    )


def _file(name: str, folder: str, raw: dict[str, Any]) -> RemoteFile:
    lists = {key: tuple(value) for key, value in raw.items() if isinstance(value, list)}
    compact = Compact(**raw["compact"]) if "compact" in raw else None
    return RemoteFile(name, folder, **{**raw, **lists, "compact": compact})


_RAW = tomllib.loads((package_files("vntransfer_lab.data") / "registry.toml").read_text("utf-8"))
DATASETS = {name: _entry(name, own, _RAW["sources"]) for name, own in _RAW["sets"].items()}


def lookup(name: str) -> Entry:
    """Record of a data set."""
    return DATASETS[one_of("name", name, DATASETS)]
