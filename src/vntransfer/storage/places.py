"""Checks of output paths: protect the files of others, and folders of models."""

import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from vntransfer.checks import instance
from vntransfer.errors import ArgumentError

RECORD = "model.json"

PAGES, TABLES, PICTURES = (".html", ".htm"), (".csv", ".parquet", ".pq"), (".svg",)
"""Endings of files that are written."""

GENERATOR = "vntransfer"
"""What a page names as its generator, and a picture in an attribute of that name."""

_MARK = re.compile(rf'generator(" content)?="{GENERATOR}"'.encode())

_FILES = re.compile(r"model\.json|model-[0-9a-f]{16}\.\w+|\.model[.-].+\.tmp")
"""Files of a model, including those that a killed process left."""


def read_json(folder: Path) -> Any:
    """Read the record of a folder; None if there is none that can be read."""
    try:
        return json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def format_of(record: Any) -> int | None:
    """Give the format version of a record; None if it is not the record of a model."""
    if not isinstance(record, dict) or type(number := record.get("format")) is not int:
        return None
    versions = record.get("versions")
    ours = "vntransfer" in record or (isinstance(versions, dict) and "vntransfer" in versions)
    return number if ours else None


def files_of_model(folder: Path) -> set[str]:
    """Give the names of a model's own files in a folder."""
    return {path.name for path in folder.iterdir() if _is_ours(path)}


def foreign_file(folder: Path) -> str | None:
    """Name something in a folder that is not part of a model; None if there is nothing."""
    damaged = (folder / RECORD).exists() and format_of(read_json(folder)) is None
    others = (path.name for path in folder.iterdir() if damaged or not _is_ours(path))
    return min(others, default=None)


def _is_ours(path: Path) -> bool:
    return _FILES.fullmatch(path.name) is not None and not path.is_dir()


def check_place(folder: str | Path) -> None:
    """Raise unless a folder is absent, empty, or holds a saved model and nothing else."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"folder: {folder} is a file; name a folder")
    _check_above("folder", folder)
    if folder.is_dir() and (name := foreign_file(folder)) is not None:
        raise ArgumentError(
            f"folder: {folder} holds {name!r}, which is not part of a vntransfer model; name a new "
            f"folder, or move it away"
        )


def check_file(
    option: str,
    out: str | Path,
    endings: Sequence[str],
    tables: Iterable[str | Path] = (),
    folder: str | Path | None = None,
    *,
    overwrite: bool = False,
) -> None:
    """Raise unless a file can be written that replaces nothing of others.

    ``tables`` are the tables that are read, ``folder`` is where a model will be saved. An existing
    file is replaced only if it is a page or picture of ours, or with ``overwrite``.
    """
    out = Path(instance(option, out, str | os.PathLike, "the path of a file"))
    real = Path(os.path.realpath(out))
    if out.is_dir():
        raise ArgumentError(f"{option}: {out} is a folder; name a file")
    if real.is_symlink() or (out.exists() and not out.is_file()):
        raise ArgumentError(f"{option}: {out} is not a regular file; name another")
    if out.exists() and any(Path(own).exists() and out.samefile(own) for own in tables):
        raise ArgumentError(f"{option}: {out} is the table that is read; name another file")
    if out.suffix.lower() not in endings:
        ends = " or ".join(endings[:2])
        raise ArgumentError(f"{option}: expected a name that ends in {ends}, got {out}")
    if folder is not None:
        model = Path(os.path.realpath(folder))
        if model in (real, *real.parents) or real in model.parents:
            raise ArgumentError(f"{option}: {out} is inside the model's folder; name another path")
    _check_above(option, out)
    if out.exists() and not overwrite and not _marked(out):
        raise ArgumentError(
            f"{option}: {out} exists; name another file, or replace it with --overwrite "
            f"(overwrite=True)"
        )


def _marked(file: Path) -> bool:
    """Whether a file is marked as a page or picture of vntransfer."""
    with file.open("rb") as opened:
        return _MARK.search(opened.read(2048)) is not None


def _check_above(what: str, path: Path) -> None:
    real = Path(os.path.realpath(path))  # links are followed
    for own in real.parents:
        if format_of(read_json(own)) is not None:
            raise ArgumentError(
                f"{what}: {path} is inside {own}, the folder of a saved model, which may hold "
                f"nothing else; name another path"
            )
    above = next(folder for folder in real.parents if folder.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise ArgumentError(
            f"{what}: cannot write {path}: {above} is not a writable folder; name another path"
        )
