"""``vnt data`` as a user types it; the network is a local server."""

import gzip
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from helpers.imports import HEAVY, loaded_after
from lab_helpers.makers import MAKERS
from lab_helpers.server import Server
from vntransfer import cli
from vntransfer.errors import VnError
from vntransfer_lab.data.registry import DATASETS, Compact, Entry, RemoteFile

ROWS = np.arange(40.0).reshape(20, 2)
BODY = gzip.compress("".join(f"{a},{b}\n" for a, b in ROWS).encode(), mtime=0)


def load_toy(files: dict[str, Path], *, seed: int = 0) -> Any:
    """Load halves of a table.

    Parameters
    ----------
    files
        Found files.
    seed
        Nothing.
    """
    from vntransfer_lab.data import Domains, Provenance
    from vntransfer_lab.data.numeric_csv import read_numbers

    rows = read_numbers(files["toy.csv.gz"], columns=2)
    half = len(rows) // 2
    domains = {"low": (rows[:half, :1], rows[:half, 1]), "high": (rows[half:, :1], rows[half:, 1])}
    return Domains("toy", domains, provenance=Provenance((f"halves, seed {seed}",)))


def vnt(*arguments: str) -> Any:
    result = CliRunner().invoke(cli.app, ["data", *arguments])
    if result.exception is not None and not isinstance(result.exception, VnError | SystemExit):
        raise result.exception
    return result


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server(BODY).run() as server:
        remote = RemoteFile(
            "toy.csv.gz",
            "toys",
            urls=(server.url("good", "toy.csv.gz"),),
            hashes=(f"md5:{hashlib.md5(BODY).hexdigest()}",),
            compact=Compact("few.csv.gz", partial=True),
        )
        entry = Entry("toy", "numbers", f"{__name__}:load_toy", files=(remote,), license="free")
        monkeypatch.setitem(DATASETS, "toy", entry)
        monkeypatch.setenv("VNT_DATA", str(tmp_path))
        yield server


def state(name: str, *arguments: str) -> str:
    lines = vnt("list", *arguments).stdout.splitlines()
    (line,) = [line for line in lines if line.startswith(f"{name} ")]
    return " ".join(line.split()[1:-2])


def test_a_set_from_absent_to_verified(toy: Server, tmp_path: Path) -> None:
    assert state("toy") == "absent -"
    shown = vnt("show", "toy").stdout
    assert f"put it into {tmp_path / 'toys'}" in shown
    assert toy.url("good", "toy.csv.gz") in shown
    fetched = vnt("fetch", "toy", "synthetic")
    assert fetched.exit_code == 0
    assert str(tmp_path / "toys" / "toy.csv.gz") in fetched.stdout
    assert "synthetic: embedded" in fetched.stdout
    assert state("toy") == "present official verified"
    shown = vnt("show", "toy", "--set", "seed=7").stdout
    for part in (
        "low: 10 rows",
        "response  y: mean 20,",
        "halves, seed 7",
        "license   free",
        "seed: Nothing. [default: 0]",
        "verified",
    ):
        assert part in shown


def test_a_damaged_file_is_listed_and_replaced_by_force(toy: Server, tmp_path: Path) -> None:
    vnt("fetch", "toy")
    (tmp_path / "toys" / "toy.csv.gz").write_bytes(BODY[:-1] + b"!")
    assert state("toy") == "present official differs"
    assert vnt("fetch", "toy").exit_code == 1
    assert vnt("fetch", "toy", "--force").exit_code == 0
    assert state("toy") == "present official verified"


def test_partial_files_are_shown_and_noted(toy: Server, tmp_path: Path) -> None:
    (tmp_path / "few.csv.gz").write_bytes(BODY)
    assert state("toy", "--from", str(tmp_path)) == "present partial unverified"
    assert "only some of the rows" in vnt("show", "toy").stderr


def test_a_failed_fetch_does_not_stop_the_others(toy: Server, tmp_path: Path) -> None:
    toy.body = b"something else"
    result = vnt("fetch", "toy", "synthetic", "--to", str(tmp_path / "new"))
    assert "no address provided an intact file" in result.stderr
    assert "synthetic: embedded" in result.stdout
    assert str(result.exception) == "not downloaded: toy. The reasons are above."


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["show", "sinthetic"], "did you mean 'synthetic'"),
        (["fetch"], "none given"),
        (["show", "synthetic", "--set", "seed"], "expected key=value"),
        (["show", "synthetic", "--set", "sed=1"], "did you mean 'seed'"),
        (["list", "--from", "/no/such/folder"], "is not a folder"),
    ],
)
def test_mistakes_are_sentences(arguments: list[str], match: str) -> None:
    result = vnt(*arguments)
    assert match in f"{result.exception} {result.stderr}"


@pytest.mark.parametrize(
    "code",
    [
        "import vntransfer_lab.data, vntransfer_lab.data.registry",
        "from vntransfer.cli import app\ntry:\n    app(['data', 'list'])\nexcept SystemExit: pass",
    ],
)
def test_looking_at_the_registry_is_light(code: str) -> None:
    assert not loaded_after(code) & (HEAVY | {"requests", "filelock", "pyarrow", "PIL"})


def test_show_says_where_to_put_what_is_missing(tmp_path: Path) -> None:
    shown = vnt("show", "amazon4", "--from", str(tmp_path)).stdout
    assert f"put it into {tmp_path / 'amazon'}" in shown


def test_tasks_of_a_stream_are_shown(tmp_path: Path) -> None:
    MAKERS["mnistR"](tmp_path)
    sizes = ("--set", "n_train=20", "--set", "max_angle=180")
    shown = vnt("show", "mnistR", "--from", str(tmp_path), *sizes)
    assert shown.stdout.count("degrees, 20 + 40 rows") == 10
    assert "has an unknown hash" in shown.stderr


def test_every_set_is_listed_and_shown(tmp_path: Path) -> None:
    listed = vnt("list").stdout
    for name in DATASETS:
        assert f"\n{name} " in listed
        assert vnt("show", name, "--from", str(tmp_path)).exit_code == 0
    assert "embedded" in listed


def test_genuine_files_are_verified(real: Path) -> None:
    assert state("mnistP", "--from", str(real)).startswith("present official verified")
    assert state("fashionP", "--from", str(real)).startswith("present official verified")
    assert state("ct_slices", "--from", str(real)).startswith("present partial verified")
