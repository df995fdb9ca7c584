"""Large csv files of numbers alone, without names: converted by Arrow, block by block."""

import io
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from vntransfer.tables.csv_files import BLOCK


def number_blocks(
    source: io.BufferedIOBase, columns: int, *, block: int = BLOCK
) -> Iterator[NDArray[np.float64]]:
    r"""Give rows (n, columns), all finite, of each block of so many bytes; there is no header.

    A line that does not fit is a ValueError; `misfit` says which it is.

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
        read_options=arrow.ReadOptions(block_size=block, column_names=names),
        convert_options=arrow.ConvertOptions(
            column_types=dict.fromkeys(names, pyarrow.float64()), null_values=[]
        ),
    ) as reader:
        for batch in reader:
            rows = np.column_stack([cells.to_numpy() for cells in batch.columns])
            if not np.isfinite(rows).all():
                raise ValueError("a number is not finite")
            yield rows


def misfit(
    source: io.BufferedIOBase,
    columns: int,
    *,
    first: int = 1,
    longest: int = BLOCK,
) -> str | None:
    r"""Say which line of a csv file of numbers does not fit, and why; the first has a number.

    A line may have ``longest`` bytes.

    Examples
    --------
    >>> misfit(io.BytesIO(b"1,2\n3,x\n"), 2)
    "line 2, column 2: 'x' is not a finite number; fix or drop that line"
    """
    number = first - 1
    while line := source.readline(longest):
        number += 1
        if len(line) == longest:
            return f"line {number} never ends; not a csv file"
        cells = line.decode("ascii", "backslashreplace").strip().split(",")
        if cells == [""]:
            continue
        if len(cells) != columns:
            return f"line {number} has {len(cells)} columns, expected {columns}"
        for column, cell in enumerate(cells, start=1):
            if not _is_number(cell):
                return (
                    f"line {number}, column {column}: {cell[:40]!r} is not a finite number; fix "
                    f"or drop that line"
                )
    return None


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False
