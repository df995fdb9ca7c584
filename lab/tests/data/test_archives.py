"""Archives are read whole; damaged ones and bombs are errors."""

import io
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from vntransfer.errors import DataError
from vntransfer.storage import files
from vntransfer_lab.data.archives import archive_stem, check_whole, members, read_members


def make_zip(path: Path, content: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as box:
        for name, data in content.items():
            box.writestr(name, data)
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


def refused(archive: Path, match: str) -> None:
    with pytest.raises(DataError, match=match):
        list(read_members(archive, lambda name: True))
    with pytest.raises(DataError, match=match):
        check_whole(archive)


def test_files_of_archives_are_read(tmp_path: Path) -> None:
    tape = make_tar(
        tmp_path / "a.tar.gz",
        special("./", tarfile.DIRTYPE),
        special("d", tarfile.DIRTYPE),
        ("d/x.txt", b"x" * 5000),
        special("link", tarfile.SYMTYPE, "/etc/passwd"),
        ("./y", b""),
    )
    box = make_zip(tmp_path / "a.zip", {"d/": b"", "d/x.txt": b"x" * 5000, "y": b""})
    for path in (tape, box):
        assert dict(read_members(path, lambda name: True)) == {"d/x.txt": b"x" * 5000, "y": b""}
        assert dict(read_members(path, lambda name: name == "y")) == {"y": b""}
        check_whole(path)


def test_files_of_a_folder_are_read(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt", "c.png"):
        (tmp_path / name).write_text(name)
    found = list(read_members(tmp_path, lambda name: name.endswith(".txt")))
    assert found == [("a.txt", b"a.txt"), ("b.txt", b"b.txt")]


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_bombs_are_refused(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "EXPANDED", 1 << 16)
    zeros = bytes(2_000_000)
    if kind == "zip":
        path = make_zip(tmp_path / "a.zip", {"zeros": zeros})
    else:
        path = make_tar(tmp_path / f"a.{kind}", ("zeros", zeros))
    refused(path, "bomb")


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
    refused(path, "damaged")


def test_a_page_of_html_is_no_archive(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_text("<html>404</html>")
    refused(path, "damaged")


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
