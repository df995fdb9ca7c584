"""The one format of everything that can be saved: a folder with `model.json` and what it names.

`model.json` holds the version of the format, the kind of the model, its plain values and those of
the models inside it, and a digest. Arrays are one safetensors file; files in the format of another
library (skops) lie beside it. These files are named by their digests, so a new model is written
beside an older one, and replacing `model.json` switches between them at once: a killed process
leaves the older model, and concurrent readers get one of the two. Savers lock the folder; whatever
no record names then was left by a killed process. Nothing in a folder is code.
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
from vntransfer.errors import DataError, VnError
from vntransfer.storage.files import atomic_write
from vntransfer.storage.locks import locked
from vntransfer.storage.places import (
    RECORD,
    check_place,
    files_of_model,
    foreign_file,
    format_of,
    read_json,
)
from vntransfer.storage.record import SavedModel, check_record, pack, unpack

FORMAT = 3
"""Version of the layout and contents of a folder; 1 and 2 were those of development versions."""

ARRAYS = "arrays.safetensors"

NODE = {"kind": str, "record": dict[str, Any], "files": dict[str, str], "parts": dict[str, Any]}
"""Types of what is written of a model, and of each model inside it."""

_DIGEST = re.compile(r"[0-9a-f]{64}")

_LEFT_BEHIND = 3600.0
"""Age in seconds above which files that no record names belong to no running save."""


class Savable:
    """A model that can be saved: a class gives its plain data, and restores a model from them."""

    def save(self, folder: str | Path) -> None:
        """Write the fitted model into a folder, without pickle; `vntransfer.load` reads it.

        Parameters
        ----------
        folder
            Created if it does not exist. An older model in it is replaced atomically; a folder
            that holds anything else is refused.
        """
        save_folder(folder, self._saved())

    def _saved(self) -> SavedModel:
        raise NotImplementedError

    @classmethod
    def _restored(
        cls, saved: SavedModel, parts: Mapping[str, Any], given: Mapping[str, Any]
    ) -> Self:
        """Restore the model from what `_saved` gave and the restored models inside it.

        ``given`` are options that cannot be saved, by name: your own modules.
        """
        raise NotImplementedError


def save_folder(folder: str | Path, saved: SavedModel) -> None:
    """Write a model; after an error the folder is unchanged.

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
    folder = Path(folder).resolve()  # replace what a link points to
    # safetensors writes memory as it lies
    whole = ((prefix + k, v) for prefix, one in saved.walk() for k, v in one.arrays.items())
    every = {name: np.asarray(value, order="C") for name, value in whole}
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
    kind: Callable[[SavedModel], Any],
    given: Mapping[str, Any],
    folder: str | Path,
    at: str = "",
) -> Any:
    """Restore a model after those inside it; errors name the folder and the place in it.

    ``kind`` gives the class that makes it, None for one that a folder may not name; for ``given``
    see `Savable`.
    """
    own = kind(saved)
    if own is None:
        raise DataError(
            f"{folder}: {RECORD}: {at}kind: {saved.kind!r:.60} is not a model that vntransfer "
            f"{__version__} can read here; update vntransfer, or fit and save the model again"
        )
    parts = {
        name: restore(part, kind, given, folder, f"{at}parts.{name}.")
        for name, part in saved.parts.items()
    }
    with damage_named(folder, at):
        return own._restored(saved, parts, given)


@contextmanager
def damage_named(folder: str | Path, at: str = "") -> Iterator[None]:
    """Turn whatever invalid values raise into an error that names the folder."""
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
    except (RuntimeError, SafetensorError, BadZipFile) as error:  # RuntimeError: shapes, in torch
        raise _damaged(folder, error) from error


def _damaged(folder: str | Path, error: Exception) -> DataError:
    return DataError(f"{folder}: {RECORD} is damaged ({error!r:.100}); save the model again")


def _read_text(folder: Path) -> str:
    try:
        return (folder / RECORD).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        what = f"{RECORD} is missing"
        if folder.is_file():
            what = "is a file, not the folder of a saved model"
        raise DataError(f"{folder}: {what}; name the folder of a saved model") from None
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
        raise DataError(f"{folder}: {RECORD} is not from a saved model; name another folder")
    if known != FORMAT:
        remedy = "update vntransfer, or fit" if known > FORMAT else "fit"
        raise DataError(
            f"{folder}: saved in format {known}, but vntransfer {__version__} reads only format "
            f"{FORMAT}; {remedy} and save the model again with this version"
        )
    if (name := foreign_file(folder)) is not None:
        raise DataError(f"{folder}: {name} is not part of the model; remove it")
    if content.pop("sha256", None) != _record_digest(content):
        raise DataError(
            f"{folder}: {RECORD} was changed after saving or is damaged (wrong digest); save the "
            f"model again"
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
    # copies, because arrays from safetensors are read-only
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
    """Digest of plain values; whitespace in the file does not matter."""
    return _digest(json.dumps(content).encode())


@cache
def _versions() -> dict[str, str]:
    return {name: version(name) for name in ("numpy", "scikit-learn", "torch")}


def _file_name(name: str, digest: str) -> str:
    return f"model-{digest[:16]}{Path(name).suffix}"


def _named_files(folder: Path) -> set[str]:
    """Files that the record of a folder names, itself included; it may be damaged."""
    record = json.dumps(read_json(folder))
    return {
        name
        for name in files_of_model(folder)
        if name == RECORD or Path(name).stem.removeprefix("model-") in record
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
