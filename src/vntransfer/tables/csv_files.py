"""Read csv files once, with Arrow; if Arrow fails, Python's csv module locates the error."""

import codecs
import csv
import hashlib
import io
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vntransfer.errors import DataError, VnError, damage_named
from vntransfer.storage.files import most_expanded
from vntransfer.tables.columns import Frame, text_column
from vntransfer.tables.options import DELIMITERS, ReadOptions, detect

BLOCK = 2 * 2**20
"""Bytes per batch of numbers; of texts, which take more memory, half as many. Arrow reads many
batches ahead: with 16 MiB each they alone hold half a GB."""

SAMPLE = 2**16
"""Bytes from which delimiter and decimal mark are detected."""

PACKED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
"""Endings of packed files, and how they are packed."""

_LONGEST = 16 * BLOCK
_ESCAPED = re.compile("[\udc80-\udcff]")
"""Bytes that are not text, as ``surrogateescape`` hands them on."""


class _Watched:
    """A stream that shows every piece that is read to a function."""

    closed = False

    def __init__(self, stream: Any, watch: Callable[[bytes], None]) -> None:
        self.stream, self.watch = stream, watch

    def read(self, size: int) -> bytes:
        piece: bytes = self.stream.read(size)
        self.watch(piece)
        return piece

    def close(self) -> None:
        self.stream.close()


class _Utf8:
    """The text of a file as UTF-8.

    ``doubtful`` if it has quotes other than around whole cells: Arrow reads them too kindly, so
    that Python's strict reader has to agree.
    """

    closed = False

    def __init__(self, source: Any) -> None:
        self.source = source
        self.quotes, self.doubtful = 0, False
        self.pending = self.unfinished = b""
        while len(self.pending) < SAMPLE or not re.search(b"[\r\n]", self.pending[-SAMPLE:]):
            piece = source.read(SAMPLE)
            self.pending += piece
            if not piece or len(self.pending) > _LONGEST:
                break
        self.sample = self.pending

    def expect(self, delimiter: str) -> None:
        """Watch for quotes that neither begin nor end a cell."""
        self.ends_cell = np.zeros(256, dtype=bool)
        self.ends_cell[list(b"\r\n" + delimiter.encode())] = True

    def read(self, size: int) -> bytes:
        data = self.pending
        while len(data) < size and (more := self.source.read(size - len(data))):
            data += more
        piece, self.pending = data[:size], data[size:]
        self.quotes += piece.count(b'"')
        if not self.doubtful and b'"' in (seen := self.unfinished + piece):
            rest = self._open_cell(seen)
            self.doubtful = rest is None
            self.unfinished = seen[rest:]  # a field may continue in the next piece
        if not piece:
            self.doubtful = self.doubtful or self.quotes % 2 == 1
        return piece

    def _open_cell(self, seen: bytes) -> int | None:
        """Find where a quoted cell begins that continues after these bytes, or else their end.

        None if quotes are not only the first and last bytes of cells.
        """
        values = np.frombuffer(seen, np.uint8)
        at = np.flatnonzero(values == ord('"'))
        opening, closing, rest = at[::2], at[1::2], len(values)
        if len(closing) and closing[-1] + 1 == rest:  # it may be the first of two
            closing, rest = closing[:-1], max(0, int(opening[-1]) - 1)
        elif len(opening) > len(closing):
            rest = max(0, int(opening[-1]) - 1)
        before = opening[opening > 0] - 1
        plain = self.ends_cell[values[before]].all() and self.ends_cell[values[closing + 1]].all()
        return rest if plain else None


