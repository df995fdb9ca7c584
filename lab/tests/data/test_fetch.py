"""Downloads from a server that misbehaves; nothing bad is ever placed."""

import gzip
import hashlib
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from lab_helpers.server import Server
from vntransfer.errors import DataError
from vntransfer.progress import reporting
from vntransfer_lab.data import download
from vntransfer_lab.data.cache import check, locate
from vntransfer_lab.data.download import Patience
from vntransfer_lab.data.entry import Compact, Entry, RemoteFile
from vntransfer_lab.data.fetch import fetch

BODY = bytes(range(256)) * 1024
QUICK = Patience(timeout=10, attempts=3, pause=0.01)
HASTY = Patience(timeout=1.0, attempts=3, pause=0.01)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(BODY).run() as running:
        yield running


def entry(*urls: str, known: bool = True, **more: object) -> Entry:
    name = urls[0].rpartition("/")[2]
    md5 = hashlib.md5(BODY).hexdigest() if known else None
    remote = RemoteFile(name, urls, "toy", md5=md5, **more)  # type: ignore[arg-type]
    return Entry("toy", "a toy", "domains", "nowhere:load", (remote,))


def visible(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.rglob("*") if p.is_file() and p.suffix != ".lock")


@pytest.mark.parametrize(
    "mode", ["good", "redirect", "cutonce", "norange", "wrongrange", "noetag", "busy", "nolength"]
)
def test_a_good_file_comes_whole(server: Server, tmp_path: Path, mode: str) -> None:
    (path,) = fetch(entry(server.url(mode)), tmp_path, patience=QUICK)
    assert path == tmp_path / "toy" / "data.bin"
    assert path.read_bytes() == BODY
    assert visible(tmp_path) == ["data.bin", "data.bin.vnt.json"]
    record = json.loads((tmp_path / "toy/data.bin.vnt.json").read_text())
    assert record["sha256"] == hashlib.sha256(BODY).hexdigest()
    assert record["size"] == len(BODY)


def test_a_stall_is_given_up_and_resumed(server: Server, tmp_path: Path) -> None:
    fetch(entry(server.url("stallonce")), tmp_path, patience=HASTY)
    assert server.ranges[0] == "bytes=98304-"  # a slow machine may stall once more


def test_a_redirect_to_what_is_not_encrypted_is_refused(tmp_path: Path) -> None:
    answer = SimpleNamespace(status_code=200, url="http://b/x", headers={}, reason="OK")
    with pytest.raises(DataError, match="not encrypted; refused"):
        download._judge("https://a/x", answer, None, 0, tmp_path / "x.part")
    answer.url = "https://b/x"
    assert download._judge("https://a/x", answer, None, 0, tmp_path / "x.part")[1] == 0


@pytest.mark.parametrize(("mode", "message"), [("good", "offers"), ("nolength", "sends more than")])
def test_too_many_bytes_are_refused(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, message: str
) -> None:
    monkeypatch.setattr(download, "MAX_BYTES", 1000)
    with pytest.raises(DataError, match=message):
        fetch(entry(server.url(mode)), tmp_path, patience=QUICK)


