"""Files written whole or not at all, and their hashes."""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np


@contextmanager
def atomic_write(path: str | Path, mode: str = "wb") -> Iterator[IO[Any]]:
    r"""Open a temporary file that becomes ``path`` when the block ends without an error.

    The file is written in the same folder (made if absent), forced to disk and renamed: readers
    see the old file or the whole new one. After an error nothing is left behind. The mode is "wb"
    for bytes or "w" for UTF-8 text with ``\n`` line ends.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder, "new", "a.txt"), "w") as file:
    ...         _ = file.write("whole")
    ...     Path(folder, "new", "a.txt").read_text()
    'whole'
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, mode, **text) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def fingerprint(*parts: Any) -> str:
    """Hash of arrays, by content, shape and type, and of anything else by how it is written."""
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
