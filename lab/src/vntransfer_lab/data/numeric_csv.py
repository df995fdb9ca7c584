"""Large numeric csv files: parsed once in bounded memory, then memory-mapped."""

import gzip
import io
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from vntransfer.errors import DataError
from vntransfer.progress import report
from vntransfer.storage.files import atomic_write
from vntransfer_lab.data.archives import archive_stem, members
from vntransfer_lab.data.derived import derived_path, mapped

PARSER_VERSION = 1
BLOCK = 4 << 20
_ENDINGS = (".csv", ".txt", ".data")


def read_numbers(
    path: Path,
    *,
    columns: int,
    header: bool = False,
    delimiter: str = ",",
    dtype: DTypeLike = np.float64,
) -> NDArray[Any]:
    r"""Numbers of a csv file as a read-only memory map, shape (rows, columns).

    Parameters
    ----------
    path
        The file itself, gzipped (.gz), in an archive, or in the folder that was unpacked from
        one; of those the first member that ends in .csv, .txt or .data.
    columns
        How many numbers each line has.
    header
        Whether the first line holds names.
    delimiter
        Between the numbers.
    dtype
        Of the result.

    Raises
    ------
    DataError
        For a line that does not fit: names file, line, column and value. Nothing is kept.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.csv").write_text("1,2\n3,4.5\n")
    >>> read_numbers(folder / "a.csv", columns=2)
    memmap([[1. , 2. ],
            [3. , 4.5]])
    """
    options = [PARSER_VERSION, columns, header, delimiter, np.dtype(dtype).str]
    place = derived_path("parsed", path, options)
    if (parsed := mapped(place)) is not None:
        return parsed
    with _open(path) as (name, stream, total):
        reader = _Reader(name, stream, columns, header, delimiter, np.dtype(dtype))
        try:
            with atomic_write(place) as out:
                _write(reader, out, total)
        except OSError as error:
            raise DataError(
                f"{place.parent}: cannot hold the parsed numbers ({error}); make room, or set "
                "VNT_CACHE to another folder"
            ) from error
    parsed = mapped(place)
    assert parsed is not None  # just written
    return parsed


@contextmanager
def _open(path: Path) -> Iterator[tuple[str, IO[bytes], int | None]]:
    """Name, bytes and size (if known) of the text in a file, archive or folder."""
    if path.is_dir():
        inside = sorted(p for p in path.rglob("*") if p.suffix.lower() in _ENDINGS)
        if not inside:
            raise _nothing(path)
        path = inside[0]
    if archive_stem(path.name) is not None:
        for name, stream in members(path):
            if name.lower().endswith(_ENDINGS):
                yield f"{path}:{name}", stream, None
                return
        raise _nothing(path)
    if path.suffix == ".gz":
        with gzip.open(path) as packed:
            yield str(path), io.BufferedReader(packed), None
    else:
        with open(path, "rb") as plain:
            yield str(path), plain, path.stat().st_size


def _nothing(path: Path) -> DataError:
    return DataError(f"{path}: holds no file that ends in {', '.join(_ENDINGS)}; fetch it again")


class _Reader:
    """Blocks of parsed rows of one stream."""

    def __init__(
        self,
        name: str,
        stream: IO[bytes],
        columns: int,
        header: bool,
        delimiter: str,
        dtype: np.dtype[Any],
    ) -> None:
        self.name, self.stream, self.columns = name, stream, columns
        self.header, self.delimiter, self.dtype = header, delimiter, dtype
        self.line, self.bytes = 1, 0

    def blocks(self) -> Iterator[NDArray[Any]]:
        """Yield arrays (rows, columns) of whole lines, about `BLOCK` bytes of text each."""
        rest = b""
        if self.header:
            first = self.stream.readline(BLOCK)
            names = first.decode("utf-8", "replace").strip().split(self.delimiter)
            if len(names) != self.columns:
                raise DataError(
                    f"{self.name}: the header has {len(names)} names, expected {self.columns}"
                )
            self.line, self.bytes = 2, len(first)
        while piece := self._read():
            self.bytes += len(piece)
            whole, newline, rest = (rest + piece).rpartition(b"\n")
            if not newline and len(rest) > 16 * BLOCK:
                raise DataError(f"{self.name}: line {self.line} never ends; not a csv file")
            if newline:
                yield self._parse(whole)
        if rest.strip():
            yield self._parse(rest)

    def _read(self) -> bytes:
        try:
            return self.stream.read(BLOCK)
        except (OSError, EOFError) as error:
            raise DataError(f"{self.name}: damaged file ({error}); fetch it again") from error

    def _parse(self, block: bytes) -> NDArray[Any]:
        try:
            text = io.StringIO(block.decode("ascii"))
            rows = np.loadtxt(text, self.dtype, comments=None, delimiter=self.delimiter, ndmin=2)
        except ValueError:  # UnicodeDecodeError is one
            raise self._diagnose(block) from None
        if rows.shape[1] != self.columns or not np.isfinite(rows).all():
            raise self._diagnose(block)
        self.line += block.count(b"\n") + 1
        return rows

    def _diagnose(self, block: bytes) -> DataError:
        """Find the first line of a block that does not fit."""
        for at, line in enumerate(block.split(b"\n"), start=self.line):
            cells = line.decode("ascii", "backslashreplace").strip().split(self.delimiter)
            if cells == [""]:
                continue
            if len(cells) != self.columns:
                return DataError(
                    f"{self.name}: line {at} has {len(cells)} columns, expected {self.columns}"
                )
            for column, cell in enumerate(cells, start=1):
                if not _is_number(cell):
                    return DataError(
                        f"{self.name}: line {at}, column {column}: {cell[:40]!r} is not a finite "
                        "number; mend or drop that line"
                    )
        return DataError(f"{self.name}: lines from {self.line} on cannot be read as numbers")


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def _write(reader: _Reader, out: IO[bytes], total: int | None) -> None:
    """Append the blocks as one ``.npy`` array whose header is completed at the end."""
    rows = 0
    start = _write_header(out, reader, rows)
    for block in reader.blocks():
        out.write(np.ascontiguousarray(block).data)
        rows += len(block)
        report(Path(reader.name).name, reader.bytes, total)
    if not rows:
        raise DataError(f"{reader.name}: has no rows; fetch it again")
    out.seek(0)
    if _write_header(out, reader, rows) != start:
        raise DataError(f"{reader.name}: {rows} rows are too many for one array")


def _write_header(out: IO[bytes], reader: _Reader, rows: int) -> int:
    """Write the header (numpy leaves room for the rows to grow); return where the data start."""
    described = {
        "descr": np.lib.format.dtype_to_descr(reader.dtype),
        "fortran_order": False,
        "shape": (rows, reader.columns),
    }
    np.lib.format.write_array_header_1_0(out, described)
    return out.tell()
