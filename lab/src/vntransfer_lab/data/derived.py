"""What is derived from data files: hashes and arrays, kept on disk and found again.

They lie in ``VNT_CACHE`` or the user's cache folder. An array is a ``.npy`` file under a name made
of the hash of its source, the options it was made with and a version: another source, option or
version is another file.
"""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from platformdirs import user_cache_path

from vntransfer.storage.files import atomic_write, file_hash


def user_cache() -> Path:
    """Cache folder of this user on this platform."""
    return user_cache_path("vntransfer", appauthor=False, opinion=False)


def derived_home() -> Path:
    """Folder of hashes and arrays: ``VNT_CACHE`` or ``derived`` in the user's cache."""
    return Path(os.environ.get("VNT_CACHE") or user_cache() / "derived").expanduser()


def digest(path: str | Path, algorithm: str = "sha256") -> str:
    """Hash of a file, or of a folder's file names and contents; remembered until it changes."""
    path = Path(path).resolve()
    memo, stamp = _memo_path(path), _stamp(path)
    known = _read_memo(memo)
    if known.get("stamp") != stamp:
        known = {"path": str(path), "stamp": stamp}
    if algorithm not in known:
        known[algorithm] = _hash(path, algorithm)
        with suppress(OSError), atomic_write(memo, "w") as file:  # no room to remember: no harm
            json.dump(known, file)
    return str(known[algorithm])


def forget(path: str | Path) -> None:
    """Forget the hashes of a file, so that it is read again."""
    _memo_path(Path(path).resolve()).unlink(missing_ok=True)


def _memo_path(path: Path) -> Path:
    key = hashlib.sha256(str(path).encode()).hexdigest()[:32]
    return derived_home() / "hashes" / f"{key}.json"


def _read_memo(memo: Path) -> dict[str, object]:
    """Return what is remembered, nothing if the memo is absent or damaged."""
    try:
        known = json.loads(memo.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _files(path: Path) -> list[Path]:
    return sorted(item for item in path.rglob("*") if item.is_file()) if path.is_dir() else [path]


def _stamp(path: Path) -> list[int]:
    """Count, bytes and latest change of the files at a path: enough to see that it changed."""
    stats = [item.stat() for item in _files(path)]
    latest = max((s.st_mtime_ns for s in stats), default=0)
    return [len(stats), sum(s.st_size for s in stats), latest]


def _hash(path: Path, algorithm: str) -> str:
    if not path.is_dir():
        return file_hash(path, algorithm)
    lines = [f"{file_hash(f)}  {f.relative_to(path).as_posix()}\n" for f in _files(path)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def derived_path(kind: str, source: Path, options: Sequence[Any]) -> Path:
    """Where the array of this kind, source (by content) and options lies or will lie."""
    key = hashlib.sha256(json.dumps([digest(source), list(options)]).encode()).hexdigest()[:32]
    return derived_home() / kind / f"{key}.npy"


def mapped(place: Path) -> NDArray[Any] | None:
    """Read-only memory map of an array on disk; None if it is absent or damaged."""
    try:
        array: NDArray[Any] = np.load(place, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return array


def remembered(
    kind: str, source: Path, options: Sequence[Any], make: Callable[[], NDArray[Any]]
) -> NDArray[Any]:
    """Return an array made from a file: the one that is kept, or a new one, which is then kept.

    Parameters
    ----------
    kind
        What it is; a folder of its own.
    source
        File or folder it is made from.
    options
        Everything else that it depends on, version of the code included.
    make
        Makes it.

    Examples
    --------
    >>> import tempfile
    >>> source = Path(tempfile.mkdtemp(), "a.txt")
    >>> _ = source.write_text("a")
    >>> for _ in range(2):
    ...     remembered("squares", source, [1, 3], lambda: print("made") or np.arange(3) ** 2)
    made
    array([0, 1, 4])
    memmap([0, 1, 4])
    """
    place = derived_path(kind, source, options)
    if (kept := mapped(place)) is not None:
        return kept
    made = make()
    with suppress(OSError), atomic_write(place) as file:  # no room to remember: no harm
        np.save(file, made, allow_pickle=False)
    return made
