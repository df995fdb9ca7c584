"""Cells resume after SIGKILL with exactly the numbers of an uninterrupted cell."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import vntransfer.continual
from lab_helpers.makers import MAKERS, make_trancos
from lab_helpers.runs import TINY_STREAM
from vntransfer.adaptation._checkpoint import Checkpoint
from vntransfer.errors import ArgumentError
from vntransfer_lab import run
from vntransfer_lab.experiments import continual
from vntransfer_lab.runner.cells import Cell, expand
from vntransfer_lab.runner.checkpoints import SECONDS_VARIABLE, CellCheckpoint
from vntransfer_lab.runner.preset import load_preset
from vntransfer_lab.runner.store import read_records
from vntransfer_lab.runner.workers import compute

VNT = [sys.executable, "-c", "from vntransfer.cli import main; main()"]

# Each cell is computed in a process of its own (forked: torch is imported once), which is killed
# when so many states have been written and another one is due.
KILLED = """
import json, os, signal, sys
from pathlib import Path
import torch._dynamo  # which the first optimizer imports
from vntransfer_lab.runner.cells import expand
from vntransfer_lab.runner.kinds import load_kind
from vntransfer_lab.experiments import continual
from vntransfer_lab.runner.preset import load_preset
from vntransfer_lab.runner.workers import compute
from vntransfer.storage.pacing import Pace

due = Pace.due

def counted(self, *, last=False):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    return due(self, last=last)

Pace.due = counted
for name in ("adaptation", "counting", "continual"):
    load_kind(name)
for name, changes, folder, left in json.loads(sys.argv[1]):
    child = os.fork()
    if not child:
        compute(expand(load_preset(name, **changes))[0], Path(folder))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, (name, left, status)
"""

KINDS: dict[str, tuple[str, dict[str, Any], tuple[int, ...]]] = {
    # selection with source-only, then with the candidates, then training: 1, 1 and 2 epochs
    "adaptation": (
        "adaptation",
        {
            "methods": ["darn"],
            "targets": ["s1"],
            "seeds": 1,
            "settings": {
                "data": ["synthetic"],
                "rows": 60,
                "history": True,
                "methods.darn.trade_off": "auto",
                "common.epochs": 2,
            },
        },
        (1, 3),
    ),
    "oracle": (
        "adaptation",
        {
            "methods": ["oracle"],
            "targets": ["s1"],
            "seeds": 1,
            "settings": {"data": ["synthetic"], "rows": 60, "methods.oracle.epochs": 2},
        },
        (3,),
    ),
    "counting": (
        "trancos",
        {
            "methods": ["align"],
            "targets": ["dom2"],
            "seeds": 1,
            "settings": {
                "size": [32, 32],
                "blocks": 2,
                "channels": 4,
                "pictures": 3,
                "common.epochs": 3,
            },
        },
        (2,),
    ),
    # a short search of two candidates (2 tasks of 10 steps each), then 3 tasks of 20 steps
    "continual": (
        "mnistP",
        {
            "methods": ["rsp"],
            "seeds": 1,
            "settings": {
                **TINY_STREAM,
                "methods.rsp.lr": [0.01, 0.03],
                "methods.rsp.strength": [1.0],
            },
        },
        (15, 85),
    ),
    "watching": (
        "omniglot",
        {
            "methods": ["rsp_watching"],
            "seeds": 1,
            "settings": {"n_tasks": 2, "n_train": 8, "size": 16, "channels": 4, "hidden": [8]},
        },
        (30,),
    ),
}


def cell_of(name: str, changes: dict[str, Any]) -> Cell:
    return expand(load_preset(name, **changes))[0]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data of the kinds, and what killed cells leave in KIND/NUMBER."""
    folder = tmp_path_factory.mktemp("made")
    make_trancos(folder)
    for name in ("mnistP", "omniglot"):
        MAKERS[name](folder)
    jobs = [
        (name, changes, str(folder / "killed" / kind / str(number)), number)
        for kind, (name, changes, kills) in KINDS.items()
        for number in kills
    ]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, json.dumps(jobs)],
        env={**os.environ, **surroundings(folder)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder


def surroundings(made: Path) -> dict[str, str]:
    derived = str(made / "derived")
    return {"VNT_DATA": str(made), "VNT_CACHE": derived, SECONDS_VARIABLE: "0"}


@pytest.mark.filterwarnings("ignore::vntransfer.errors.DataWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_cell_goes_on_bit_for_bit(
    kind: str, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in surroundings(made).items():
        monkeypatch.setenv(variable, value)
    for cached in (continual._files, continual._stream):  # of other tests with other files
        cached.cache_clear()
    name, changes, kills = KINDS[kind]
    cell = cell_of(name, changes)
    alone = compute(cell)
    assert not alone.error, alone.traceback
    resumed: list[int] = []
    plain, load = Checkpoint.resume, vntransfer.continual.load_checkpoint

    def resume(self: Checkpoint) -> Any:
        history = plain(self)
        resumed.append(len(history))
        return history

    def loaded(*given: Any, **options: Any) -> Any:
        place = load(*given, **options)
        resumed.append(len(place["learned"]) + place["step"])
        return place

    monkeypatch.setattr(Checkpoint, "resume", resume)
    monkeypatch.setattr(vntransfer.continual, "load_checkpoint", loaded)
    for number in kills:
        resumed.clear()
        again = compute(cell, made / "killed" / kind / str(number))
        assert any(resumed), "nothing was taken up"
        assert again.rows == alone.rows
        assert again.seconds > 0


def test_a_short_cell_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECONDS_VARIABLE, "3600")
    name, changes, _ = KINDS["oracle"]
    outcome = compute(cell_of(name, changes), tmp_path / "checkpoints")
    assert not outcome.error, outcome.traceback
    assert not (tmp_path / "checkpoints").exists()


def test_a_killed_run_goes_on_in_the_middle_of_its_cell(patient: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    command = [*VNT, "bench", "run", str(patient), "--seeds", "1", "--out", str(folder)]
    process = subprocess.Popen(command, start_new_session=True)
    end = time.monotonic() + 180
    while not [p for p in folder.glob("checkpoints/*/*/step") if p.read_text().startswith("4 ")]:
        assert time.monotonic() < end, "no checkpoint within three minutes"
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    (key,) = [path.name for path in (folder / "checkpoints").iterdir()]
    stale = folder / "checkpoints" / "another"
    stale.mkdir()
    patient.with_name("go").touch()
    run(patient, seeds=1, out=folder)
    (record,) = read_records(folder)[1]
    assert record.key == key
    assert record.metrics["first"] == {5: 4.0}
    assert sorted(path.name for path in folder.iterdir()) == ["lock", "store.sqlite"]


def test_time_before_an_interruption_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SECONDS_VARIABLE, "0")
    kept = CellCheckpoint(tmp_path, "a")
    assert kept.place is not None
    assert kept.place.pace.due()
    (noted,) = tmp_path.glob("a/*/seconds.json")
    assert 0 < json.loads(noted.read_text()) <= kept.seconds()
    noted.write_text("100.0")
    assert CellCheckpoint(tmp_path, "a").seconds() > 100
    assert CellCheckpoint(None, "a").place is None


@pytest.mark.parametrize("said", ["-1", "nan", "often"])
def test_an_impossible_time_is_refused(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SECONDS_VARIABLE, said)
    with pytest.raises(ArgumentError, match=f"{SECONDS_VARIABLE}: .*seconds"):
        run("smoke", out=tmp_path / "run")
