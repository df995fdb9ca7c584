"""Random attacks on the laboratory, each of one seed; see `helpers.fuzzing` of the library."""

import io
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from helpers.fuzzing import Part, require
from lab_helpers.damage import damage
from vntransfer_lab import export
from vntransfer_lab.data.archives import read_members
from vntransfer_lab.runner.cells import expand
from vntransfer_lab.runner.preset import load_preset
from vntransfer_lab.runner.records import CellOutcome
from vntransfer_lab.runner.store import Store, read_records, recover
from vntransfer_lab.runner.store_file import STORE_NAME, UnplannedError

VNT = (sys.executable, "-c", "from vntransfer.cli import main; main()")
SIZE = ("smoke", "--methods", "constant", "--targets", "s1,s2", "--seeds", "3", "--jobs", "1")


@cache
def _finished() -> Path:
    """A finished run."""
    preset, folder = load_preset("smoke", seeds=3), Path(mkdtemp()) / "run"
    with Store(folder, write=True) as store:
        cells, rng = expand(preset), random.Random(0)
        store.plan(preset, cells)
        for cell in cells:
            store.finish(cell.key, CellOutcome([(step, "mae", rng.random()) for step in (1, 2)]))
    return folder


def stores(seed: int, place: Path) -> str:
    """A damaged store gives the original numbers or none; recover gives original cells alone."""
    folder = shutil.copytree(_finished(), place / "run")
    damage(folder / STORE_NAME, random.Random(seed))
    original = {record.key: record for record in read_records(_finished()).records}
    recovered = place / "new"
    if recover(folder, recovered):
        with Store(recovered) as store:
            for key, record in original.items():
                outcome = store.outcome(key)
                same = outcome is None or sorted(outcome.rows) == sorted(record.outcome().rows)
                require(same, f"{key}: recovered with other rows")
    require(read_records(folder).records == list(original.values()), "other numbers")
    return "right"


def archives(seed: int, place: Path) -> str:
    """A damaged archive gives its files or is refused."""
    rng = random.Random(seed)
    content = {f"d/{i}.txt": rng.randbytes(rng.randrange(5000)) for i in range(3)}
    path = place / rng.choice(["a.zip", "a.tar.gz"])
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as box:
            for name, data in content.items():
                box.writestr(name, data)
    else:
        with tarfile.open(path, "w:gz") as tape:
            for name, data in content.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tape.addfile(info, io.BytesIO(data))
    damage(path, rng)
    require(dict(read_members(path, lambda name: True)) == content, f"{path.name}: other files")
    return "right"


def _start(*words: object, most: int | None = None) -> "subprocess.Popen[str]":
    def limit() -> None:
        if most is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    return subprocess.Popen(
        [*VNT, "bench", *map(str, words)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=limit,
    )


def signals(seed: int, place: Path) -> str:
    """A run that is killed at any moment leaves a whole store, and resumes ("late": had ended)."""
    rng, folder = random.Random(seed), place / "run"
    process = _start("run", *SIZE, "--out", folder)
    time.sleep(rng.uniform(0, 3))
    stop = rng.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
    late = process.poll() is not None
    if not late:
        os.killpg(process.pid, stop)
    error = process.communicate()[1]
    started = (folder / STORE_NAME).exists()
    require(not started or stop == signal.SIGKILL or "Traceback" not in error, error[-300:])
    if started:
        with suppress(UnplannedError):
            read_records(folder)
    again = _start("run", *SIZE, "--out", folder)
    error = again.communicate()[1]
    require(again.returncode == 0, f"does not resume: {error[-300:]}")
    require(export(folder, place / "rows.csv") == 12, "other rows")
    return "late" if late else "right"


def disks(seed: int, place: Path) -> str:
    """A command on a disk that is full leaves no half of a file and says so."""
    rng, out = random.Random(seed), place / "out.csv"
    words = rng.choice([("export", _finished(), out), ("pack", _finished(), place / "packed")])
    process = _start(*words, most=rng.randrange(1, 40_000))
    error = process.communicate()[1]
    require(process.returncode in (0, 2) and "Traceback" not in error, error[-300:])
    if process.returncode == 0 and words[0] == "export":
        export(_finished(), place / "whole.csv")
        require(out.read_bytes() == (place / "whole.csv").read_bytes(), "half a file")
    require(process.returncode == 0 or not out.exists(), "a file of a command that failed")
    return "right" if process.returncode == 0 else "refused"


PARTS: Mapping[str, Part] = {
    "stores": stores,
    "archives": archives,
    "signals": signals,
    "disks": disks,
}
