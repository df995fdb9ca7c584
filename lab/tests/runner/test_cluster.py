"""The engine "dask" on real schedulers and worker processes: the same store, whatever dies."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vntransfer.errors import ArgumentError
from vntransfer_lab import RunOptions, results, retry, run
from vntransfer_lab.errors import ClusterError
from vntransfer_lab.runner import cluster as engine
from vntransfer_lab.runner.cells import expand
from vntransfer_lab.runner.checkpoints import SECONDS_VARIABLE
from vntransfer_lab.runner.plan import RunState
from vntransfer_lab.runner.preset import load_preset
from vntransfer_lab.runner.provenance import versions
from vntransfer_lab.runner.records import CellOutcome
from vntransfer_lab.runner.store import read_records
from vntransfer_lab.runner.store_file import STORE_NAME
from vntransfer_lab.runner.workers import variables

distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")

HERE = Path(__file__).parents[1] / "lab_helpers"
QUIET = {"DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "critical"}


class Servers:
    """A scheduler and workers, as processes of their own."""

    def __init__(self, place: Path, workers: int) -> None:
        path = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
        self.environment = {**os.environ, **variables(), **QUIET, "PYTHONPATH": path}
        self.file = place / "scheduler.json"
        self.place = place
        self.processes = [self._start("scheduler", "--port", "0", "--no-dashboard")]
        for _ in range(workers):
            self.processes.append(self.start_worker(threads=1))
        self._wait()

    def start_worker(self, threads: int) -> "subprocess.Popen[bytes]":
        options = ("--no-dashboard", "--death-timeout", "180")
        return self._start("worker", "--nthreads", str(threads), *options)

    def _start(self, role: str, *options: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", f"distributed.cli.dask_{role}", "--host", "127.0.0.1"]
        command += ["--scheduler-file", str(self.file), *options]
        if role == "worker":
            command += ["--local-directory", str(self.place)]
            self._until(self.file.exists)
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(command, env=self.environment, start_new_session=True, **silent)

    @staticmethod
    def _until(true: Callable[[], object]) -> None:
        end = time.monotonic() + 180
        while not true():
            assert time.monotonic() < end, "the cluster did not start within three minutes"
            time.sleep(0.05)

    def _wait(self) -> None:
        self.address: str = json.loads(self.file.read_text())["address"]
        self.wait_for_workers(len(self.processes) - 1)

    def wait_for_workers(self, number: int) -> None:
        with distributed.Client(self.address, set_as_default=False) as client:
            self._until(lambda: len(client.nthreads()) == number)

    def worker_pids(self) -> list[int]:
        with distributed.Client(self.address, set_as_default=False) as client:
            return list(client.run(os.getpid).values())

    def stop(self) -> None:
        for process in self.processes[::-1]:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:  # such as one that was about to start a worker again
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    found = Servers(tmp_path_factory.mktemp("cluster"), workers=2)
    yield found
    found.stop()


class After:
    """Does something when a number of cells has ended."""

    def __init__(self, count: int, action: Callable[[], None]) -> None:
        self.count, self.action = count, action
        self.ended: list[str] = []

    def __call__(self, state: RunState) -> None:
        if state.ended is not None:
            self.ended.append(state.ended[0].key)
            if len(self.ended) == self.count:
                self.action()


def rows(folder: Path) -> list[Any]:
    frame = results(folder).drop(columns="seconds")
    return list(frame.itertuples(index=False, name=None))


def same(one: Path, two: Path) -> bool:
    return str(rows(one)) == str(rows(two))


def test_the_store_is_the_local_one(servers: Servers, tmp_path: Path) -> None:
    settings = {"methods.boosting.rounds": 20}
    size: dict[str, Any] = {"targets": ["s1"], "seeds": 1, "settings": settings}
    run("smoke", **size, jobs=1, out=tmp_path / "local")
    there = RunOptions("dask", servers.address)
    summary = run("smoke", **size, out=tmp_path / "dask", options=there)
    assert (summary.failed, summary.computed) == (0, summary.done)
    assert same(tmp_path / "local", tmp_path / "dask")
    names = sorted(path.name for path in (tmp_path / "dask").iterdir())
    assert names == ["lock", "store.sqlite"]


def test_a_choice_from_grids_is_the_local_one(
    servers: Servers, tunable: Path, tmp_path: Path
) -> None:
    """Results come back in another order here."""
    size: dict[str, Any] = {"targets": ["a"], "settings": {"seconds": 0.02}}
    run(tunable, **size, jobs=1, out=tmp_path / "local")
    watcher = After(5, lambda: os.kill(servers.worker_pids()[0], signal.SIGKILL))
    there = RunOptions("dask", servers.address, watcher=watcher)
    summary = run(tunable, **size, out=tmp_path / "dask", options=there)
    assert (summary.done, summary.failed) == ((8 + 8 + 1) * 2, 0)
    assert len(watcher.ended) == len(set(watcher.ended)) == summary.done
    assert same(tmp_path / "local", tmp_path / "dask")


def test_a_killed_worker_loses_and_doubles_no_cell(
    servers: Servers, troubled: Path, tmp_path: Path
) -> None:
    size: dict[str, Any] = {"methods": ["fine", "raises"], "seeds": 4, "settings": {"seconds": 0.1}}
    watcher = After(3, lambda: os.kill(servers.worker_pids()[0], signal.SIGKILL))
    there = RunOptions("dask", servers.address, watcher=watcher)
    summary = run(troubled, **size, out=tmp_path / "dask", options=there)
    assert (summary.done, summary.failed) == (8, 8)
    assert len(watcher.ended) == len(set(watcher.ended)) == 16
    run(troubled, **size, out=tmp_path / "local")
    assert same(tmp_path / "local", tmp_path / "dask")


def test_a_cell_that_kills_its_workers_fails_alone(troubled: Path, tmp_path: Path) -> None:
    size: dict[str, Any] = {"methods": ["dies", "fine"], "targets": ["a"], "seeds": 1, "jobs": 2}
    summary = run(troubled, **size, out=tmp_path / "run", options=RunOptions("dask"))
    assert (summary.done, summary.failed) == (1, 1)
    (guilty,) = [one for one in read_records(tmp_path / "run")[1] if one.status == "failed"]
    assert guilty.method == "dies"
    assert "the worker process died" in str(guilty.error)


def test_workers_that_differ_are_named(
    servers: Servers, troubled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = RunOptions("dask", servers.address)
    there: dict[str, Any] = {"options": options, "methods": ["fine"]}
    with monkeypatch.context() as here:
        here.setattr(engine, "versions", lambda: {"vntransfer": "0.0", "numpy": "9"})
        with pytest.raises(
            ClusterError, match=r"worker tcp://\S+: has vntransfer \S+ instead of 0"
        ):
            run(troubled, **there, out=tmp_path / "run")
    with monkeypatch.context() as here:
        here.setenv("VNT_TEST_DATA", "new edition")
        with pytest.raises(ClusterError, match=r"worker tcp://\S+: has other data 'none'"):
            run(troubled, **there, out=tmp_path / "run")
    busy = servers.start_worker(threads=2)
    try:
        servers.wait_for_workers(3)
        with pytest.raises(ClusterError, match=r"worker tcp://\S+: has 2 threads: start it with"):
            run(troubled, **there, out=tmp_path / "run")
    finally:
        busy.terminate()
        busy.wait(30)
        servers.wait_for_workers(2)
    assert {one.status for one in read_records(tmp_path / "run")[1]} == {"pending"}
    assert retry(tmp_path / "run", options=options).done == 4


def test_a_worker_that_comes_later_is_asked_with_its_first_cell(
    servers: Servers, troubled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cell, *_) = expand(load_preset(troubled))
    with engine.Cluster(1, tmp_path / "c", jobs=None, scheduler=servers.address) as cluster:
        cluster.submit(cell)
        ((_, outcome),) = cluster.finished(60)
        assert isinstance(outcome, CellOutcome)
        assert outcome.rows
        monkeypatch.setattr(engine, "versions", lambda: {"torch": "0"})
        cluster.submit(cell)
        with pytest.raises(
            ClusterError, match=r"worker tcp://\S+: has torch \S+ instead of 0; stop"
        ):
            list(cluster.finished(60))


def test_a_cell_goes_on_where_a_killed_worker_left_it(patient: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"

    def waiting() -> list[str]:
        texts = [path.read_text() for path in folder.glob("checkpoints/*/*/step")]
        return [pid for step, pid in map(str.split, texts) if step == "4"]

    def kill_one() -> None:
        """Kill a worker while both wait inside their cells; then release them."""
        Servers._until(lambda: len(waiting()) == 2)
        os.kill(int(waiting()[0]), signal.SIGKILL)
        patient.with_name("go").touch()

    killer = threading.Thread(target=kill_one)
    killer.start()
    summary = run(patient, jobs=2, out=folder, options=RunOptions("dask"))
    killer.join()
    assert (summary.done, summary.failed) == (2, 0)
    first = [record.metrics["first"][5] for record in read_records(folder)[1]]
    assert sorted(first) == [1.0, 4.0]


def test_a_folder_that_workers_do_not_see_has_no_checkpoints(
    patient: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SECONDS_VARIABLE, "0")
    patient.with_name("go").touch()
    (cell, *_) = expand(load_preset(patient))
    for folder in (tmp_path / "shared", tmp_path / "elsewhere"):
        if folder.name == "shared":
            folder.mkdir()
            (folder / STORE_NAME).touch()
        outcome = engine.compute_there(cell, versions(), folder / "checkpoints")
        assert not outcome.error, outcome.traceback
        assert (folder / "checkpoints").exists() == (folder.name == "shared")


def test_a_lost_scheduler_is_an_error_that_keeps_finished_cells(
    troubled: Path, tmp_path: Path
) -> None:
    short = Servers(tmp_path, workers=1)
    try:
        watcher = After(2, short.processes[0].kill)
        size: dict[str, Any] = {"methods": ["fine"], "settings": {"seconds": 0.2}, "seeds": 5}
        there = RunOptions("dask", short.address, watcher=watcher)
        with pytest.raises(ClusterError, match=r"connection was lost.* finished cells are kept"):
            run(troubled, **size, out=tmp_path / "run", options=there)
    finally:
        short.stop()
    assert sum(one.status == "done" for one in read_records(tmp_path / "run")[1]) == 2
    assert run(troubled, **size, out=tmp_path / "run").computed == 8


def test_impossible_wishes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArgumentError, match=r"^engine: .*local, dask.*'ray'"):
        run("smoke", out=tmp_path / "run", options=RunOptions("ray"))
    monkeypatch.setattr(engine, "CONNECT_SECONDS", 1)
    with pytest.raises(ClusterError, match=r"cannot reach tcp://127\.0\.0\.1:9 "):
        run("smoke", out=tmp_path / "run", options=RunOptions("dask", "tcp://127.0.0.1:9"))
