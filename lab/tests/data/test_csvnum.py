"""Numeric csv files in every wrapping, damaged in every way."""

import gzip
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from vntransfer.errors import DataError
from vntransfer_lab.data import numeric_csv as csvnum
from vntransfer_lab.data.numeric_csv import read_numbers

ROWS = np.random.default_rng(0).normal(size=(500, 4)).round(5)


def text(rows: np.ndarray = ROWS, end: str = "\n") -> bytes:
    return "".join(",".join(f"{v:.5f}" for v in row) + end for row in rows).encode()


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VNT_CACHE", str(tmp_path / "derived"))
    monkeypatch.setattr(csvnum, "BLOCK", 1000)


def kept(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "derived" / "parsed").glob("*"))


def test_every_wrapping_gives_the_same_numbers(tmp_path: Path) -> None:
    plain = tmp_path / "a.txt"
    plain.write_bytes(text())
    packed = tmp_path / "a.csv.gz"
    packed.write_bytes(gzip.compress(text()))
    box = tmp_path / "a.txt.zip"
    with zipfile.ZipFile(box, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("readme.md", "no data")
        archive.writestr("a.txt", text())
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "a.csv").write_bytes(text(end="\r\n"))
    for path in (plain, packed, box, folder):
        np.testing.assert_array_equal(read_numbers(path, columns=4), ROWS)


@pytest.mark.parametrize("ending", [b"", b"\n", b"\n\n"])
def test_last_line_may_end_anyhow(tmp_path: Path, ending: bytes) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(text().rstrip() + ending)
    assert read_numbers(path, columns=4).shape == ROWS.shape


def test_second_load_reads_the_binary_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"w,x,y,z\n" + text())
    first = read_numbers(path, columns=4, header=True, dtype=np.float32)
    assert isinstance(first, np.memmap)
    assert not first.flags.writeable
    monkeypatch.setattr(csvnum, "number_blocks", None)
    again = read_numbers(path, columns=4, header=True, dtype=np.float32)
    np.testing.assert_array_equal(first, again)
    assert again.dtype == np.float32
    assert len(kept(tmp_path)) == 1


def test_a_changed_source_is_parsed_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(text())
    read_numbers(path, columns=4)
    path.write_bytes(text(ROWS[::-1]))
    np.testing.assert_array_equal(read_numbers(path, columns=4), ROWS[::-1])


def test_a_damaged_binary_form_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(text())
    read_numbers(path, columns=4)
    (place,) = kept(tmp_path)
    place.write_bytes(place.read_bytes()[:100])
    np.testing.assert_array_equal(read_numbers(path, columns=4), ROWS)


def test_a_cache_that_cannot_be_written_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(text())
    monkeypatch.setenv("VNT_CACHE", str(path))
    np.testing.assert_array_equal(read_numbers(path, columns=4), ROWS)


@pytest.mark.parametrize(
    "line",
    [b"1,2,3", b"1,2,3,4,5", b"1,2,x,4", b"1,,3,4", b"1,nan,3,4", b"1,2,3,-inf", b"1,2,3,\xe9",
     b"\x00\x01,2,3,4", b"1,2,3\n1,2,3,4,5", b"1" * 30_000],
)  # fmt: skip
def test_a_bad_line_is_refused_and_nothing_kept(tmp_path: Path, line: bytes) -> None:
    lines = text().splitlines()
    path = tmp_path / "a.csv"
    path.write_bytes(b"\n".join([*lines[:200], line, *lines[200:]]))
    with pytest.raises(DataError, match=r"a\.csv: damaged"):
        read_numbers(path, columns=4)
    assert kept(tmp_path) == []


@pytest.mark.parametrize(
    ("content", "header"),
    [(b"", False), (b"a,b,c,d\n", True), (b"a,b,c,d\n1,2,3,4\n", False)],
)
def test_bad_files_are_refused(tmp_path: Path, content: bytes, header: bool) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.csv: damaged"):
        read_numbers(path, columns=4, header=header)
    assert kept(tmp_path) == []


def test_wrappings_without_text_or_damaged(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("picture.png", b"1")
    (tmp_path / "b").mkdir()
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(text())[:-300])
    for name, match in (("a.zip", "holds no file"), ("b", "holds no"), ("c.csv.gz", "damaged")):
        with pytest.raises(DataError, match=match):
            read_numbers(tmp_path / name, columns=4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    arrays(
        np.float64,
        st.tuples(st.integers(1, 40), st.integers(1, 5)),
        elements=st.floats(allow_nan=False, allow_infinity=False),
    )
)
def test_numbers_come_back_exactly(tmp_path: Path, rows: np.ndarray) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\n".join(",".join(repr(float(v)) for v in row) for row in rows))
    np.testing.assert_array_equal(read_numbers(path, columns=rows.shape[1]), rows)
