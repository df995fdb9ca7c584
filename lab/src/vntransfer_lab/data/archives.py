"""Reading of zip and tar.gz archives and of the folders they unpack to; nothing is written."""

import gzip
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np

from vntransfer.errors import DataError, damage_named
from vntransfer.storage.files import most_expanded

SUFFIXES = (".zip", ".tar.gz", ".tgz")
_PIECE = 1 << 20


def archive_stem(name: str) -> str | None:
    """Name of the folder that an archive unpacks to; None for other files."""
    for suffix in SUFFIXES:
        if name.lower().endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)]
    return None


@contextmanager
def arrays(path: Path) -> Iterator[Any]:
    """Open an npz file, in whose block every error is one of the file."""
    with damage_named(path, "npz file"), np.load(path, allow_pickle=False) as box:
        yield box


def members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield (name, stream) of every regular file of an archive; read each before the next.

    Read the streams within `damage_named`. An archive whose headers announce a decompression bomb
    is an error; no stream gives more bytes than its header announces.
    """
    most = left = most_expanded(path.stat().st_size)
    for name, size, stream in _zip(path) if zipfile.is_zipfile(path) else _tar(path):
        left -= size
        if left < 0:
            raise DataError(
                f"{path}: unpacks to more than {most >> 20} MiB: a decompression bomb or a "
                "damaged file; fetch it from the official address"
            )
        yield PurePosixPath(name).as_posix(), stream


def _zip(path: Path) -> Iterator[tuple[str, int, IO[bytes]]]:
    with zipfile.ZipFile(path) as box:
        for info in box.infolist():
            if not info.is_dir():
                with box.open(info) as stream:
                    yield info.filename, info.file_size, stream


def _tar(path: Path) -> Iterator[tuple[str, int, IO[bytes]]]:
    with gzip.open(path) as packed:
        with tarfile.open(fileobj=packed, mode="r|") as tape:
            for member in tape:
                stream = tape.extractfile(member) if member.isreg() else None
                if stream is not None:
                    yield member.name, member.size, stream
        while packed.read(_PIECE):  # to the end: the checksum of the compression comes last
            pass


def read_members(path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of the wanted regular files of a folder, a zip or a tar.gz.

    Names use ``/`` and are relative to the folder or as in the archive; links are skipped.
    """
    if not path.is_dir():
        with damage_named(path):
            for name, stream in members(path):
                if wanted(name):
                    yield name, stream.read()
        return
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path).as_posix()
        if wanted(name) and file.is_file() and not file.is_symlink():
            yield name, file.read_bytes()


def check_whole(path: Path) -> None:
    """Read an archive or a .gz file to its end, as what its name says.

    Nothing more can be checked of a download without a known hash.
    """
    with damage_named(path):
        if archive_stem(path.name) is not None:
            count = 0
            for _, stream in members(path):
                count += 1
                while stream.read(_PIECE):
                    pass
            if not count:
                raise DataError(f"{path}: holds no files; fetch it again")
        elif path.name.lower().endswith(".gz"):
            with gzip.open(path) as file:
                while file.read(_PIECE):
                    pass
