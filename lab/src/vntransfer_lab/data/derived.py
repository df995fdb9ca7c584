"""Hashes and arrays derived from data files, cached on disk.

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


def _derived_home() -> Path:
    return Path(os.environ.get("VNT_CACHE") or user_cache() / "derived").expanduser()


def digest(path: str | Path, algorithm: str = "sha256") -> str:
    """Hash of a file, or of a folder's file names and contents; cached until it changes."""
    path = Path(path).resolve()
    key = hashlib.sha256(str(path).encode()).hexdigest()[:32]
    memo, stamp = _derived_home() / "hashes" / f"{key}.json", _stamp(path)
    known: Any = None
    with suppress(OSError, ValueError):  # absent or damaged
        known = json.loads(memo.read_text(encoding="utf-8"))
    if not isinstance(known, dict) or known.get("stamp") != stamp:
        known = {"path": str(path), "stamp": stamp}
    if algorithm not in known:
        known[algorithm] = _hash(path, algorithm)
        with suppress(OSError), atomic_write(memo, "w") as file:  # no room to remember: no harm
            json.dump(known, file)
    return str(known[algorithm])


def _files(path: Path) -> list[Path]:
    return sorted(item for item in path.rglob("*") if item.is_file()) if path.is_dir() else [path]


def _stamp(path: Path) -> list[int]:
    """Count, bytes and latest change of the files at a path: enough to detect a change."""
    stats = [item.stat() for item in _files(path)]
    latest = max((s.st_mtime_ns for s in stats), default=0)
    return [len(stats), sum(s.st_size for s in stats), latest]


def _hash(path: Path, algorithm: str) -> str:
    if not path.is_dir():
        return file_hash(path, algorithm)
    lines = [f"{file_hash(f)}  {f.relative_to(path).as_posix()}\n" for f in _files(path)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def remembered(
    kind: str, source: Path, options: Sequence[Any], make: Callable[[], NDArray[Any]]
) -> NDArray[Any]:
    """Read-only memory map of what ``make`` makes of a file or folder, made once.

    It lies in a folder of its ``kind``, under a name made of the source's content and ``options``:
    everything else that it depends on, version of the code included. Where there is no room to
    keep it, the array itself is the result.
    """
    key = hashlib.sha256(json.dumps([digest(source), list(options)]).encode()).hexdigest()[:32]
    place = _derived_home() / kind / f"{key}.npy"
    if (kept := _mapped(place)) is not None:
        return kept
    made = make()
    with suppress(OSError), atomic_write(place) as file:
        np.save(file, made, allow_pickle=False)
    kept = _mapped(place)
    return made if kept is None else kept


def _mapped(place: Path) -> NDArray[Any] | None:
    """Memory map of an array on disk; None if it is absent or damaged."""
    try:
        array: NDArray[Any] = np.load(place, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return array
