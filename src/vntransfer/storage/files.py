"""Files written whole or not at all, and their hashes."""

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

EXPANDED, RATIO = 256 * 2**20, 200
"""Bytes that packed data may always expand to, and the largest ratio beyond that."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def atomic_write(path: str | Path, mode: str = "wb") -> Iterator[IO[Any]]:
    r"""Open a temporary file that becomes ``path`` when the block ends without an error.

    The file is written in the same folder (created if needed), forced to disk and renamed: readers
    see the old file or the whole new one. After an error nothing is left behind. The mode is "wb"
    for bytes or "w" for UTF-8 text with ``\n`` line ends. Permissions are as with `open`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder, "new", "a.txt"), "w") as file:
    ...         _ = file.write("whole")
    ...     Path(folder, "new", "a.txt").read_text()
    'whole'
    """
    path = Path(os.path.realpath(path))  # replace what a link points to
    make_folder(path.parent)
    text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, mode.replace("w", "x"), **text) as file:
            yield file
            file.flush()
            with suppress(FileNotFoundError):
                os.chmod(temporary, stat.S_IMODE(path.stat().st_mode))
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in _FULL:  # these errors name no file
            error.filename = str(path)
        raise
    _sync(path.parent)


def make_folder(folder: Path) -> None:
    """Create a folder and its parents, and force their names to disk."""
    absent = [own for own in (folder, *folder.parents) if not own.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for own in absent:
        _sync(own.parent)


def _sync(folder: Path) -> None:
    """Force the names in a folder to disk, if the system can open folders."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def fingerprint(*parts: Any) -> str:
    """Hash of arrays (content, shape and type) and of anything else by its ``repr``."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray | np.generic):
            digest.update(f"{part.dtype.str}{part.shape}".encode())
            digest.update(np.ascontiguousarray(part).data)
        else:
            digest.update(f"{part!r}\0".encode())
    return digest.hexdigest()


def file_hash(path: str | Path, algorithm: str = "sha256") -> str:
    """Hash of a file in hexadecimal, read in pieces."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def most_expanded(packed: int) -> int:
    """Give the largest size that packed bytes may expand to; honest data stays far below."""
    return max(EXPANDED, RATIO * packed)
