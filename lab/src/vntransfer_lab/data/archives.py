"""Safe unpacking of zip and tar archives: nothing outside the folder, no links, no bombs."""

import bz2
import gzip
import io
import lzma
import os
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, Protocol

from vntransfer.errors import DataError

SUFFIXES = (".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar")
_PIECE = 1 << 20
_DAMAGE: tuple[type[Exception], ...] = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,  # a compression that zipfile does not know
    RuntimeError,  # zipfile's way to say that a member is encrypted
)


@dataclass(frozen=True)
class Limits:
    """What an archive may hold at most; counted while it is read, whatever its headers say.

    Parameters
    ----------
    members
        Number of members.
    total
        Bytes of all of them unpacked.
    ratio
        Unpacked over packed bytes; ignored for the first ``ratio_from`` unpacked bytes.
    """

    members: int = 200_000
    total: int = 16 << 30
    ratio: float = 100.0
    ratio_from: int = 64 << 20


DEFAULT_LIMITS = Limits()


def archive_stem(name: str) -> str | None:
    """Name of the folder that an archive unpacks to; None for other files.

    Examples
    --------
    >>> archive_stem("TRANCOS_v3.tar.gz"), archive_stem("a.csv")
    ('TRANCOS_v3', None)
    """
    for suffix in SUFFIXES:
        if name.lower().endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)]
    return None


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Meter:
    """Counts unpacked bytes and stops a bomb while it unfolds."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self.path, self.limits = path, limits
        self.packed = max(path.stat().st_size, 1)
        self.bytes = self.members = 0

    def add_bytes(self, count: int) -> None:
        self.bytes += count
        allowed = max(self.limits.ratio * self.packed, self.limits.ratio_from)
        if self.bytes > min(self.limits.total, allowed):
            raise DataError(
                f"{self.path}: unpacks to more than {self.bytes - count} bytes from {self.packed}: "
                "a decompression bomb or a damaged file; fetch it from the official address"
            )

    def add_member(self) -> None:
        self.members += 1
        if self.members > self.limits.members:
            raise DataError(
                f"{self.path}: has more than {self.limits.members} members; fetch it from the "
                "official address"
            )


@contextmanager
def _clear_errors(path: Path, *more: type[Exception]) -> Iterator[None]:
    try:
        yield
    except _DAMAGE + more as error:
        raise DataError(f"{path}: damaged archive ({error}); fetch it again") from error


class _Checked(io.RawIOBase):
    """Stream whose bytes are counted and whose errors are ours; a read gives at most a piece."""

    def __init__(self, source: _Readable, meter: _Meter, *, count: bool = True) -> None:
        self._source, self._meter, self._count = source, meter, count

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with _clear_errors(self._meter.path, OSError):  # bz2 and gzip raise it
            piece = self._source.read(min(len(buffer), _PIECE))
        if self._count:
            self._meter.add_bytes(len(piece))
        buffer[: len(piece)] = piece
        return len(piece)


def _safe_name(path: Path, name: str) -> str:
    """Return the member's relative name, or refuse it."""
    pure = PurePosixPath(name)
    if (
        not pure.parts
        or pure.is_absolute()
        or ".." in pure.parts
        or any(sign in name for sign in "\\:\0")
    ):
        raise DataError(
            f"{path}: member {name!r} would be written outside the folder; nothing was unpacked, "
            "fetch the archive from the official address"
        )
    return pure.as_posix()


