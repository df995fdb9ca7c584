"""The store: whole cells or none, clear words about files that are not ours."""

import os
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from vntransfer.errors import ArgumentError
from vntransfer_lab import export, results
from vntransfer_lab.errors import StoreError
from vntransfer_lab.runner.cells import Cell, expand
from vntransfer_lab.runner.preset import Preset, check, override, read_preset
from vntransfer_lab.runner.records import CellOutcome
from vntransfer_lab.runner.store import Store, read_records
from vntransfer_lab.runner.store_file import STORE_NAME

PRESET = check(override(read_preset("smoke")[1], seeds=2, targets=["s1"]), "smoke")
CELLS = expand(PRESET)
DONE = CellOutcome([(1, "mae", 1.5), (2, "mae", 1.25), (1, "source_validation", 2.0)], 0.1)


def planned(folder: Path, preset: Preset = PRESET, cells: list[Cell] = CELLS) -> Path:
    with Store(folder, write=True) as store:
        store.plan(preset, cells)
    return folder


def test_a_finished_cell_comes_back_as_it_was(tmp_path: Path) -> None:
    with Store(tmp_path, write=True) as store:
        assert store.plan(PRESET, CELLS) == CELLS
        store.finish(CELLS[1].key, DONE)
        store.finish(CELLS[2].key, CellOutcome(error="E: x", traceback="trace", warnings=["W: y"]))
        assert store.plan(PRESET, CELLS) == [CELLS[0], *CELLS[3:]]
        assert store.plan(PRESET, CELLS, retry=True) == [CELLS[0], *CELLS[2:]]
    preset, records, unplanned = read_records(tmp_path)
    assert preset == PRESET
    assert unplanned == 0
    assert [record.key for record in records] == [cell.key for cell in CELLS]
    assert records[1].metrics == {"mae": {1: 1.5, 2: 1.25}, "source_validation": {1: 2.0}}
    assert (records[1].hyper, records[1].settings) == (CELLS[1].hyper, CELLS[1].settings)


def test_cells_that_the_last_run_does_not_want_are_kept_but_not_shown(tmp_path: Path) -> None:
    with Store(tmp_path, write=True) as store:
        store.plan(PRESET, CELLS)
        store.finish(CELLS[0].key, DONE)
        store.plan(PRESET, CELLS[1:])
        assert store.unplanned() == 1
        assert len(store.records()) == len(CELLS) - 1
        assert store.plan(PRESET, CELLS) == CELLS[1:]


def test_an_interrupted_write_leaves_nothing(tmp_path: Path) -> None:
    bad = CellOutcome([(1, "mae", 1.0), (1, "mae", 2.0)])  # the second row breaks the primary key
    with Store(planned(tmp_path), write=True) as store:
        with pytest.raises(StoreError):
            store.finish(CELLS[0].key, bad)
        record = store.records()[0]
    assert (record.status, record.metrics) == ("pending", {})


def test_another_preset_is_refused(tmp_path: Path) -> None:
    planned(tmp_path)
    other = check(read_preset("smoke")[1], "other")
    with (
        Store(tmp_path, write=True) as store,
        pytest.raises(StoreError, match=r"'smoke'.*'other'"),
    ):
        store.plan(other, CELLS)


def test_readers_see_whole_cells_while_a_writer_writes(tmp_path: Path) -> None:
    with Store(planned(tmp_path), write=True) as writer:
        for cell in CELLS:
            writer.finish(cell.key, DONE)
            records = read_records(tmp_path)[1]
            assert {len(r.metrics) for r in records if r.status == "done"} == {2}


def test_power_loss_in_the_middle_of_a_write_leaves_whole_cells(tmp_path: Path) -> None:
    """Cut the write-ahead log at every kind of place, as a disk without power does."""
    with Store(planned(tmp_path / "run"), write=True) as writer:
        for cell in CELLS:
            writer.finish(cell.key, DONE)
        log = (tmp_path / "run" / f"{STORE_NAME}-wal").read_bytes()
        base = (tmp_path / "run" / STORE_NAME).read_bytes()
    counts = []
    for part in range(0, 101, 5):
        folder = tmp_path / str(part)
        folder.mkdir()
        (folder / STORE_NAME).write_bytes(base)
        (folder / f"{STORE_NAME}-wal").write_bytes(log[: len(log) * part // 100])
        with Store(folder, write=True) as store:
            todo = store.plan(PRESET, CELLS)
            done = [record for record in store.records() if record.status == "done"]
        assert len(todo) + len(done) == len(CELLS)
        assert all(len(r.metrics["mae"]) == 2 for r in done)
        counts.append(len(done))
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, len(CELLS))


def test_files_that_are_no_store_are_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"no run here \(store.sqlite is absent\)"):
        Store(tmp_path)
    path = tmp_path / STORE_NAME
    path.write_bytes(b"this is a text file, longer than the header of a database" * 20)
    before = path.read_bytes()
    for write in (False, True):
        with pytest.raises(StoreError, match=r"damaged or not a store of vnt; .*vnt bench recover"):
            Store(tmp_path, write=write)
    assert path.read_bytes() == before


