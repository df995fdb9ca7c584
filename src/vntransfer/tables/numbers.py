"""Large csv files of numbers alone: converted by Arrow, block by block."""

import io
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from vntransfer.tables.csv_files import BLOCK


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
