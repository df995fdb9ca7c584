"""Safe reading of zip and tar.gz archives: nothing outside the folder, no links, no bombs."""

import gzip
import io
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
from typing import IO, Any

from vntransfer.errors import DataError

SUFFIXES = (".zip", ".tar.gz", ".tgz")
_PIECE = 1 << 20
_DAMAGE: tuple[type[Exception], ...] = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
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


class _Meter:
    """Counts members and unpacked bytes, and stops a bomb while it unfolds."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self.path, self.members, self.bytes = path, limits.members, 0
        self.packed = max(path.stat().st_size, 1)
        self.most = min(limits.total, max(limits.ratio * self.packed, limits.ratio_from))

    def add_bytes(self, count: int) -> None:
        self.bytes += count
        if self.bytes > self.most:
            raise DataError(
                f"{self.path}: unpacks to more than {self.bytes - count} bytes from {self.packed}: "
                "a decompression bomb or a damaged file; fetch it from the official address"
            )

    def add_member(self) -> None:
        self.members -= 1
        if self.members < 0:
            raise DataError(
                f"{self.path}: has too many members; fetch it from the official address"
            )


@contextmanager
def _damage_named(path: Path, *more: type[Exception]) -> Iterator[None]:
    try:
        yield
    except _DAMAGE + more as error:
        raise DataError(f"{path}: damaged archive ({error}); fetch it again") from error


class _Counted(io.RawIOBase):
    """Stream whose bytes are counted and whose errors are ours; a read gives at most a piece."""

    def __init__(self, source: Any, meter: _Meter, *, count: bool = True) -> None:
        self._source, self._meter, self._count = source, meter, count

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with _damage_named(self._meter.path, OSError):  # gzip raises it
            piece = self._source.read(min(len(buffer), _PIECE))
        self._meter.add_bytes(len(piece) if self._count else 0)
        buffer[: len(piece)] = piece
        return len(piece)


def _refuse(path: Path, name: str, what: str) -> DataError:
    return DataError(f"{path}: member {name!r} {what}; fetch it from the official address")


def _safe_name(path: Path, name: str) -> str:
    """Return the member's relative name, or refuse it."""
    pure = PurePosixPath(name)
    leaves = pure.is_absolute() or ".." in pure.parts or any(sign in name for sign in "\\:\0")
    if leaves or not pure.parts:
        raise _refuse(path, name, "would be written outside the folder")
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
    with _damage_named(path):
        if zipfile.is_zipfile(path):
            yield from _zip_members(path, meter)
        else:
            yield from _tar_members(path, meter)


def _zip_members(path: Path, meter: _Meter) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(path) as box:
        for info in box.infolist():
            meter.add_member()
            name = _safe_name(path, info.filename)
            if info.is_dir():
                continue
            if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
                raise _refuse(path, name, "is a link or a device")
            with box.open(info) as stream:
                yield name, io.BufferedReader(_Counted(stream, meter))


def _tar_members(path: Path, meter: _Meter) -> Iterator[tuple[str, IO[bytes]]]:
    with gzip.open(path) as plain, io.BufferedReader(_Counted(plain, meter)) as counted:
        with tarfile.open(fileobj=counted, mode="r|") as tape:
            for member in tape:
                meter.add_member()
                if member.isdir() and not PurePosixPath(member.name).parts:
                    continue
                name = _safe_name(path, member.name)
                if member.isdir():
                    continue
                if not member.isreg():
                    raise _refuse(path, name, "is a link or a device")
                stream = tape.extractfile(member)
                assert stream is not None  # regular files have content
                yield name, io.BufferedReader(_Counted(stream, meter, count=False))
        while counted.read(_PIECE):  # to the end: the checksum of the compression comes last
            pass


def read_members(path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of the wanted regular files of a folder, a zip or a tar.gz.

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


def check_whole(path: Path, limits: Limits = DEFAULT_LIMITS) -> None:
    """Read an archive or a .gz file to its end, as what its name says, without writing anything.

    This is all that can be checked of a download whose hash is not known.
    """
    if archive_stem(path.name) is not None:
        count = 0
        for _, stream in members(path, limits):
            count += 1
            while stream.read(_PIECE):
                pass
        if not count:
            raise DataError(f"{path}: holds no files; fetch it again")
    elif path.name.lower().endswith(".gz"):
        with _damage_named(path, OSError), gzip.open(path) as file:
            while file.read(_PIECE):
                pass


def unpack(path: Path, folder: Path, limits: Limits = DEFAULT_LIMITS) -> None:
    """Unpack an archive into a new folder: the whole of it, or nothing.

    Parameters
    ----------
    path
        A zip or a tar.gz.
    folder
        Must not exist; it appears when everything is written.
    limits
        What to accept.
    """
    if folder.exists():
        raise DataError(f"folder: {folder} exists; remove it to unpack {path.name} again")
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=".tmp"))
    try:
        for name, stream in members(path, limits):
            place = temporary / name
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                with open(place, "xb") as file:
                    shutil.copyfileobj(stream, file, _PIECE)
            except (FileExistsError, NotADirectoryError) as error:
                raise _refuse(path, name, "is there twice, or a file and a folder") from error
        temporary.chmod(0o755)
        temporary.rename(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
