"""Single files: whole or not at all, with the permissions that `open` gives."""

import os
import stat
from pathlib import Path

import pytest

from vntransfer.storage import atomic_write


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_permissions_are_those_of_open(mask: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        (tmp_path / "plain").write_text("a")
        with atomic_write(tmp_path / "new" / "atomic") as file:
            file.write(b"a")
        (tmp_path / "folder").mkdir()
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "new" / "atomic") == mode_of(tmp_path / "plain")
    assert mode_of(tmp_path / "new") == mode_of(tmp_path / "folder")


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "private"
    path.write_text("old")
    path.chmod(0o600)
    with atomic_write(path, "w") as file:
        file.write("new")
    assert (path.read_text(), mode_of(path)) == ("new", 0o600)


def test_the_umask_of_the_process_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []  # even to read it, it has to be changed, and other threads see that
    monkeypatch.setattr(os, "umask", asked.append)
    with atomic_write(tmp_path / "a") as file:
        file.write(b"a")
    assert asked == []


def test_an_error_leaves_the_older_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(TypeError), atomic_write(path) as file:
        file.write("half")
    assert [own.name for own in tmp_path.iterdir()] == ["a"]
    assert path.read_text() == "old"
