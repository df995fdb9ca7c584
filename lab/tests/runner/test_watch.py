"""Looking at a run from outside: alive, killed, complete, read-only, and where it came from."""

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from vntransfer.cli import app
from vntransfer_lab import retry, run
from vntransfer_lab.errors import StoreError
from vntransfer_lab.runner.provenance import read_provenance, revision
from vntransfer_lab.runner.store_file import STORE_NAME, only_writer
from vntransfer_lab.runner.watch import Snapshot, look

VNT = [sys.executable, "-c", "from vntransfer.cli import main; main()"]
# Root may write everywhere: the child gives that up once everything is imported.
UNPRIVILEGED = """
    import os, sys
    from vntransfer_lab.runner.watch import look
    if os.getuid() == 0:
        os.setuid(65534)
    seen = look(sys.argv[1])
    print(seen.state, seen.total("pending"))
"""


def watch_once(folder: Path) -> str:
    done = CliRunner().invoke(app, ["bench", "watch", str(folder), "--once"])
    assert done.exit_code == 0, done.output
    return done.stdout


def until_running(folder: Path) -> Snapshot:
    end = time.monotonic() + 180
    while time.monotonic() < end:
        try:
            seen = look(folder)
            if seen.state == "running" and seen.groups and seen.began:
                return seen
        except StoreError:
            pass
        time.sleep(0.05)
    raise AssertionError(f"{folder}: no run within three minutes")


def start(*command: object) -> "subprocess.Popen[str]":
    words = [*VNT, "bench", *map(str, command)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)


def readable(folder: Path) -> None:
    for path in (folder, *folder.iterdir()):
        path.chmod(path.stat().st_mode & ~0o222 | 0o444)
    folder.chmod(folder.stat().st_mode | 0o555)
    for parent in folder.parents:
        if not parent.stat().st_mode & 0o005:
            parent.chmod(parent.stat().st_mode | 0o055)


def test_a_run_is_seen_while_it_lives_when_it_is_dead_and_to_its_end(
    patient: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    runner = start("run", patient, "--jobs", "2", "--out", folder)
    seen = until_running(folder)
    assert (seen.state, seen.total("pending"), seen.left) == ("running", 2, None)
    text = watch_once(folder)
    assert "running: 0 of 2 cells, for" in text

    os.killpg(runner.pid, signal.SIGKILL)
    runner.wait()
    text = watch_once(folder)
    assert "dead: the runner was killed, last sign of life 20" in text
    (killed,) = read_provenance(folder)["invocations"]
    assert (killed["ended"], killed["how"]) == (None, None)

    again = start("run", patient, "--jobs", "1", "--out", folder)
    until_running(folder)
    watcher = start("watch", folder)
    patient.with_name("go").touch()
    shown, _ = watcher.communicate(timeout=180)
    assert again.wait(60) == 0
    assert watcher.returncode == 0
    assert "complete: 2 of 2 cells" in shown
    assert [one["how"] for one in read_provenance(folder)["invocations"]] == [None, "complete"]


def test_a_dead_run_can_be_looked_at_where_nothing_can_be_written(
    patient: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    runner = start("run", patient, "--jobs", "1", "--out", folder)
    until_running(folder)
    os.killpg(runner.pid, signal.SIGKILL)
    runner.wait()
    readable(folder)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(UNPRIVILEGED), str(folder)],
        capture_output=True,
        text=True,
    )
    assert done.stdout == "dead 2\n", done.stderr


def test_failures_are_shown_latest_first(troubled: Path, tmp_path: Path) -> None:
    run(troubled, methods=["fine", "raises", "nan"], seeds=1, jobs=1, out=tmp_path / "run")
    text = watch_once(tmp_path / "run")
    assert "complete: 6 of 6 cells, 4 failed" in text
    latest = text[text.index("latest failures:") :].splitlines()[1:]
    assert latest[0] == "  none b nan seed 0: DataError: error is nan at step 2"
    assert latest[-1] == "  none a raises seed 0: RuntimeError: this cell always fails"


def test_time_left_follows_from_the_cells_that_this_invocation_finished(tmp_path: Path) -> None:
    run("smoke", methods=["constant"], targets=["s1", "s2"], seeds=5, jobs=1, out=tmp_path)
    connection = sqlite3.connect(tmp_path / STORE_NAME)
    began = time.time() - 100
    connection.execute("UPDATE invocations SET began = ?, ended = NULL", (began,))
    connection.execute("UPDATE cells SET seconds = 25")
    connection.execute("UPDATE cells SET status = 'pending' WHERE place >= 8")
    connection.execute("DELETE FROM times WHERE cell IN (SELECT id FROM cells WHERE place >= 8)")
    order = "SELECT cell FROM times JOIN cells ON id = cell ORDER BY place"
    for i, (cell,) in enumerate(connection.execute(order).fetchall()):
        ended = began + (25 * (i - 3) if i > 3 else -50)  # the first four: an earlier invocation
        connection.execute("UPDATE times SET ended = ? WHERE cell = ?", (ended, cell))
    connection.commit()
    assert look(tmp_path, verify=False).left is None  # no run is active
    with only_writer(tmp_path):
        seen = look(tmp_path, verify=False)
    assert seen.left == pytest.approx(2 * 25 - (seen.taken - began - 100))
    assert ", about 50 s left" in replace(seen, left=50.0).headline()
    connection.execute("DELETE FROM times WHERE ended > ?", (began + 60,))
    connection.commit()
    connection.close()
    with only_writer(tmp_path):
        assert look(tmp_path, verify=False).left is None  # two cells say nothing yet


def test_every_invocation_is_recorded(troubled: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    size: dict[str, Any] = {"methods": ["fine", "raises"], "seeds": [0, 3]}
    run(troubled, **size, settings={"seconds": 0.0}, jobs=1, out=folder)
    retry(folder, jobs=2)
    first, second = read_provenance(folder)["invocations"]
    assert first["command"] == (
        f"vnt bench run {troubled} --methods fine,raises --set 'seeds=[0,3]' --set seconds=0.0 "
        f"--jobs 1"
    )
    assert first["overrides"] == {**size, "settings": {"seconds": 0.0}}
    assert second["command"] == f"vnt bench retry {folder} --jobs 2"
    for one in (first, second):
        assert set(one["versions"]) == {"vntransfer", "python", "torch", "numpy", "scikit-learn"}
        assert one["machine"]["cores"] == os.cpu_count()
        assert one["revision"] == revision(Path(__file__).parents[3])
        assert one["began"] <= one["ended"]
        assert (one["engine"], one["how"]) == ("local", "complete")


def test_the_commit_of_a_working_copy_is_told(tmp_path: Path) -> None:
    assert revision(tmp_path) == ""

    def git(*words: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        command = ["git", "-C", str(tmp_path), *who, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init")
    (tmp_path / "file").write_text("a")
    git("add", "file")
    git("commit", "-m", "a")
    assert revision(tmp_path) == git("rev-parse", "HEAD")[:12]
    (tmp_path / "file").write_text("b")
    assert revision(tmp_path) == git("rev-parse", "HEAD")[:12] + "+"
