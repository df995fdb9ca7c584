"""Large numeric csv files: parsed once, then memory-mapped."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from vntransfer.errors import DataError, damage_named
from vntransfer.tables.csv_files import number_blocks
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
    holds names.
    """

    def parse() -> NDArray[Any]:
        with damage_named(path, "file of numbers"):
            for text in _texts(path):
                blocks = number_blocks(text, columns, header=header, block=BLOCK)
                return np.concatenate([block.astype(dtype) for block in blocks])
            raise DataError(f"{path}: holds no file that ends in {', '.join(_ENDINGS)}")

    options = [PARSER_VERSION, columns, header, np.dtype(dtype).str]
    return remembered("parsed", path, options, parse)


def _texts(path: Path) -> Iterator[Any]:
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.suffix.lower() in _ENDINGS:
                yield from _texts(file)
    elif archive_stem(path.name) is not None:
        for name, stream in members(path):
            if name.lower().endswith(_ENDINGS):
                yield stream
    else:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as text:
            yield text
