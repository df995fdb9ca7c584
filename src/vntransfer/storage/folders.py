"""Folders of models: whose they are, and how one takes the place of another."""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vntransfer.errors import ArgumentError, DataError

RECORD, NUMBERS = "model.json", "model.safetensors"
_OURS = re.compile(rf"{re.escape(NUMBERS)}|estimator\d+/.+")


def read_record(folder: Path, kind: str) -> dict[str, Any]:
    """Read `model.json`, which must be that of a model of this kind.

    Parameters
    ----------
    folder
        Where the model was saved.
    kind
        What `model.json` must say that the model is.
    """
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{folder}: holds no {RECORD}; name the folder that was saved") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{folder}: {RECORD} is damaged ({error!s:.100}); save it again") from None
    if not isinstance(record, dict) or record.get("kind") != kind:
        raise DataError(f"{folder}: {RECORD} is not that of a {kind}")
    return record


def kind_of(folder: Path) -> str:
    """Tell what a folder says that it holds, "" if nothing."""
    try:
        return str(json.loads((folder / RECORD).read_text(encoding="utf-8"))["kind"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def check_file(
    out: str | Path, tables: Iterable[str | Path] = (), folder: str | Path | None = None
) -> None:
    """Raise if a file cannot be written, or would replace a table: better before than after.

    Parameters
    ----------
    out
        What is to be written.
    tables
        What is read.
    folder
        Of a model, which no other file may be in.
    """
    out = Path(out)
    if out.is_dir():
        raise ArgumentError(f"out: {out} is a folder; name a file")
    if out.exists() and not out.is_file():
        raise ArgumentError(f"out: {out} is no ordinary file; name another")
    if folder is not None and Path(folder).resolve() in out.resolve().parents:
        raise ArgumentError(f"out: {out} would lie in the folder of the model; name another place")
    _check_above("out", out)
    if out.exists() and any(Path(own).exists() and out.samefile(own) for own in tables):
        raise ArgumentError(f"out: {out} is the table that is read; name another file")


def _check_above(what: str, path: Path) -> None:
    for own in path.resolve().parents:
        if kind_of(own).startswith("vntransfer "):
            raise ArgumentError(
                f"{what}: {path} would lie in {own}, the folder of a model, which may hold nothing "
                f"else; name another place"
            )
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise ArgumentError(
            f"{what}: {path} cannot be written, {above} is no folder that one can write into"
        )


def check_place(folder: str | Path, kind: str) -> None:
    """Raise unless a folder is absent, empty, or holds a model of this kind and nothing else.

    Parameters
    ----------
    folder
        Where a model is to be written.
    kind
        Of the model.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as place:
    ...     check_place(place, "a model")
    ...     _ = Path(place, "thesis.txt").write_text("precious")
    ...     check_place(place, "a model")
    Traceback (most recent call last):
    vntransfer.errors.ArgumentError: folder: ...holds 'thesis.txt'...
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"folder: {folder} is a file; name a folder")
    _check_above("folder", folder)
    if not folder.is_dir():
        return
    try:
        listed = read_record(folder, kind).get("sha256")
        files = list(listed) if isinstance(listed, dict) else [NUMBERS]
        ours = {RECORD} | {name for name in files if _OURS.fullmatch(name)}
    except DataError:
        ours = set()
    ours |= {parent.as_posix() for name in ours for parent in Path(name).parents}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name not in ours:
            raise ArgumentError(
                f"folder: {folder} holds {name!r}, which is not part of a {kind}; name a new "
                f"folder, or move it away"
            )


@contextmanager
def replaced(folder: str | Path, kind: str) -> Iterator[Path]:
    """Give an empty folder that becomes ``folder`` when the block ends without an error.

    An older model steps aside by a rename just before, and is deleted only when the new one is in
    its place; anything else that a folder holds is refused, once more at the end. After an error
    all is as it was.

    Parameters
    ----------
    folder
        Final place.
    kind
        Of the model that may be replaced.
    """
    check_place(folder, kind)
    folder = Path(folder).resolve()  # of a link, what it points to is replaced
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        yield made
        made.chmod(0o755)
        check_place(folder, kind)
        if not folder.exists():
            made.rename(folder)
            return
        old = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.old."))
        folder.rename(old)  # onto an empty folder, which it replaces
        try:
            made.rename(folder)
        except BaseException:
            old.rename(folder)
            raise
        shutil.rmtree(old)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
