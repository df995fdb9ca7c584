"""The record of a data set in the registry: its files, names, addresses, hashes and loader."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from inspect import Parameter, signature
from numbers import Integral, Real
from typing import Any, Literal

from vntransfer.errors import ArgumentError
from vntransfer_lab.data.base import Domains, TaskStream

Kind = Literal["domains", "stream", "table"]


@dataclass(frozen=True)
class Compact:
    """A file that serves in place of the official one.

    ``partial`` says that it holds only some of the rows: it loads, with a `DataWarning`.
    """

    name: str
    sha256: str | None = None
    partial: bool = False


@dataclass(frozen=True)
class RemoteFile:
    """One official file of a data set, and under which names it may be found on disk.

    Parameters
    ----------
    name
        Official file name; the key under which a loader gets the path.
    urls
        Addresses, the official one first, then mirrors.
    folder
        Folder below the cache folder.
    size, md5, sha256
        As published, None where unknown: never guessed.
    content_md5
        md5 of the content of a .gz file, whose wrapping may differ from mirror to mirror.
    also
        Other official names that serve as well: the unpacked file or folder.
    compact
        Compact forms.
    optional
        Whether the loader can do without.
    """

    name: str
    urls: tuple[str, ...]
    folder: str
    size: int | None = None
    md5: str | None = None
    sha256: str | None = None
    content_md5: str | None = None
    also: tuple[str, ...] = ()
    compact: tuple[Compact, ...] = ()
    optional: bool = False


@dataclass(frozen=True)
class Entry:
    """The registry's record of one data set.

    Parameters
    ----------
    name, title
        What to type, and what it is in one line.
    kind
        "domains" and "table" load as `Domains` (a table has one), "stream" as `TaskStream`.
    loader
        ``"module:function"``, imported when called as ``function(files, **options,
        **parameters)``; ``files`` maps `RemoteFile.name` to the path that was found.
    files
        What it reads; empty for generated data.
    options
        Parameters of the loader that are fixed for this name.
    origin
        Address where the data come from; needed where the files themselves have none.
    license, citation, notes
        For people.
    parameters
        Parameter -> what it does and its default.
    """

    name: str
    title: str
    kind: Kind
    loader: str
    files: tuple[RemoteFile, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    origin: str = ""
    license: str = ""
    citation: str = ""
    notes: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)

    def call(self, files: Mapping[str, Any], **parameters: Any) -> Domains | TaskStream:
        """Import the loader and call it."""
        if unknown := [key for key in parameters if key not in self.parameters]:
            known = ", ".join(self.parameters) or "none"
            raise ArgumentError(f"{unknown[0]}: {self.name} has no such parameter; known: {known}")
        module, function = self.loader.split(":")
        loader = getattr(import_module(module), function)
        asked = signature(loader).parameters
        for key, value in parameters.items():
            _check_type(key, value, asked[key])
        loaded: Domains | TaskStream = loader(files, **self.options, **parameters)
        return loaded


_TYPES: dict[type, tuple[type, str]] = {
    bool: (bool, "True or False"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "a word"),
}


def _check_type(key: str, value: Any, parameter: Parameter) -> None:
    """Raise if a value is of another type than the parameter's default; a seed is not negative."""
    if type(parameter.default) not in _TYPES or "Sequence" in str(parameter.annotation):
        return
    wanted, what = _TYPES[type(parameter.default)]
    what += ", 0 or more" if key == "seed" else ""
    fits = isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))
    if not fits or (key == "seed" and value < 0):
        raise ArgumentError(f"{key}: expected {what}, got {value!r}")
