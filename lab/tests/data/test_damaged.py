"""Damaged data files are read, or refused with an error that names them; nothing else is raised."""

import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from helpers.damage import Damage, damages
from vntransfer.errors import DataError, VnError
from vntransfer_lab.data.archives import check_whole, read_members
from vntransfer_lab.data.numeric_csv import read_numbers
from vntransfer_lab.data.picture_sets import read_idx, read_pictures
from vntransfer_lab.data.tabular import TABLES

CSV = "".join(f"{i},{i / 3:.3f},{i * i}\n" for i in range(60)).encode()


def packed_zip(method: int) -> bytes:
    box = io.BytesIO()
    with zipfile.ZipFile(box, "w", method) as archive:
        for name in ("d/ä.csv", "b.csv"):
            archive.writestr(name, CSV)
    return box.getvalue()


def packed_tar() -> bytes:
    box = io.BytesIO()
    with tarfile.open(fileobj=box, mode="w", format=tarfile.PAX_FORMAT) as tape:
        for name in ("d/ä.csv", f"{'b' * 120}.csv"):
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(CSV), 1.5
            tape.addfile(info, io.BytesIO(CSV))
    return box.getvalue()


def packed_arrays() -> bytes:
    box = io.BytesIO()
    np.savez_compressed(box, X=np.ones((20, 8)), y=np.ones(20))
    return box.getvalue()


TAR = packed_tar()
FILES = {
    "deflated.zip": packed_zip(zipfile.ZIP_DEFLATED),
    "stored.zip": packed_zip(zipfile.ZIP_STORED),
    "lzma.zip": packed_zip(zipfile.ZIP_LZMA),
    "a.tar.gz": gzip.compress(TAR),
    "a.csv.gz": gzip.compress(CSV),
    "a.npz": packed_arrays(),
    "letters.npz": packed_arrays(),
    "a-ubyte.gz": gzip.compress(bytes([0, 0, 8, 1, 0, 0, 0, 90, *range(90)])),
}


def readers(path: Path) -> list[Callable[[], Any]]:
    if path.name == "letters.npz":
        return [lambda: read_pictures({"notMNIST_small.tar.gz": path})]
    if path.suffix == ".npz":
        return [lambda: TABLES["bank8FM"].read(path)]
    if "ubyte" in path.name:
        return [lambda: read_idx(path)]
    every = [lambda: check_whole(path), lambda: read_numbers(path, columns=3)]
    return every if ".csv" in path.name else [*every, lambda: list(read_members(path, bool))]


def read_all(path: Path) -> None:
    for read in readers(path):
        with suppress(VnError):
            read()


@pytest.mark.parametrize("name", FILES)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=damages())
def test_damage_is_our_error(name: str, damage: Damage, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(damage(FILES[name]))
    read_all(path)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=damages())
def test_damage_inside_a_good_wrapping_is_our_error(damage: Damage, tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    path.write_bytes(gzip.compress(damage(TAR), 1))
    read_all(path)


def test_a_cut_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    for name, content in FILES.items():
        path = tmp_path / name
        path.write_bytes(content[: len(content) // 2])
        for read in readers(path):
            with pytest.raises(DataError, match=rf"{name}: .*fetch it again"):
                read()