def test_a_full_disk_is_told_before(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(DataError, match="1000 are free; make room"):
        fetch(entry(server.url("good")), tmp_path, patience=QUICK)


def test_a_cut_download_goes_on_where_it_was(server: Server, tmp_path: Path) -> None:
    seen: list[int] = []
    with reporting(lambda name, done, total: seen.append(done)):
        fetch(entry(server.url("cutonce")), tmp_path, patience=QUICK)
    assert server.ranges == [f"bytes={len(BODY) // 2}-"]
    assert seen == sorted(seen)
    assert seen[-1] == len(BODY)


@pytest.mark.parametrize(
    ("mode", "match"),
    [
        ("cut", "ended after|connection"),
        ("long", "of 262644 bytes|connection"),
        ("short", "wrong hash"),
        ("corrupt", "wrong hash"),
        ("stall", "connection"),
        ("loop", "redirects"),
        ("missing", "404"),
        ("page", "web page"),
    ],
)
def test_a_bad_file_is_never_placed(server: Server, tmp_path: Path, mode: str, match: str) -> None:
    with pytest.raises(DataError, match=match) as caught:
        fetch(entry(server.url(mode)), tmp_path, patience=HASTY if mode == "stall" else QUICK)
    assert not (tmp_path / "toy" / "data.bin").exists()
    assert not locate(entry(server.url(mode)), tmp_path)
    assert str(tmp_path / "toy") in str(caught.value)


def test_a_known_size_is_checked_first(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has 262144 bytes, expected 5"):
        fetch(entry(server.url("good"), size=5), tmp_path, patience=QUICK)
    assert visible(tmp_path) == []


def test_a_known_size_is_checked_without_a_length(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="sent 262144 bytes, expected 5"):
        fetch(entry(server.url("nolength"), size=5), tmp_path, patience=QUICK)
    assert visible(tmp_path) == []


def test_a_mirror_helps(server: Server, tmp_path: Path) -> None:
    urls = [server.url(mode) for mode in ("missing", "corrupt", "cut", "good")]
    (path,) = fetch(entry(*urls), tmp_path, patience=QUICK)
    assert path.read_bytes() == BODY
    assert json.loads((tmp_path / "toy/data.bin.vnt.json").read_text())["url"] == urls[-1]


def test_a_part_of_another_version_is_not_continued(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError):
        fetch(entry(server.url("cut"), known=False), tmp_path, patience=QUICK)
    part = tmp_path / "toy/data.bin.part"
    assert 0 < part.stat().st_size < len(BODY)
    server.body = BODY[::-1]
    server.etag = '"new"'
    note = part.with_name("data.bin.part.json")
    note.write_text(note.read_text().replace("/cut/", "/good/"))
    (path,) = fetch(entry(server.url("good"), known=False), tmp_path, patience=QUICK)
    assert path.read_bytes() == server.body


def test_a_complete_part_needs_no_server(server: Server, tmp_path: Path) -> None:
    toy = entry(server.url("good"))
    part = tmp_path / "toy/data.bin.part"
    part.parent.mkdir()
    part.write_bytes(BODY)
    note = {"url": server.url("good"), "etag": None, "modified": None, "length": len(BODY)}
    part.with_name("data.bin.part.json").write_text(json.dumps(note))
    fetch(toy, tmp_path, patience=QUICK)
    assert not server.requests
    assert visible(tmp_path) == ["data.bin", "data.bin.vnt.json"]


def test_an_unreachable_server_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="tried 3 times"):
        fetch(entry("http://127.0.0.1:9/x.bin"), tmp_path, patience=QUICK)
    with pytest.raises(DataError, match="not an http or https address"):
        fetch(entry("file:///etc/passwd"), tmp_path, patience=QUICK)


def test_offline_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_such_name(*_: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_such_name)
    patient = Patience(timeout=10, attempts=3, pause=60)  # a second try would take a minute
    with pytest.raises(DataError, match="are you offline") as caught:
        fetch(entry("http://a.example/x.bin", "http://b.example/x.bin"), tmp_path, patience=patient)
    for part in ("http://a.example/x.bin", "http://b.example", str(tmp_path / "toy")):
        assert part in str(caught.value)


def test_without_a_known_hash_it_is_recorded_and_unverified(server: Server, tmp_path: Path) -> None:
    toy = entry(server.url("good"), known=False)
    fetch(toy, tmp_path, patience=QUICK)
    (found,) = locate(toy, tmp_path)
    assert check(found) == "unverified"
    found.path.write_bytes(BODY[:-1] + b"!")
    assert check(found) == "differs"


@pytest.mark.parametrize("name", ["a.csv.gz", "a.zip", "a.tar.gz"])
def test_without_a_known_hash_the_structure_is_checked(
    server: Server, tmp_path: Path, name: str
) -> None:
    box = io.BytesIO()
    with zipfile.ZipFile(box, "w") as archive:
        archive.writestr("x.txt", os.urandom(5000))
    server.body = box.getvalue() if name == "a.zip" else gzip.compress(os.urandom(5000))
    with pytest.raises(DataError, match=r"damaged|not a whole gzip"):
        fetch(entry(server.url("corrupt", name), known=False), tmp_path, patience=QUICK)
    with pytest.raises(DataError, match=r"damaged|not a whole gzip"):
        fetch(entry(server.url("short", name), known=False), tmp_path, patience=QUICK)
    assert visible(tmp_path) == []


def test_a_file_without_address_is_named(tmp_path: Path) -> None:
    toy = Entry("toy", "", "domains", "", (RemoteFile("mine.csv", (), "toy"),), notes="ask Ann")
    with pytest.raises(DataError, match=r"mine\.csv has no public address \(ask Ann\)"):
        fetch(toy, tmp_path)


def test_a_folder_that_cannot_be_written_is_named(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(DataError, match=r"cannot be written .* --to or VNT_DATA"):
        fetch(entry(server.url("good")), tmp_path / "file" / "data")


def test_archives_are_unpacked_on_request(server: Server, tmp_path: Path) -> None:
    box = io.BytesIO()
    with zipfile.ZipFile(box, "w") as archive:
        archive.writestr("in/x.txt", "hello")
    server.body = box.getvalue()
    toy = entry(server.url("good", "a.zip"), known=False)
    fetch(toy, tmp_path, unpacked=True, patience=QUICK)
    assert (tmp_path / "toy/a/in/x.txt").read_text() == "hello"


def test_what_is_present_is_not_downloaded(server: Server, tmp_path: Path) -> None:
    compact = Compact("small.npz")
    toy = entry(server.url("good"), compact=(compact,))
    (tmp_path / "small.npz").write_bytes(b"x")
    assert fetch(toy, tmp_path) == [tmp_path / "small.npz"]
    assert not server.requests
    fetch(toy, tmp_path, force=True)
    fetch(toy, tmp_path)
    assert server.requests["good"] == 1


def test_a_damaged_file_is_replaced_only_by_force(server: Server, tmp_path: Path) -> None:
    toy = entry(server.url("good"))
    (path,) = fetch(toy, tmp_path)
    path.write_bytes(b"damaged")
    with pytest.raises(DataError, match="--force"):
        fetch(toy, tmp_path)
    fetch(toy, tmp_path, force=True)
    assert path.read_bytes() == BODY


@pytest.mark.parametrize("mode", ["cut", "page", "missing"])
def test_force_keeps_the_old_file_if_the_new_one_is_bad(
    server: Server, tmp_path: Path, mode: str
) -> None:
    (path,) = fetch(entry(server.url("good"), known=False), tmp_path)
    with pytest.raises(DataError):
        fetch(entry(server.url(mode), known=False), tmp_path, force=True, patience=QUICK)
    assert path.read_bytes() == BODY


PROGRAM = """
import sys
from vntransfer_lab.data.entry import Entry, RemoteFile
from vntransfer_lab.data.fetch import fetch
url, md5, folder = sys.argv[1:]
fetch(Entry("toy", "", "domains", "", (RemoteFile("data.bin", (url,), "toy", md5=md5),)), folder)
"""


def start(server: Server, folder: Path) -> subprocess.Popen[bytes]:
    md5 = hashlib.md5(BODY).hexdigest()
    return subprocess.Popen([sys.executable, "-c", PROGRAM, server.url("good"), md5, str(folder)])


def wait_for(folder: Path, size: int) -> None:
    part = folder / "toy" / "data.bin.part"
    until = time.monotonic() + 180
    while not part.exists() or part.stat().st_size < size:
        assert time.monotonic() < until, "the download did not start"
        time.sleep(0.01)


def test_a_killed_download_is_resumed(server: Server, tmp_path: Path) -> None:
    server.body = BODY * 8
    server.etag = '"big"'
    server.delay = 0.02
    process = start(server, tmp_path)
    wait_for(tmp_path, 300_000)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert visible(tmp_path) == ["data.bin.part", "data.bin.part.json"]
    server.delay = 0.0
    toy = entry(server.url("good"), known=False)
    (path,) = fetch(toy, tmp_path, patience=QUICK)
    assert path.read_bytes() == server.body
    assert int(server.ranges[0].removeprefix("bytes=").rstrip("-")) >= 262_144
    assert visible(tmp_path) == ["data.bin", "data.bin.vnt.json"]


def test_two_processes_download_once(server: Server, tmp_path: Path) -> None:
    server.delay = 0.01
    both = [start(server, tmp_path), start(server, tmp_path)]
    assert [process.wait(180) for process in both] == [0, 0]
    assert server.requests["good"] == 1
    assert (tmp_path / "toy/data.bin").read_bytes() == BODY