class CsvFile:
    """A csv file that is open: its columns, how it is written, its rows."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self.path, self.options = path, options
        self.digest = hashlib.sha256()
        self.raw = _Watched(path.open("rb"), self.digest.update)
        try:
            with self._refusals():
                self.text = _Utf8(_decoded(_unpacked(self.raw, path), options.encoding))
                self.names = self._header()
        except BaseException:
            self.close()
            raise
        assert self.options.delimiter is not None
        self.text.expect(self.options.delimiter)
        self.empty_rows = 0

    def close(self) -> None:
        """Close the file."""
        self.raw.close()

    def sha256(self) -> str:
        """Read what is left, and give the hash of the whole file."""
        while self.raw.read(BLOCK):
            pass
        return self.digest.hexdigest()

    def frames(
        self, columns: Sequence[str], size: int, copied: Collection[str] = ()
    ) -> Iterator[Frame]:
        """Give columns of texts, ``size`` rows at a time; empty rows are left out.

        Rows are empty if all ``columns`` are: blank lines, and lines of delimiters alone, which
        spreadsheets write.
        """
        for rows, table in _resized(self._batches(columns), size):
            cells = {name: table.column(name).combine_chunks() for name in columns}
            made = {name: text_column(own, self.options) for name, own in cells.items()}
            yield Frame(made, rows.tolist(), str(self.path), self.options)

    def _batches(self, columns: Sequence[str]) -> Iterator[tuple[NDArray[np.int64], Any]]:
        import pyarrow as pa
        import pyarrow.compute as pc

        if not self._has_rows():
            return
        types = dict.fromkeys(columns, pa.large_string())
        row = 2
        with self._refusals():
            for batch in self._arrow(types, nulls=("",), texts=True):
                rows = np.arange(row, row := row + batch.num_rows)
                full = np.zeros(batch.num_rows, dtype=bool)
                for cells in batch.columns:
                    full |= pc.is_valid(cells).to_numpy(zero_copy_only=False)
                if not full.all():
                    self.empty_rows += int((~full).sum())
                    rows, batch = rows[full], batch.filter(pa.array(full))
                yield rows, batch
        self._check_quotes()

    def number_batches(self, columns: Mapping[str, Any], missing: Sequence[str]) -> Iterator[Any]:
        """Give batches of columns that Arrow converts to these types; it raises if one does not."""
        if self._has_rows():
            yield from self._arrow(columns, nulls=missing, texts=False)
            self._check_quotes()

    def _arrow(
        self, types: Mapping[str, Any], *, nulls: Sequence[str], texts: bool
    ) -> Iterator[Any]:
        import pyarrow.csv as arrow

        with arrow.open_csv(
            self.text,
            read_options=arrow.ReadOptions(
                block_size=BLOCK // 2 if texts else BLOCK,
                column_names=self.names,
                skip_rows_after_names=1,
            ),
            parse_options=arrow.ParseOptions(
                delimiter=self.options.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=not texts,
            ),
            convert_options=arrow.ConvertOptions(
                column_types=types,
                include_columns=list(types),
                null_values=list(nulls),
                strings_can_be_null=texts,
                quoted_strings_can_be_null=not texts,
                decimal_point=self.options.decimal or ".",
            ),
        ) as reader:
            yield from reader

    def _check_quotes(self) -> None:
        """Raise where Python's reader refuses quotes that Arrow has read somehow."""
        if self.text.doubtful and (error := _diagnosis(self.path, self.options, len(self.names))):
            raise error

    def _has_rows(self) -> bool:
        """Whether there is a line after the header, without which Arrow refuses to begin."""
        return len(self.lines) > 1 or len(self.text.sample) >= SAMPLE

    def _header(self) -> list[str]:
        """Name the columns, after delimiter and decimal mark are detected."""
        sample, whole = self.text.sample, len(self.text.sample) < SAMPLE
        if not sample:
            raise DataError(f"{self.path}: is empty; expected a line with the names of the columns")
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(sample, whole)
        self.lines = list(io.StringIO(text, newline=""))
        full = self.lines if whole or len(self.lines) == 1 else self.lines[:-1]
        given = self.options.delimiter
        self.options, self.notes = detect(full, self.options)
        delimiter = self.options.delimiter or ","
        first = next(csv.reader(full, delimiter=delimiter, strict=True))
        if not first:
            raise DataError(
                f"{self.path}: begins with an empty line; expected a line with the names of the "
                f"columns"
            )
        names = [name.strip() for name in first]
        other = max(DELIMITERS, key=names[0].count)
        if given is not None and len(names) == 1 and other in names[0]:
            raise DataError(
                f"{self.path}: the header is one cell, {names[0][:60]!r}; is {other!r} the "
                f"delimiter, not {delimiter!r}?"
            )
        return names

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Find out why a file was refused: what is wrong, and where."""
        import pyarrow

        try:
            yield
        except VnError:
            raise
        except Exception as error:
            packed = PACKED.get(self.path.suffix.lower())
            with damage_named(self.path, f"{packed or 'csv'} file"):
                if isinstance(error, pyarrow.ArrowInvalid | UnicodeError | csv.Error):
                    width = len(getattr(self, "names", ()))
                    told = _diagnosis(self.path, self.options, width)
                    if told is None and packed is None:  # what Arrow cannot read is not damaged
                        told = DataError(f"{self.path}: cannot be read as csv ({error})")
                    raise told or error from None
                raise


def _unpacked(raw: Any, path: Path) -> Any:
    import pyarrow

    packed = PACKED.get(path.suffix.lower())
    stream = pyarrow.input_stream(raw, compression=packed)
    if packed is None:
        return stream
    left = most = most_expanded(path.stat().st_size)

    def check(piece: bytes) -> None:
        nonlocal left
        left -= len(piece)
        if left < 0:
            raise DataError(
                f"{path}: expands to more than {most >> 20} MiB, which is too much for its size; "
                f"unpack it yourself if you trust it"
            )

    return pyarrow.PythonFile(_Watched(stream, check), "r")


def _decoded(stream: Any, encoding: str | None) -> Any:
    import pyarrow

    if encoding is None:
        return stream  # Arrow checks that it is UTF-8
    return pyarrow.transcoding_input_stream(stream, encoding, "utf-8")


def _resized(batches: Iterator[tuple[Any, Any]], size: int) -> Iterator[tuple[Any, Any]]:
    """Cut and join batches so that all but the last have ``size`` rows."""
    import pyarrow as pa

    rows, table = np.zeros(0, np.int64), None
    for more, batch in batches:
        part = pa.Table.from_batches([batch])
        rows = np.concatenate((rows, more))
        table = part if table is None else pa.concat_tables((table, part))
        while len(rows) >= size:
            yield rows[:size], table.slice(0, size)
            rows, table = rows[size:], table.slice(size)
    if len(rows):
        yield rows, table


def _diagnosis(path: Path, options: ReadOptions, width: int) -> DataError | None:
    """Read a file row by row until something is wrong with it."""
    encoding = options.encoding or "utf-8-sig"
    delimiter = options.delimiter or ","
    with path.open("rb") as raw:
        text = io.TextIOWrapper(
            _unpacked(raw, path), encoding=encoding, errors="surrogateescape", newline=""
        )
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        try:
            for row, line in enumerate(reader, start=1):
                if found := _ESCAPED.search("".join(line)):
                    return DataError(
                        f"{path}: not {options.encoding or 'UTF-8'} text (byte "
                        f"{ord(found[0]) - 0xDC00:#04x} in row {row}); save it as UTF-8, or name "
                        f"its encoding with --encoding (such as latin-1)"
                    )
                if width and line and len(line) != width:
                    return DataError(
                        f"{path}: row {row} has {len(line)} cells, the header {width}; is "
                        f"{delimiter!r} the delimiter?"
                    )
        except UnicodeError as error:  # such as UTF-16 without a byte order mark
            return DataError(f"{path}: not {encoding} text ({error}); name another --encoding")
        except csv.Error as error:
            return DataError(f"{path}: malformed csv near row {reader.line_num}: {error}")
    return None


def number_blocks(
    source: io.BufferedIOBase, columns: int, *, header: bool = False, block: int = BLOCK
) -> Iterator[NDArray[np.float64]]:
    r"""Give rows (n, columns), all finite, of each block of so many bytes.

    A line that does not fit is a ValueError; with ``header`` the first one holds names.

    Examples
    --------
    >>> list(number_blocks(io.BytesIO(b"1,2\n3,4.5\n"), 2))
    [array([[1. , 2. ],
           [3. , 4.5]])]
    """
    import pyarrow
    import pyarrow.csv as arrow

    names = [str(i) for i in range(columns)]
    with arrow.open_csv(
        source,
        read_options=arrow.ReadOptions(block_size=block, column_names=names, skip_rows=int(header)),
        convert_options=arrow.ConvertOptions(
            column_types=dict.fromkeys(names, pyarrow.float64()), null_values=[]
        ),
    ) as reader:
        for batch in reader:
            rows = np.column_stack([cells.to_numpy() for cells in batch.columns])
            if not np.isfinite(rows).all():
                raise ValueError("a number is not finite")
            yield rows
