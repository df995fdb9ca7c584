"""A damaged store gives the right numbers or none, and `vnt bench recover` saves what is intact."""

import random
import shutil
import sqlite3
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lab_helpers.damage import damage
from vntransfer.cli import app
from vntransfer.errors import VnError
from vntransfer_lab.errors import StoreError
from vntransfer_lab.runner.cells import expand
from vntransfer_lab.runner.preset import load_preset
from vntransfer_lab.runner.records import CellOutcome, Cost
from vntransfer_lab.runner.store import Store, read_records, recover
from vntransfer_lab.runner.store_file import STORE_NAME

PRESET = load_preset("smoke", seeds=4)
CELLS = expand(PRESET)
LOG = f"{STORE_NAME}-wal"


def outcome(number: int) -> CellOutcome:
    rng = random.Random(number)
    rows = [
        (step, name, rng.random()) for step in (1, 2, 3) for name in ("mae", "source_validation")
    ]
    return CellOutcome(rows, rng.random(), warnings=["W: w"], cost=Cost(3, 0.1, 7))


def vnt(*words: object) -> tuple[int, str, str]:
    """Exit code, output and error of a command; ``main`` turns our errors into a sentence and 2."""
    done = CliRunner().invoke(app, ["bench", *map(str, words)])
    if isinstance(done.exception, VnError):
        return 2, done.stdout, str(done.exception)
    assert done.exception is None, repr(done.exception)
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, and in ``killed`` the same one with half of it in the log."""
    folder = tmp_path_factory.mktemp("damage")
    with Store(folder / "run", write=True) as store:
        number = store.begin_invocation('{"command": "vnt bench run smoke"}')
        store.plan(PRESET, CELLS)
        for i, cell in enumerate(CELLS):
            store.finish(cell.key, outcome(i))
            if i == len(CELLS) // 2:
                store._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        (folder / "killed").mkdir()
        for name in (STORE_NAME, LOG):
            shutil.copy(folder / "run" / name, folder / "killed")
        store.end_invocation(number, "complete")
    assert exported(folder / "run")[0] == 0
    return folder


def right(folder: Path) -> bool:
    """Whether all finished cells are the original ones."""
    wanted = {cell.key: outcome(i) for i, cell in enumerate(CELLS)}
    with Store(folder) as store:
        found = {key: store.outcome(key) for key in wanted}
    for key, seen in found.items():
        if seen is not None and (
            sorted(seen.rows) != sorted(wanted[key].rows) or seen.cost != wanted[key].cost
        ):
            return False
    return True


def exported(folder: Path) -> tuple[int, str, str]:
    code, _, error = vnt("export", folder, folder.with_suffix(".csv"))
    return code, "" if code else folder.with_suffix(".csv").read_text(), error


@pytest.mark.parametrize("seed", range(100))
def test_right_numbers_or_a_refusal_that_names_recover(
    whole: Path, tmp_path: Path, seed: int
) -> None:
    rng, folder = random.Random(seed), tmp_path / "run"
    kind = rng.choice(["run", "run", "killed"])
    shutil.copytree(whole / kind, folder)
    if kind == "killed" and rng.random() < 0.3:
        (folder / LOG).unlink()
    else:
        damage(folder / (LOG if kind == "killed" and rng.random() < 0.5 else STORE_NAME), rng)
    copy = shutil.copytree(folder, tmp_path / "copy")
    watched = vnt("watch", folder, "--once")
    for code, stdout, stderr in (exported(folder), watched):
        if code:
            assert code == 2
            assert "vnt bench recover" in stderr or "rerun its command" in stderr
        elif kind == "run":
            assert watched[0] == 0
            assert stdout in ((whole / "run.csv").read_text(), watched[1])
        else:  # a log ends where it is damaged: the cells before that, and no others
            assert right(folder)
    code, stdout, stderr = vnt("recover", copy, "--out", tmp_path / "new")
    if code:
        assert (code, "no intact cell" in stderr) == (2, True)
    else:
        with Store(tmp_path / "new", write=True) as new:
            left = new.plan(PRESET, CELLS)
        assert f"copied {len(CELLS) - len(left)} cells" in stdout
        assert right(tmp_path / "new")


def test_a_cut_store_is_not_reported_and_its_intact_cells_are_saved(
    whole: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(whole / "run", tmp_path / "run")
    content = (folder / STORE_NAME).read_bytes()
    (folder / STORE_NAME).write_bytes(content[:-2401])
    with pytest.raises(StoreError, match=f"vnt bench recover {folder} --out NEW"):
        read_records(folder)
    saved = recover(folder, tmp_path / "new")
    assert 0 < saved < len(CELLS)
    with pytest.raises(StoreError, match="rerun its command"):
        read_records(tmp_path / "new")
    with Store(tmp_path / "new", write=True) as store:
        assert len(store.plan(PRESET, CELLS)) == len(CELLS) - saved
    with pytest.raises(StoreError, match="holds a run already"):
        recover(folder, tmp_path / "new")
    with pytest.raises(StoreError, match=r"no intact cell was found .*store.sqlite is absent"):
        recover(tmp_path / "absent", tmp_path / "newer")


def test_a_value_that_was_changed_behind_our_back_is_noticed(whole: Path, tmp_path: Path) -> None:
    store = shutil.copytree(whole / "run", tmp_path / "run") / STORE_NAME
    connection = sqlite3.connect(store)
    connection.execute("UPDATE metrics SET value = value + 1e-9 WHERE cell = 7")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="1 cells"):
        read_records(tmp_path / "run")
    assert recover(tmp_path / "run", tmp_path / "new") == len(CELLS) - 1


def test_a_reader_sees_one_state_from_beginning_to_end(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "run", tmp_path / "run")
    with Store(tmp_path / "run", write=True) as writer, Store(tmp_path / "run") as reader:
        before = reader.records()
        writer.finish(CELLS[0].key, outcome(99))
        assert reader.records() == before
        assert read_records(tmp_path / "run").records != before


def test_checking_a_large_store_is_cheap(tmp_path: Path) -> None:
    """About 20 microseconds per cell and 1 per row: no more than reading takes."""
    with Store(tmp_path, write=True) as store:
        store.plan(PRESET, CELLS)
        for cell in CELLS:
            rows = [(step, "mae", step / 7) for step in range(300)]
            store.finish(cell.key, CellOutcome(rows))
    begin = time.process_time()
    with Store(tmp_path, verify=False) as store:
        store.records()
    reading, begin = time.process_time() - begin, time.process_time()
    with Store(tmp_path):
        checking = time.process_time() - begin
    assert checking < 10 * reading + 0.5
