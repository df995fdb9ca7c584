"""The one format of everything that can be saved: a folder with `model.json` and what it names.

`model.json` has the version of the format, the kind of the model, its plain values and those of
the models inside it, and the digest of all this. Arrays are one safetensors file; what a library
writes in a form of its own (skops) is a file beside it. These files are named by their digests. A
new model is therefore written beside an older one, and replacing `model.json` switches from one to
the other at once: a process that is killed leaves the older model, and whoever reads meanwhile
gets one of the two. Those who save lock the folder, so what no record names then is what a killed
process left. Nothing in a folder is code.
"""

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as read_arrays
from safetensors.numpy import save as write_arrays

from vntransfer._version import __version__
from vntransfer.checks import one_of
from vntransfer.errors import DataError, VnError
from vntransfer.storage.files import atomic_write
from vntransfer.storage.locks import locked
from vntransfer.storage.old_format import read_old
from vntransfer.storage.places import (
    RECORD,
    check_place,
    digest_of,
    files_of_model,
    foreign_file,
    format_of,
    read_json,
)
from vntransfer.storage.record import SavedModel, check_record, pack, unpack

FORMAT = 2
"""Version of the layout of a folder; 1 is that of 0.1.0.dev0, see `old_format`."""

ARRAYS = "arrays.safetensors"

NODE = {"kind": str, "record": dict[str, Any], "files": dict[str, str], "parts": dict[str, Any]}
"""What is written of a model, and of each inside it."""

_DIGEST = re.compile(r"[0-9a-f]{64}")

_LEFT_BEHIND = 3600.0
"""Seconds after which files that no record names are no longer those of a save under way."""


class Savable:
    """A model that can be saved: a class says what of it, and makes it again from that."""

    def save(self, folder: str | Path) -> None:
        """Write the fitted model into a folder, without pickle; `vntransfer.load` reads it.

        Parameters
        ----------
        folder
            Made if absent. An older model there is replaced, whole or not at all; a folder that
            holds anything else is refused.
        """
        save_folder(folder, self._saved())

    def _saved(self) -> SavedModel:
        raise NotImplementedError

    @classmethod
    def _restored(
        cls, saved: SavedModel, parts: Mapping[str, Any], given: Mapping[str, Any]
    ) -> Self:
        """Make the model again from what `_saved` gave and the models inside it, made again.

        ``given`` is what cannot be saved, by the name of the option: modules of your own.
        """
        raise NotImplementedError


def save_folder(folder: str | Path, saved: SavedModel) -> None:
    """Write a model; after an error the folder is as it was.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     save_folder(place, SavedModel("Line", {"slope": 2}, {"x": np.arange(3)}))
    ...     again = load_folder(place)
    >>> again.kind, again.record, again.arrays["x"]
    ('Line', {'slope': 2}, array([0, 1, 2]))
    """
    check_place(folder)
    folder = Path(folder).resolve()  # of a link, what it points to is replaced
    every = {prefix + k: v for prefix, one in saved.walk() for k, v in one.arrays.items()}
    contents = [(name, data) for _, one in saved.walk() for name, data in one.files.items()]
    arrays = write_arrays(every) if every else None
    if arrays is not None:
        contents.append((ARRAYS, arrays))
    files = {_file_name(name, _digest(data)): data for name, data in contents}
    content = {
        "format": FORMAT,
        **_described(saved),
        "arrays": None if arrays is None else _digest(arrays),
        "versions": {"vntransfer": __version__, **_versions()},
    }
    signed = {**content, "sha256": _record_digest(content)}
    text = json.dumps(signed, indent=1, ensure_ascii=False).encode()
    new = not folder.exists()
    with locked(folder) as alone:
        before = _named_files(folder)
        try:
            for name, data in files.items():
                with atomic_write(folder / name) as file:
                    file.write(data)
            with atomic_write(folder / RECORD) as file:
                file.write(text)
        except BaseException:
            _remove(folder, set(files) - _named_files(folder))
            if new:
                with suppress(OSError):
                    folder.rmdir()
            raise
        rest = files_of_model(folder) if alone else _left_behind(folder)
        _remove(folder, (before | rest) - set(files) - {RECORD})


def load_folder(folder: str | Path) -> SavedModel:
    """Read a folder; format and digests are checked before anything is used."""
    folder = Path(folder)
    try:
        return _read(folder)
    except (FileNotFoundError, DataError):  # damaged, or replaced by another model just now
        pass
    with locked(folder, shared=True):
        try:
            return _read(folder)
        except FileNotFoundError as error:
            name = Path(error.filename).name
            raise DataError(f"{folder}: {name} is missing; save the model again") from None


def restore(
    saved: SavedModel,
    kinds: Mapping[str, type[Savable]],
    given: Mapping[str, Any],
    folder: str | Path,
    at: str = "",
) -> Any:
    """Make a model again, and those inside it before; errors name the folder and where in it.

    ``kinds`` are the classes that a folder may name; for ``given`` see `Savable`.
    """
    own = kinds[one_of(f"{folder}: {at}kind", saved.kind, kinds, error=DataError)]
    parts = {
        name: restore(part, kinds, given, folder, f"{at}parts.{name}.")
        for name, part in saved.parts.items()
    }
    with damage_named(folder, at):
        return own._restored(saved, parts, given)


