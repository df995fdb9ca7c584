"""Large numeric csv files: parsed once in bounded memory, then memory-mapped."""

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from vntransfer.errors import DataError, VnError
from vntransfer.storage.files import atomic_write
from vntransfer.tables.numbers import misfit, number_blocks
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
    text = _Text(path, columns, header, delimiter)
    try:
        with atomic_write(place) as out:
            _write(text, out, np.dtype(dtype))
    except OSError as error:
        raise DataError(
            f"{place.parent}: cannot hold the parsed numbers ({error}); make room, or set "
            "VNT_CACHE to another folder"
        ) from error
    parsed = mapped(place)
    assert parsed is not None  # just written
    return parsed


@contextmanager
def _open(path: Path) -> Iterator[tuple[str, io.BufferedIOBase]]:
    """Name and bytes of the text in a file, archive or folder."""
    if path.is_dir():
        inside = sorted(p for p in path.rglob("*") if p.suffix.lower() in _ENDINGS)
        if not inside:
            raise _nothing(path)
        path = inside[0]
    if archive_stem(path.name) is not None:
        for name, stream in members(path):
            if name.lower().endswith(_ENDINGS):
                yield f"{path}:{name}", io.BufferedReader(cast(io.RawIOBase, stream))
                return
        raise _nothing(path)
    if path.suffix == ".gz":
        with gzip.open(path) as packed:
            yield str(path), packed
    else:
        with open(path, "rb") as plain:
            yield str(path), plain


def _nothing(path: Path) -> DataError:
    return DataError(f"{path}: holds no file that ends in {', '.join(_ENDINGS)}; fetch it again")


class _Text(NamedTuple):
    """Where numbers are written, and how."""

    path: Path
    columns: int
    header: bool
    delimiter: str

    def blocks(self) -> Iterator[NDArray[np.float64]]:
        """Give arrays (rows, columns); a line that does not fit is named."""
        with _open(self.path) as (name, stream):
            self._skip_header(name, stream)
            try:
                yield from number_blocks(
                    stream, self.columns, delimiter=self.delimiter, block=BLOCK
                )
                return
            except VnError:
                raise
            except (OSError, EOFError) as error:
                raise DataError(f"{name}: damaged file ({error}); fetch it again") from error
            except ValueError as error:  # pyarrow.ArrowInvalid is one
                why = f"cannot be read as numbers ({error})"
        with _open(self.path) as (name, stream):
            self._skip_header(name, stream)
            found = misfit(
                stream,
                self.columns,
                delimiter=self.delimiter,
                first=1 + self.header,
                longest=16 * BLOCK,
            )
        raise DataError(f"{name}: {found or why}")

    def _skip_header(self, name: str, stream: io.BufferedIOBase) -> None:
        if self.header:
            names = stream.readline(BLOCK).decode("utf-8", "replace").strip().split(self.delimiter)
            if len(names) != self.columns:
                raise DataError(
                    f"{name}: the header has {len(names)} names, expected {self.columns}"
                )
        if not stream.peek(1):  # type: ignore[attr-defined]
            raise DataError(f"{name}: has no rows; fetch it again")


def _write(text: _Text, out: IO[bytes], dtype: np.dtype[Any]) -> None:
    """Append the blocks as one ``.npy`` array whose header is completed at the end."""
    start = _write_header(out, dtype, (0, text.columns))
    rows = 0
    for block in text.blocks():
        out.write(np.ascontiguousarray(block, dtype=dtype).data)
        rows += len(block)
    out.seek(0)
    if _write_header(out, dtype, (rows, text.columns)) != start:
        raise DataError(f"{text.path}: {rows} rows are too many for one array")


def _write_header(out: IO[bytes], dtype: np.dtype[Any], shape: tuple[int, int]) -> int:
    """Write the header (numpy leaves room for the rows to grow); return where the data start."""
    described = {
        "descr": np.lib.format.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": shape,
    }
    np.lib.format.write_array_header_1_0(out, described)
    return out.tell()