def test_databases_of_others_and_of_the_future_are_named(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / STORE_NAME)
    connection.execute("CREATE TABLE theirs (x)")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="an SQLite file of another program"):
        Store(tmp_path, write=True)
    connection = sqlite3.connect(planned(tmp_path / "new") / STORE_NAME)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="has format 99, this vntransfer knows 1"):
        Store(tmp_path / "new")


def test_a_store_without_a_plan_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / STORE_NAME).touch()
    with pytest.raises(StoreError, match="stopped before its cells were planned"):
        read_records(tmp_path)
    with Store(tmp_path, write=True):
        pass
    with pytest.raises(StoreError, match="stopped before its cells were planned"):
        read_records(tmp_path)


@pytest.mark.parametrize("keep", [0.3, 0.6, 0.9])
def test_a_truncated_store_is_named(tmp_path: Path, keep: float) -> None:
    with Store(tmp_path, write=True) as store:
        store.plan(PRESET, CELLS)
        for cell in CELLS:
            store.finish(cell.key, CellOutcome([(i, "mae", 1.0) for i in range(500)]))
    path = tmp_path / STORE_NAME
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * keep)])
    with pytest.raises(StoreError, match=str(path)):
        Store(tmp_path, write=True)
    with pytest.raises(StoreError, match=str(path)):
        read_records(tmp_path)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"cannot make this folder .*choose another --out"):
        Store(tmp_path / "file" / "run", write=True)


def test_a_read_only_folder_can_be_reported_but_not_run_in(tmp_path: Path) -> None:
    folder = planned(tmp_path / "run")
    for path in (folder, folder / STORE_NAME):
        path.chmod(path.stat().st_mode & ~0o222)
    tmp_path.chmod(0o755)
    # Root may write everywhere: the child gives that up once everything is imported.
    code = f"""
        import os, filelock
        from pathlib import Path
        from vntransfer_lab.runner.store_file import only_writer
        from vntransfer_lab.runner.store import Store, read_records
        from vntransfer_lab.errors import StoreError
        folder = Path({str(folder)!r})
        if os.getuid() == 0:
            os.setuid(65534)
        print(len(read_records(folder)[1]))
        lock = only_writer(folder)
        for attempt in (lambda: Store(folder, write=True), lock.__enter__):
            try:
                attempt()
            except StoreError as error:
                print("refused:", error)
    """
    if os.getuid() == 0:
        for parent in folder.parents:
            if not parent.stat().st_mode & 0o005:
                parent.chmod(parent.stat().st_mode | 0o055)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert lines[0] == str(len(CELLS))
    assert [line.split(":")[0] for line in lines[1:]] == ["refused", "refused"]
    assert "choose another --out" in lines[1]
    assert "choose another --out" in lines[2]


def test_rows_leave_as_frame_csv_and_parquet(tmp_path: Path) -> None:
    import pandas as pd

    with Store(tmp_path, write=True) as store:
        store.plan(PRESET, CELLS)
        store.finish(CELLS[0].key, DONE)
        store.finish(CELLS[-1].key, DONE)
    frame = results(tmp_path)
    assert len(frame) == 3 + 3 + len(CELLS) - 2
    assert frame["value"].dropna().tolist() == [1.5, 1.25, 2.0] * 2
    assert frame.columns[-3:].tolist() == ["metric", "step", "value"]
    for suffix, read in ((".csv", pd.read_csv), (".parquet", pd.read_parquet)):
        assert export(tmp_path, tmp_path / f"rows{suffix}") == len(frame)
        again = read(tmp_path / f"rows{suffix}")
        assert again.columns.tolist() == frame.columns.tolist()
        assert again["value"].dropna().tolist() == frame["value"].dropna().tolist()
    with pytest.raises(ArgumentError, match=r"ends in \.csv or \.parquet, got .*rows\.txt"):
        export(tmp_path, tmp_path / "rows.txt")
