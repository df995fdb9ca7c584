"""Large numeric csv files: parsed once, then memory-mapped."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from vntransfer.errors import DataError, damage_named
from vntransfer.tables.numbers import misfit, number_blocks
from vntransfer_lab.data.archives import archive_stem, members
from vntransfer_lab.data.derived import remembered

PARSER_VERSION = 2
BLOCK = 4 << 20
_ENDINGS = (".csv", ".txt", ".data")


def read_numbers(
    path: Path, *, columns: int, header: bool = False, dtype: DTypeLike = np.float64
) -> NDArray[Any]:
    """Numbers of a csv file, shape (rows, columns), as a read-only memory map.

    The file may be gzipped (.gz), in an archive, or in the folder that was unpacked from one; of
    those the first member that ends in .csv, .txt or .data is read. With ``header`` the first line
    holds names. A line that does not fit is an error that names file, line, column and value.
    """

    def parse() -> NDArray[Any]:
        with _open(path, columns, header) as (name, text):
            try:
                blocks = number_blocks(text, columns, block=BLOCK)
                return np.concatenate([block.astype(dtype) for block in blocks])
            except ValueError as error:  # pyarrow.ArrowInvalid is one
                refused = error
        with _open(path, columns, header) as (name, text):
            found = misfit(text, columns, first=1 + header, longest=16 * BLOCK)
        raise DataError(f"{name}: {found or f'cannot be read as numbers ({refused})'}")

    options = [PARSER_VERSION, columns, header, np.dtype(dtype).str]
    return remembered("parsed", path, options, parse)


@contextmanager
def _open(path: Path, columns: int, header: bool) -> Iterator[tuple[str, Any]]:
    """Name and stream of the first text in a file, archive or folder, behind its header."""
    with damage_named(path):
        for name, text in _texts(path):
            if header:
                names = text.readline(BLOCK).decode("utf-8", "replace").strip().split(",")
                if len(names) != columns:
                    raise DataError(
                        f"{name}: the header has {len(names)} names, expected {columns}"
                    )
            if not text.peek(1):
                raise DataError(f"{name}: has no rows; fetch it again")
            yield name, text
            return
    raise DataError(f"{path}: holds no file that ends in {', '.join(_ENDINGS)}; fetch it again")


def _texts(path: Path) -> Iterator[tuple[str, Any]]:
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.suffix.lower() in _ENDINGS:
                yield from _texts(file)
    elif archive_stem(path.name) is not None:
        for name, stream in members(path):
            if name.lower().endswith(_ENDINGS):
                yield f"{path}:{name}", stream
    else:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as text:
            yield str(path), text