@contextmanager
def damage_named(folder: str | Path, at: str = "") -> Iterator[None]:
    """Turn whatever unfit values raise into an error that names the folder."""
    try:
        yield
    except DataError as error:
        if str(folder) in str(error):
            raise
        raise DataError(f"{folder}: {RECORD}: {at}{error}; save the model again") from error
    except (VnError, OSError):
        raise
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise _damaged(folder, error) from error
    except (RuntimeError, SafetensorError, BadZipFile) as error:  # RuntimeError: torch, of shapes
        raise _damaged(folder, error) from error


def _damaged(folder: str | Path, error: Exception) -> DataError:
    return DataError(f"{folder}: {RECORD} is damaged ({error!r:.100}); save the model again")


def _read_text(folder: Path) -> str:
    try:
        return (folder / RECORD).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        what = f"{RECORD} is missing"
        if folder.is_file():
            what = "is a file, and the folder of a saved model is expected"
        raise DataError(f"{folder}: {what}; name the folder that was saved") from None
    except (OSError, ValueError) as error:
        raise _damaged(folder, error) from None


def _read(folder: Path) -> SavedModel:
    """Check the record of a folder and read what it names."""
    text = _read_text(folder)
    with damage_named(folder):
        return _checked(folder, json.loads(text))


def _checked(folder: Path, content: Any) -> SavedModel:
    known = format_of(content)
    if known is None:
        raise DataError(f"{folder}: {RECORD} is not that of a saved model; name another folder")
    if known > FORMAT:
        raise DataError(
            f"{folder}: format {known}, and vntransfer {__version__} reads up to format {FORMAT}; "
            f"update vntransfer, or fit and save the model again"
        )
    if (name := foreign_file(folder)) is not None:
        raise DataError(f"{folder}: {name} is not part of the model; remove it")
    if known == 1:
        return read_old(folder)
    if content.pop("sha256", None) != _record_digest(content):
        raise DataError(
            f"{folder}: {RECORD} was changed after it was saved, or is damaged (its digest does "
            f"not match); save the model again"
        )

    def read(name: str, digest: str) -> bytes:
        if not _DIGEST.fullmatch(digest):
            raise ValueError(f"digest of {name}")
        path = folder / _file_name(name, digest)
        data = path.read_bytes()
        if _digest(data) != digest:
            raise DataError(f"{folder}: {path.name} does not match {RECORD}; save the model again")
        return data

    check_record("arrays", digest := content.get("arrays"), str | None)
    # copies, because what safetensors gives cannot be written to
    arrays = {} if digest is None else read_arrays(read(ARRAYS, digest))
    return _undescribed(content, {name: np.array(value) for name, value in arrays.items()}, read)


def _described(saved: SavedModel) -> dict[str, Any]:
    """Give the plain values of a model and those inside it, with the digests of their files."""
    return {
        "kind": saved.kind,
        "record": pack(saved.record),
        "files": {name: _digest(data) for name, data in saved.files.items()},
        "parts": {name: _described(part) for name, part in saved.parts.items()},
    }


def _undescribed(
    node: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    read: Callable[[str, str], bytes],
    at: str = "model",
) -> SavedModel:
    """Undo `_described`."""
    check_record(at, node, NODE)
    parts = {}
    for i, (name, part) in enumerate(node["parts"].items()):
        start = f"part{i}/"
        inside = {k.removeprefix(start): v for k, v in arrays.items() if k.startswith(start)}
        parts[name] = _undescribed(part, inside, read, f"{at}.parts.{name}")
    return SavedModel(
        node["kind"],
        unpack(node["record"]),
        {name: value for name, value in arrays.items() if not name.startswith("part")},
        {name: read(name, digest) for name, digest in node["files"].items()},
        parts,
    )


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _record_digest(content: Mapping[str, Any]) -> str:
    """Digest of plain values, whatever the spaces between them in the file."""
    return _digest(json.dumps(content).encode())


@cache
def _versions() -> dict[str, str]:
    return {name: version(name) for name in ("numpy", "scikit-learn", "torch")}


def _file_name(name: str, digest: str) -> str:
    return f"model-{digest[:16]}{Path(name).suffix}"


def _named_files(folder: Path) -> set[str]:
    """Files that the record of a folder names, itself included; it may be damaged."""
    content = read_json(folder)
    text = json.dumps(content)
    old = format_of(content) == 1
    return {
        name
        for name in files_of_model(folder)
        if name == RECORD or (digest_of(name) in text if digest_of(name) else old)
    }


def _left_behind(folder: Path) -> set[str]:
    """Files of saves that were killed some time ago."""
    old = set()
    for name in files_of_model(folder):
        with suppress(FileNotFoundError):
            if time.time() - (folder / name).stat().st_mtime > _LEFT_BEHIND:
                old.add(name)
    return old


def _remove(folder: Path, names: set[str]) -> None:
    for name in names:
        (folder / name).unlink(missing_ok=True)
    for inner in sorted({folder / name for name in names}, reverse=True):
        for parent in inner.parents:
            if folder in parent.parents:
                with suppress(OSError):  # not empty, or gone
                    parent.rmdir()
