"""A damaged table is read, or refused with an error that names it; nothing else is raised."""

import bz2
import gzip
import io
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

from helpers.damage import Damage, damages
from vntransfer.errors import VnError
from vntransfer.relations import RelateSettings
from vntransfer.tables import read_frame
from vntransfer.tables.files import parquet_rows
from vntransfer.tables.frame import read_some
from vntransfer.tables.options import DEFAULTS
from vntransfer.workflows.relate import read_table

ROWS = 60
rng = np.random.default_rng(0)
TABLE = pa.table(
    {
        "town": pa.array(["Ärmel", "Bö", None] * (ROWS // 3)).dictionary_encode(),
        "size": rng.normal(size=ROWS),
        "rooms": pa.array([*range(ROWS - 1), None]),
        "sold": pa.array(np.arange(ROWS).astype("datetime64[D]")),
        "kind": pa.array(["flat", "house"] * (ROWS // 2)),
        "new": pa.array([True, None] * (ROWS // 2)),
        "price": pa.array(rng.normal(size=ROWS), pa.float32()),
    }
)
CSV = "town,size,rooms,price\n" + "".join(
    f'"Ä{i % 3}",{i / 7:.4f},{i},{i * 3 / 11:.3f}\n' for i in range(ROWS)
)


def parquet(**options: Any) -> bytes:
    box = io.BytesIO()
    pq.write_table(TABLE, box, row_group_size=20, **options)
    return box.getvalue()


FILES = {
    "plain.parquet": parquet(compression="none", use_dictionary=False),
    "snappy.parquet": parquet(),
    "zstd.parquet": parquet(compression="zstd", write_page_checksum=True),
    "a.csv": CSV.encode(),
    "a.csv.gz": gzip.compress(CSV.encode()),
    "a.csv.bz2": bz2.compress(CSV.encode()),
    "a.csv.zst": pa.compress(CSV.encode(), codec="zstd", asbytes=True),
}
RELATED = RelateSettings("town", "price")


@pytest.mark.parametrize("name", FILES)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=damages())
def test_damage_is_our_error(name: str, damage: Damage, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(damage(FILES[name]))
    readers = [
        lambda: read_frame(path),
        lambda: read_some([path], ["town", "price"], DEFAULTS, 10),
        lambda: read_table(path, RELATED),
    ]
    if path.suffix == ".parquet":
        readers.append(lambda: parquet_rows(path))
    for read in readers:
        with suppress(VnError):  # a damaged cell may still be a good one
            read()


def test_a_cut_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    for name, content in FILES.items():
        if name != "a.csv":  # what is left of a csv file is a csv file
            path = tmp_path / name
            path.write_bytes(content[:-20])
            with pytest.raises(VnError, match=rf"{name}: damaged .*fetch it again"):
                read_frame(path)
