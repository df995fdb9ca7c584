"""Files written whole or not at all, and their hashes."""

import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

Progress = Callable[[str, int, int | None], None]  # what, done so far, in all (if known)
_progress: ContextVar[Progress | None] = ContextVar("progress", default=None)


@contextmanager
def reporting(progress: Progress | None) -> Iterator[None]:
    """Let `report` call ``progress`` inside the block, however deep.

    Examples
    --------
    >>> with reporting(print):
    ...     report("a.csv", 5, 10)
    a.csv 5 10
    """
    token = _progress.set(progress)
    try:
        yield
    finally:
        _progress.reset(token)


def report(what: str, done: int, total: int | None) -> None:
    """Tell whoever listens how far a long job is."""
    if (progress := _progress.get()) is not None:
        progress(what, done, total)


@contextmanager
def atomic_write(path: str | Path, mode: str = "wb") -> Iterator[IO[Any]]:
    r"""Open a temporary file that becomes ``path`` when the block ends without an error.

    The file is written in the same folder (made if absent), forced to disk and renamed: readers
    see the old file or the whole new one. After an error nothing is left behind.

    Parameters
    ----------
    path
        Final place.
    mode
        "wb" for bytes, "w" for UTF-8 text with ``\n`` line ends.

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


class Pace:
    """How often the state of a long computation is worth writing.

    A clock decides whether a state is written, never what is in it.

    Parameters
    ----------
    seconds
        Between two writes; also before the first. 0: every state.
    told
        Called whenever a state is about to be written.

    Examples
    --------
    >>> Pace(0).due(), Pace(3600).due()
    (True, False)
    """

    def __init__(self, seconds: float = 0.0, told: Callable[[], None] | None = None) -> None:
        self.seconds, self.told = seconds, told
        self._last = time.monotonic()

    def due(self, *, last: bool = False) -> bool:
        """Say whether to write now.

        Parameters
        ----------
        last
            It is the last state of a stage, which a resumed computation would do over as a whole:
            worth writing after a quarter of the time.
        """
        now = time.monotonic()
        if now - self._last < self.seconds / (4 if last else 1):
            return False
        self._last = now
        if self.told is not None:
            self.told()
        return True


@dataclass(frozen=True)
class Paced:
    """A file or folder of states, and how often they are worth writing.

    Examples
    --------
    >>> states = Paced(Path("run"), Pace(20)) / "fold1"
    >>> states.path.as_posix(), states.pace.seconds
    ('run/fold1', 20)
    """

    path: Path
    pace: Pace = field(default_factory=Pace)

    def __truediv__(self, name: str) -> "Paced":
        return Paced(self.path / name, self.pace)


def paced(place: "str | Path | Paced") -> Paced:
    """Take a plain path as one at which every state is written."""
    return place if isinstance(place, Paced) else Paced(Path(place))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def fingerprint(*parts: Any) -> str:
    """Hash of arrays, by content, shape and type, and of anything else by how it is written.

    Examples
    --------
    >>> fingerprint("a", np.arange(3)) == fingerprint("a", np.arange(3))
    True
    >>> fingerprint(np.arange(3)) == fingerprint(np.arange(3.0))
    False
    """
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray | np.generic):
            digest.update(f"{part.dtype.str}{part.shape}".encode())
            digest.update(np.ascontiguousarray(part).data)
        else:
            digest.update(f"{part!r}\0".encode())
    return digest.hexdigest()


def file_hash(path: str | Path, algorithm: str = "sha256") -> str:
    """Hash of a file in hexadecimal, read in pieces.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a").write_bytes(b"abc")
    ...     file_hash(Path(folder, "a"), "md5")
    '900150983cd24fb0d6963f7d28e17f72'
    """
    with open(path, "rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()
