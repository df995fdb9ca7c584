"""Arrays derived from data files, kept on disk and memory-mapped the next time.

They lie in the folder of derived files as ``.npy``, under a name made of the hash of the source,
the options they were made with and a version: another source, option or version is another file.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.storage.files import atomic_write
from vntransfer_lab.data.cache import derived_home, digest


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
