"""The runner: what fails is recorded, what is finished stays, whatever ends the process."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from vntransfer.cli import app
from vntransfer.errors import ArgumentError
from vntransfer_lab import RunOptions, results, retry, run
from vntransfer_lab.errors import PresetError, StoreError
from vntransfer_lab.reports.report import report
from vntransfer_lab.runner.plan import RunState
from vntransfer_lab.runner.records import Record
from vntransfer_lab.runner.store import read_records

VNT = [sys.executable, "-c", "from vntransfer.cli import main; main()"]
SMALL = {"targets": ["s1", "s2"], "methods": ["constant", "ridge"], "seeds": 2, "jobs": 2}


def by_method(folder: Path) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in read_records(folder)[1]:
        found.setdefault(record.method, []).append(record)
    return found


class Listener:
    def __init__(self) -> None:
        self.begun: list[tuple[int, int]] = []
        self.ended: list[str] = []
        self.most = 0

    def __call__(self, state: RunState) -> None:
        if not self.begun:
            self.begun.append((state.total, state.finished))
        self.most = max(self.most, len(state.running))
        if state.ended is not None:
            self.ended.append(state.ended[0].key)


def test_finished_cells_are_never_computed_again(tmp_path: Path) -> None:
    first, second = Listener(), Listener()
    run("smoke", **SMALL, out=tmp_path, options=RunOptions(watcher=first))  # type: ignore[arg-type]
    assert first.begun == [(16, 0)]
    assert len(first.ended) == len(set(first.ended)) == 16
    assert first.most == 2
    table = report(tmp_path)
    more = RunOptions(watcher=second)
    summary = run("smoke", **SMALL | {"seeds": 3}, out=tmp_path, options=more)  # type: ignore[arg-type]
    assert second.begun == [(24, 16)]
    assert summary.computed == 8
    run("smoke", **SMALL, out=tmp_path)  # type: ignore[arg-type]
    note = "  8 finished cells of other settings are not shown"
    assert [line for line in report(tmp_path).split("\n") if line != note] == table.split("\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "store.sqlite"]


def test_the_number_of_workers_changes_nothing(tmp_path: Path) -> None:
    tables = []
    for jobs in (1, 2):
        changed = {"jobs": jobs, "methods": None, "targets": ["s1"]}
        run("smoke", **SMALL | changed, out=tmp_path / str(jobs))  # type: ignore[arg-type]
        tables.append(report(tmp_path / str(jobs), "csv"))
    assert tables[0] == tables[1]


def test_every_way_to_fail_is_recorded_and_ends_nothing(troubled: Path, tmp_path: Path) -> None:
    methods = ["dies", "fine", "raises", "nan", "memory", "warns", "twice"]
    summary = run(troubled, methods=methods, seeds=1, jobs=2, out=tmp_path / "run")
    assert (summary.done, summary.failed) == (4, 10)
    found = by_method(tmp_path / "run")
    for method in ("fine", "warns"):
        assert {record.status for record in found[method]} == {"done"}
    for method, words in {
        "raises": "RuntimeError: this cell always fails",
        "nan": "error is nan at step 2",
        "memory": "MemoryError: cannot allocate 1 PiB",
        "dies": "the worker process died",
        "twice": "error was recorded twice at step 1",
    }.items():
        for record in found[method]:
            assert record.status == "failed"
            assert words in str(record.error)
            assert not record.metrics
    assert "this cell always fails" in str(found["raises"][0].traceback)
    assert found["warns"][0].warnings == "UserWarning: rather small"
    text = report(tmp_path / "run")
    assert "10 of 14 cells failed" in text
    assert "2 cells gave warnings" in text


def vnt(*arguments: object) -> Result:
    """``vnt bench`` in this process."""
    return CliRunner().invoke(app, ["bench", *map(str, arguments)])


def test_failed_cells_wait_for_retry(
    troubled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    monkeypatch.setenv("VNT_TEST_FIXED", str(tmp_path / "absent"))
    command = ("run", troubled, "--methods", "fine,fixed", "--out", folder)
    first = vnt(*command)
    assert first.exit_code == 3
    assert "4 cells failed" in first.stderr
    assert str(folder) in first.stderr
    assert "RuntimeError: not fixed yet" in first.stderr
    again = vnt(*command)
    assert "8 of 8 cells were finished before" in again.stderr
    assert again.exit_code == 3
    monkeypatch.setenv("VNT_TEST_FIXED", str(tmp_path))  # waiting workers see it
    retried = vnt("retry", folder)
    assert (retried.exit_code, "8 cells are done" in retried.stdout) == (0, True)
    assert retry(folder).computed == 0


def test_no_table_for_a_rule_that_cannot_choose(troubled: Path, tmp_path: Path) -> None:
    settings = {"selection": "leave_one_source_out"}
    run(troubled, methods=["fine"], settings=settings, jobs=1, out=tmp_path / "run")
    with pytest.raises(PresetError, match=r"metric 'leave_one_source_out'.*fine"):
        report(tmp_path / "run")


def test_wrong_arguments_make_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"jobs: .* from 1 .*got 0"):
        run("smoke", jobs=0, out=tmp_path / "run")
    with pytest.raises(PresetError):
        run("smoke", targets=["s7"], out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(StoreError, match="cannot make this folder"):
        run("smoke", out="/proc/absent/run")


def start(folder: Path, preset: str | Path = "smoke", *more: str) -> "subprocess.Popen[str]":
    command = [*VNT, "bench", "run", str(preset), "--jobs", "2", "--out", str(folder), *more]
    # a shell starts jobs in the background with SIGINT ignored, which children inherit
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    finally:
        signal.signal(signal.SIGINT, before)


def wait_for_cells(folder: Path, count: int) -> None:
    end = time.monotonic() + 180
    while time.monotonic() < end:
        try:
            if sum(record.status == "done" for record in read_records(folder)[1]) >= count:
                return
        except StoreError:
            pass
        time.sleep(0.05)
    raise AssertionError(f"{folder}: not {count} cells within a minute")


@pytest.mark.parametrize(("stop", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stop_ends_it_cleanly_and_the_same_command_goes_on(
    troubled: Path, tmp_path: Path, stop: signal.Signals, code: int
) -> None:
    folder = tmp_path / "run"
    more = ("--methods", "fine", "--seeds", "30", "--set", "seconds=0.2")
    process = start(folder, troubled, *more)
    wait_for_cells(folder, 2)
    os.killpg(process.pid, stop)  # as a terminal or a scheduler does: runner and workers
    _, stderr = process.communicate(timeout=180)
    assert process.returncode == code
    assert f"stopped; finished cells are kept in {folder}" in stderr
    assert "Traceback" not in stderr
    assert sorted(path.name for path in folder.iterdir()) == ["lock", "store.sqlite"]
    records = read_records(folder)[1]
    assert {record.status for record in records} == {"done", "pending"}
    before = sum(record.status == "done" for record in records)
    summary = run(troubled, methods=["fine"], seeds=30, settings={"seconds": 0.2}, out=folder)
    assert (summary.done, summary.computed) == (60, 60 - before)


def test_three_kills_and_the_same_table(troubled: Path, tmp_path: Path) -> None:
    folder, size = tmp_path / "run", ("--methods", "fine", "--seeds", "30", "--set", "seconds=0.2")
    for wanted in (2, 10, 20):
        process = start(folder, troubled, *size)
        wait_for_cells(folder, wanted)
        process.kill()  # the runner alone, its workers find out
        process.communicate(timeout=180)
        finished = sum(record.status == "done" for record in read_records(folder)[1])
        assert wanted <= finished < 60
    options: dict[str, Any] = {"methods": ["fine"], "seeds": 30, "settings": {"seconds": 0.2}}
    summary = run(troubled, **options, jobs=2, out=folder)
    assert (summary.done, summary.computed) == (60, 60 - finished)
    run(troubled, **options, jobs=8, out=tmp_path / "alone")
    assert report(folder) == report(tmp_path / "alone")


def test_a_run_killed_while_its_store_was_made_goes_on(troubled: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "store.sqlite").touch()  # the tables come with the first transaction
    done = vnt("run", troubled, "--methods", "fine", "--out", tmp_path / "run")
    assert done.exit_code == 0, done.stderr
    assert len(results(tmp_path / "run")) > 0


def test_two_processes_on_one_folder(troubled: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    processes = [start(folder, troubled, "--methods", "fine,warns") for _ in range(2)]
    outputs = [process.communicate(timeout=180) for process in processes]
    codes = [process.returncode for process in processes]
    assert 0 in codes
    if 1 in codes:  # the second came while the first worked, not after it
        assert "another run works in this folder" in outputs[codes.index(1)][1]
    run(troubled, methods=["fine", "warns"], out=tmp_path / "alone")
    assert report(folder) == report(tmp_path / "alone")


def test_a_second_run_is_refused_while_the_first_works(troubled: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = start(folder, troubled, "--methods", "fine", "--seeds", "99", "--set", "seconds=0.2")
    try:
        wait_for_cells(folder, 1)
        with pytest.raises(StoreError, match="another run works in this folder"):
            run(troubled, methods=["fine"], out=folder)
        assert len(results(folder)) >= 2
    finally:
        process.terminate()
        process.communicate(timeout=180)


def test_a_terminal_shows_what_runs_how_far_and_how_long_still(
    troubled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")  # rich's word for "behave as on a terminal"
    monkeypatch.setenv("COLUMNS", "120")
    size = ("--methods", "fine", "--seeds", "2", "--jobs", "1", "--set", "seconds=0.6")
    done = vnt("run", troubled, *size, "--out", tmp_path / "run")
    for words in ("none b fine seed 1", "1/4", "elapsed", "about", "left"):
        assert words in done.stderr


def test_disk_full_keeps_what_is_finished(troubled: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))

    size = ("--methods", "fine", "--seeds", "20", "--jobs", "1")
    full = subprocess.run(
        [*VNT, "bench", "run", str(troubled), *size, "--out", str(folder)],
        capture_output=True,
        text=True,
        preexec_fn=little_room,
    )
    assert full.returncode == 2, full.stderr
    assert "the disk is full or failing" in full.stderr
    assert "Traceback" not in full.stderr
    kept = sum(record.status == "done" for record in read_records(folder)[1])
    assert 0 < kept < 40
    summary = run(troubled, methods=["fine"], seeds=20, out=folder)
    assert (summary.done, summary.computed) == (40, 40 - kept)
    run(troubled, methods=["fine"], seeds=20, out=tmp_path / "alone")
    assert report(folder) == report(tmp_path / "alone")
