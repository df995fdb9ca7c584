"""Packed results report what the run folder reports, and say when they are damaged."""

import json
from pathlib import Path

import pytest

from vntransfer_lab import pack, read_provenance, report, results, run
from vntransfer_lab.errors import StoreError
from vntransfer_lab.runner.packed import CELLS_NAME, RUN_NAME


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run")
    run("smoke", methods=["constant", "ridge"], seeds=2, jobs=1, out=path)
    return path


@pytest.fixture
def packed(folder: Path, tmp_path: Path) -> Path:
    assert pack(folder, tmp_path / "packed") == (1 + 3) * 6 * 2
    return tmp_path / "packed"


@pytest.mark.parametrize("form", ["terminal", "markdown", "csv"])
def test_reports_are_equal(folder: Path, packed: Path, form: str) -> None:
    assert report(packed, form, times=True) == report(folder, form, times=True)


def test_frames_are_equal(folder: Path, packed: Path) -> None:
    pd = pytest.importorskip("pandas")
    pd.testing.assert_frame_equal(results(packed), results(folder))


def test_commands_go_along(folder: Path, packed: Path) -> None:
    assert read_provenance(packed) == read_provenance(folder)
    assert len(read_provenance(packed)["invocations"]) == 1


def test_packing_again_gives_the_same_bytes(packed: Path, tmp_path: Path) -> None:
    pack(packed, tmp_path / "again")
    for name in (RUN_NAME, CELLS_NAME):
        assert (tmp_path / "again" / name).read_bytes() == (packed / name).read_bytes()


def test_half_a_run_is_refused(troubled: Path, tmp_path: Path) -> None:
    run(troubled, jobs=1, out=tmp_path / "run")
    with pytest.raises(StoreError, match="4 of 8 cells are not done"):
        pack(tmp_path / "run", tmp_path / "packed")
    assert not (tmp_path / "packed").exists()


@pytest.mark.parametrize("name", [RUN_NAME, CELLS_NAME])
def test_files_of_others_are_not_replaced(folder: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("my thesis")
    with pytest.raises(StoreError, match=rf"{name}.*--overwrite"):
        pack(folder, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "my thesis"
    assert pack(folder, tmp_path, overwrite=True) == pack(folder, tmp_path)  # ours from now on
    assert report(tmp_path) == report(folder)


def test_changed_cells_are_noticed(packed: Path) -> None:
    path = packed / CELLS_NAME
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(StoreError, match="do not belong together"):
        report(packed)


def test_missing_cells_are_noticed(packed: Path) -> None:
    (packed / CELLS_NAME).unlink()
    with pytest.raises(StoreError, match=CELLS_NAME):
        report(packed)


def test_an_edited_description_is_noticed(packed: Path) -> None:
    path = packed / RUN_NAME
    path.write_text(path.read_text().replace('"seeds": [\n', '"seeds": [\n 77,\n', 1))
    with pytest.raises(StoreError, match=f"{path}: is damaged or was edited"):
        report(packed)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": 1}'])
def test_damaged_description_is_noticed(packed: Path, text: str) -> None:
    (packed / RUN_NAME).write_text(text)
    with pytest.raises(StoreError, match="cannot be read"):
        report(packed)


def test_newer_format_is_noticed(packed: Path) -> None:
    described = json.loads((packed / RUN_NAME).read_text())
    (packed / RUN_NAME).write_text(json.dumps({**described, "format": 99}))
    with pytest.raises(StoreError, match="has format 99"):
        report(packed)
