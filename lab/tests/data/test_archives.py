"""Hostile and damaged archives leave nothing behind."""

import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from vntransfer.errors import DataError
from vntransfer_lab.data.archives import Limits, archive_stem, check_whole, members, unpack

SMALL = Limits(members=5, total=1 << 20, ratio=20, ratio_from=1 << 16)


def make_zip(path: Path, content: dict[str, bytes], mode: int = 0) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as box:
        for name, data in content.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = mode << 16
            box.writestr(info, data)
    return path


def make_tar(path: Path, *items: tarfile.TarInfo | tuple[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as tape:
        for item in items:
            if isinstance(item, tarfile.TarInfo):
                tape.addfile(item)
            else:
                info = tarfile.TarInfo(item[0])
                info.size = len(item[1])
                tape.addfile(info, io.BytesIO(item[1]))
    return path


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def refused(archive: Path, match: str, limits: Limits = SMALL) -> None:
    folder = archive.parent / "out"
    before = sorted(archive.parent.rglob("*"))
    with pytest.raises(DataError, match=match):
        unpack(archive, folder, limits)
    assert sorted(archive.parent.rglob("*")) == before
    with pytest.raises(DataError, match=match):
        check_whole(archive, limits)


def test_tar_is_unpacked_whole(tmp_path: Path) -> None:
    path = make_tar(
        tmp_path / "a.tar.gz",
        special("./", tarfile.DIRTYPE),
        special("d", tarfile.DIRTYPE),
        ("d/x.txt", b"x" * 5000),
        ("./y", b""),
    )
    unpack(path, tmp_path / "out")
    assert (tmp_path / "out/d/x.txt").read_bytes() == b"x" * 5000
    assert (tmp_path / "out/y").read_bytes() == b""
    check_whole(path)


def test_zip_is_unpacked_whole(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "a.zip", {"d/": b"", "d/x": b"1", "y": b"2"})
    unpack(path, tmp_path / "new" / "out")
    assert (tmp_path / "new/out/d/x").read_bytes() == b"1"
    with pytest.raises(DataError, match="exists"):
        unpack(path, tmp_path / "new" / "out")


@pytest.mark.parametrize(
    "name", ["/etc/x", "../x", "a/../../x", "..", "C:/x", "a\\..\\..\\x", "//server/x"]
)
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_names_that_leave_the_folder_are_refused(tmp_path: Path, name: str, kind: str) -> None:
    if kind == "zip":
        path = make_zip(tmp_path / "a.zip", {"good": b"1", name: b"2"})
    else:
        path = make_tar(tmp_path / "a.tar.gz", ("good", b"1"), (name, b"2"))
    refused(path, "outside the folder")


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE],
)
def test_links_and_devices_in_a_tar_are_refused(tmp_path: Path, kind: bytes) -> None:
    path = make_tar(tmp_path / "a.tar.gz", ("good", b"1"), special("bad", kind, "/etc/passwd"))
    refused(path, "a link or a device")


def test_write_through_a_link_is_refused(tmp_path: Path) -> None:
    link = special("inside", tarfile.SYMTYPE, str(tmp_path))
    refused(make_tar(tmp_path / "a.tar.gz", link, ("inside/x", b"1")), "a link or a device")
    assert not (tmp_path / "x").exists()


def test_links_in_a_zip_are_refused(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "a.zip", {"link": b"/etc/passwd"}, mode=stat.S_IFLNK | 0o777)
    refused(path, "a link or a device")


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_bombs_are_stopped_while_they_unfold(tmp_path: Path, kind: str) -> None:
    zeros = bytes(900_000)
    if kind == "zip":
        path = make_zip(tmp_path / "a.zip", {"zeros": zeros})
    else:
        path = make_tar(tmp_path / f"a.{kind}", ("zeros", zeros))
    assert path.stat().st_size < 10_000
    refused(path, "bomb")


def test_total_size_and_count_are_limited(tmp_path: Path) -> None:
    noise = os.urandom(600_000)
    refused(make_zip(tmp_path / "a.zip", {"a": noise, "b": noise}), "bomb or a damaged")
    refused(
        make_tar(tmp_path / "b.tar.gz", *[(f"n{i}", b"") for i in range(9)]), "too many members"
    )


def test_a_bomb_in_the_headers_is_stopped(tmp_path: Path) -> None:
    info = tarfile.TarInfo("x")
    info.pax_headers = {"comment": "a" * 900_000}
    refused(make_tar(tmp_path / "a.tar.gz", info), "bomb")


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def spoil(path: Path) -> None:
    data = bytearray(path.read_bytes())
    middle = len(data) // 3
    data[middle : middle + 20] = b"corrupted corrupted!"
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [shorten, spoil])
@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_damaged_archives_are_refused(
    tmp_path: Path, kind: str, damage: Callable[[Path], None]
) -> None:
    noise = os.urandom(100_000)
    if kind == "zip":
        path = make_zip(tmp_path / "a.zip", {"noise": noise})
    else:
        path = make_tar(tmp_path / f"a.{kind}", ("noise", noise))
    damage(path)
    refused(path, "damaged|a link|outside")


def test_a_page_of_html_is_no_archive(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_text("<html>404</html>")
    refused(path, "damaged")


def test_repeated_names_are_refused(tmp_path: Path) -> None:
    path = make_tar(tmp_path / "a.tar.gz", ("x", b"1"), ("x", b"2"))
    with pytest.raises(DataError, match="there twice"):
        unpack(path, tmp_path / "out")
    path = make_tar(tmp_path / "b.tar.gz", ("x", b"1"), ("x/y", b"2"))
    with pytest.raises(DataError, match="there twice"):
        unpack(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_encrypted_zip_is_refused(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "a.zip", {"x": b"secret"})
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x03\x04") + 6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    refused(path, "encrypted")


def test_empty_archive_has_no_files(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "a.zip", {})
    assert list(members(path)) == []
    with pytest.raises(DataError, match="no files"):
        check_whole(path)


def test_stems() -> None:
    assert [archive_stem(n) for n in ("a.tgz", "b.TAR.GZ", ".zip", "c.gz")] == [
        "a",
        "b",
        None,
        None,
    ]
