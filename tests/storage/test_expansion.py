"""Packed data that expands out of all proportion is refused before memory is filled."""

import gzip
import io
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from vntransfer import DataError
from vntransfer.storage import files
from vntransfer.storage.skops_files import (
    SCHEMA,
    need_skops,
    read_skops,
    unzipped,
    write_skops,
    zipped,
)
from vntransfer.tables.frame import read_frame
from vntransfer.tables.options import ReadOptions

SIZE = 32 * 2**20


@pytest.fixture(autouse=True)
def _little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "EXPANDED", 2**20)


def packed(data: bytes, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(zipfile.ZipInfo(SCHEMA), data, method)
    return out.getvalue()


def declared_small(data: bytes) -> bytes:
    """Give an archive that says that it expands to ten bytes."""
    return packed(data).replace(struct.pack("<L", len(data)), struct.pack("<L", 10))


@pytest.mark.parametrize(
    "pack",
    [packed, declared_small, lambda data: packed(data, zipfile.ZIP_BZIP2)],
    ids=["declared", "declared small", "bzip2"],
)
def test_archives_are_refused_unread(pack: Callable[[bytes], bytes]) -> None:
    content = pack(bytes(SIZE))
    need_skops()  # importing it takes memory, too
    tracemalloc.start()
    with pytest.raises(DataError, match="a skops file"):
        read_skops(content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < SIZE / 4


def test_models_of_many_zeros_come_back() -> None:
    model = LinearRegression()
    model.coef_, model.intercept_ = np.zeros(SIZE // 16), 1.0
    content = write_skops(model, "Line")
    assert unzipped(content).keys() == unzipped(zipped(unzipped(content))).keys()
    np.testing.assert_array_equal(read_skops(content).coef_, model.coef_)


@pytest.mark.parametrize("row", [b"1,2\n", b"1"], ids=["rows", "one line"])
@pytest.mark.parametrize("encoding", [None, "latin-1"])
def test_packed_tables_are_refused(row: bytes, encoding: str | None, tmp_path: Path) -> None:
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + row * (SIZE // 8), 9))
    with pytest.raises(DataError, match=r"table\.csv\.gz: expands to more than"):
        read_frame(path, options=ReadOptions(encoding=encoding))


def test_honest_packed_tables_are_read(tmp_path: Path) -> None:
    path = tmp_path / "table.csv.gz"
    numbers = np.random.default_rng(0).normal(size=60_000)
    path.write_bytes(gzip.compress("\n".join(["a", *map(repr, numbers.tolist())]).encode()))
    np.testing.assert_array_equal(read_frame(path).columns["a"].numbers(), numbers)