def members(path: Path, limits: Limits = DEFAULT_LIMITS) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield (name, stream) of every regular file of an archive; read each before the next.

    Raises
    ------
    DataError
        For a name that leaves the folder, a link, a device, a bomb or a damaged archive.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "a.zip")
    >>> with zipfile.ZipFile(path, "w") as box:
    ...     box.writestr("folder/b.txt", "hello")
    >>> [(name, stream.read()) for name, stream in members(path)]
    [('folder/b.txt', b'hello')]
    """
    meter = _Meter(path, limits)
    with _clear_errors(path):
        if zipfile.is_zipfile(path):
            yield from _zip_members(path, meter)
        else:
            yield from _tar_members(path, meter)


def _refuse(path: Path, name: str, what: str) -> DataError:
    return DataError(f"{path}: member {name!r} is {what}; fetch it from the official address")


def _zip_members(path: Path, meter: _Meter) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(path) as box:
        for info in box.infolist():
            meter.add_member()
            name = _safe_name(path, info.filename)
            kind = stat.S_IFMT(info.external_attr >> 16)
            if info.is_dir():
                continue
            if kind not in (0, stat.S_IFREG):
                raise _refuse(path, name, "a link or a device")
            with box.open(info) as stream:
                yield name, io.BufferedReader(_Checked(stream, meter))


def _tar_members(path: Path, meter: _Meter) -> Iterator[tuple[str, IO[bytes]]]:
    with open(path, "rb") as raw:
        magic = raw.read(6)
        raw.seek(0)
        plain: _Readable = raw
        if magic.startswith(b"\x1f\x8b"):
            plain = gzip.GzipFile(fileobj=raw)
        elif magic.startswith(b"BZh"):
            plain = bz2.BZ2File(raw)
        elif magic.startswith(b"\xfd7zXZ"):
            plain = lzma.LZMAFile(raw)  # noqa: SIM115 raw is closed by its own block
        counted = io.BufferedReader(_Checked(plain, meter))
        with tarfile.open(fileobj=counted, mode="r|") as tape:
            for member in tape:
                meter.add_member()
                name = member.name
                if member.isdir() and PurePosixPath(name) == PurePosixPath("."):
                    continue
                name = _safe_name(path, name)
                if member.isdir():
                    continue
                if not member.isreg():
                    raise _refuse(path, name, "a link or a device")
                stream = tape.extractfile(member)
                assert stream is not None  # regular files have content
                yield name, io.BufferedReader(_Checked(stream, meter, count=False))
        while counted.read(_PIECE):  # to the end: the checksum of the compression comes last
            pass


def read_members(path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of the wanted regular files of a folder, a zip or a tar.

    Names use ``/`` and are relative to the folder or as in the archive; links in a folder are
    skipped, in an archive they are refused.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("a.txt", "b.txt", "c.png"):
    ...     _ = (folder / name).write_text(name)
    >>> list(read_members(folder, lambda name: name.endswith(".txt")))
    [('a.txt', b'a.txt'), ('b.txt', b'b.txt')]
    """
    if not path.is_dir():
        for name, stream in members(path):
            if wanted(name):
                yield name, stream.read()
        return
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path).as_posix()
        if wanted(name) and file.is_file() and not file.is_symlink():
            yield name, file.read_bytes()


def inspect(path: Path, limits: Limits = DEFAULT_LIMITS) -> int:
    """Read an archive to its end without writing anything; return its number of files."""
    count = 0
    for _, stream in members(path, limits):
        while stream.read(_PIECE):
            pass
        count += 1
    if not count:
        raise DataError(f"{path}: holds no files; fetch it again")
    return count


def unpack(path: Path, folder: Path, limits: Limits = DEFAULT_LIMITS) -> int:
    """Unpack an archive into a new folder: the whole of it, or nothing.

    Parameters
    ----------
    path
        A zip or a tar, plain or compressed by gzip, bzip2 or xz.
    folder
        Must not exist; it appears when everything is written.
    limits
        What to accept.

    Returns
    -------
    int
        Number of files.
    """
    if folder.exists():
        raise DataError(f"folder: {folder} exists already; remove it to unpack {path.name} anew")
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=".tmp"))
    count = 0
    try:
        for name, stream in members(path, limits):
            place = temporary / name
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                with open(place, "xb") as file:
                    shutil.copyfileobj(stream, file, _PIECE)
            except (FileExistsError, NotADirectoryError) as error:
                raise _refuse(path, name, "there twice, or a file and a folder") from error
            count += 1
        temporary.chmod(0o755)
        os.replace(temporary, folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return count
