"""Where may something be written? Nothing of others is replaced, nothing is put into a model."""

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

_NAMED = re.compile(r"model-([0-9a-f]{16})\.\w+")
_FILES = re.compile(rf"model\.json|{_NAMED.pattern}|\.model[.-].+\.tmp")
"""Files of a model, also ones that a killed process left."""

_OLD_FILES = re.compile(r"(((estimator|part)\d+|network)/)*model\.(json|safetensors|skops)")
"""Files of a model of 0.1.0.dev0."""


def read_json(folder: Path) -> Any:
    """Read the record of a folder; None if there is none that can be read."""
    try:
        return json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def format_of(record: Any) -> int | None:
    """Tell the version of the format of a record; None if it is not that of a model."""
    if not isinstance(record, dict) or type(number := record.get("format")) is not int:
        return None
    versions = record.get("versions")
    ours = "vntransfer" in record or (isinstance(versions, dict) and "vntransfer" in versions)
    return number if ours else None


def digest_of(name: str) -> str:
    """Give the beginning of a digest that the name of a file has; empty if it has none."""
    found = _NAMED.fullmatch(name)
    return found.group(1) if found else ""


def files_of_model(folder: Path) -> set[str]:
    """Name the files of a folder that are a model's, by their names and its record."""
    return _ours(folder, _listed(folder))


def foreign_file(folder: Path) -> str | None:
    """Name something in a folder that is not part of a model; None if there is nothing."""
    every = _listed(folder)  # once: another process may be saving
    ours = _ours(folder, every)
    ours |= {parent.as_posix() for name in ours for parent in Path(name).parents}
    return next((name for name in every if name not in ours), None)


def _listed(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def _ours(folder: Path, names: Iterable[str]) -> set[str]:
    known = format_of(read_json(folder))
    if known is None and (folder / RECORD).exists():
        return set()
    patterns = (_FILES, _OLD_FILES) if known == 1 else (_FILES,)
    found = (name for name in names if any(own.fullmatch(name) for own in patterns))
    return {name for name in found if not (folder / name).is_dir()}


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
    """Raise unless a file can be written that replaces nothing of others: better before than after.

    ``tables`` are what is read; the ``folder`` of a model holds no other file. An existing file is
    replaced if it is a page or a picture of ours, or to ``overwrite`` it.
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
            raise ArgumentError(
                f"{option}: {out} would lie in the folder of the model; name another place"
            )
    _check_above(option, out)
    if out.exists() and not overwrite and not _marked(out):
        raise ArgumentError(
            f"{option}: {out} exists already and would be replaced; name another file, or replace "
            f"it with --overwrite (overwrite=True)"
        )


def _marked(file: Path) -> bool:
    """Whether a file says that it is a page or a picture of ours."""
    with file.open("rb") as opened:
        return _MARK.search(opened.read(2048)) is not None


def _check_above(what: str, path: Path) -> None:
    real = Path(os.path.realpath(path))  # links are followed
    for own in real.parents:
        if format_of(read_json(own)) is not None:
            raise ArgumentError(
                f"{what}: {path} would lie in {own}, the folder of a model, which may hold nothing "
                f"else; name another place"
            )
    above = next(folder for folder in real.parents if folder.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise ArgumentError(
            f"{what}: {path} cannot be written, {above} is not a folder that one can write into"
        )
