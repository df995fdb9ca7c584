"""Downloads from a server that misbehaves; nothing bad is ever placed."""

import gzip
import hashlib
import io
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

import pytest

from lab_helpers.server import Server
from vntransfer.errors import DataError
from vntransfer_lab.data.fetch import Patience, fetch
from vntransfer_lab.data.files import locate
from vntransfer_lab.data.registry import Compact, Entry, RemoteFile

BODY = bytes(range(256)) * 1024
ONCE = Patience(silence=10, retries=0)
TWICE = Patience(silence=10, retries=1)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(BODY).run() as running:
        yield running


def entry(*urls: str, known: bool = True, **more: object) -> Entry:
    name = urls[0].rpartition("/")[2]
    hashes = (f"md5:{hashlib.md5(BODY).hexdigest()}",) if known else ()
    remote = RemoteFile(name, "toy", urls=urls, hashes=hashes, **more)  # type: ignore[arg-type]
    return Entry("toy", "a toy", "nowhere:load", files=(remote,))


def visible(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.rglob("*") if p.is_file() and p.suffix != ".lock")


@pytest.mark.parametrize("mode", ["good", "redirect", "cutonce", "busy", "nolength"])
def test_a_good_file_comes_whole(server: Server, tmp_path: Path, mode: str) -> None:
    (path,) = fetch(entry(server.url(mode)), tmp_path, patience=TWICE)
    assert path == tmp_path / "toy" / "data.bin"
    assert path.read_bytes() == BODY
    assert visible(tmp_path) == ["data.bin"]


def test_progress_is_reported(server: Server, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int | None]] = []
    fetch(entry(server.url("good")), tmp_path, progress=lambda *report: seen.append(report))
    assert seen == sorted(seen)
    assert seen[-1] == ("data.bin", len(BODY), len(BODY))


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A certificate of this machine, made and trusted for this test alone."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    key, made, both = (tmp_path / name for name in ("key.pem", "made.pem", "both.pem"))
    options = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(made)]
    subprocess.run(["openssl", "req", *options, *names], check=True, capture_output=True)
    both.write_bytes(key.read_bytes() + made.read_bytes())
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(made))
    return both


def test_a_redirect_to_what_is_not_encrypted_is_refused(
    server: Server, tmp_path: Path, certificate: Path
) -> None:
    with Server(BODY, certificate).run() as encrypted:
        encrypted.elsewhere = server.url("good")
        with pytest.raises(DataError, match="not encrypted; refused"):
            fetch(entry(encrypted.url("redirect")), tmp_path / "data", patience=ONCE)
        assert not server.requests, "not even asked"
        encrypted.elsewhere = encrypted.url("good")
        (path,) = fetch(entry(encrypted.url("redirect")), tmp_path / "data", patience=ONCE)
        assert path.read_bytes() == BODY


@pytest.mark.parametrize("mode", ["good", "nolength"])
@pytest.mark.parametrize("size", [None, 1000])
def test_too_many_bytes_are_refused(
    server: Server, tmp_path: Path, mode: str, size: int | None
) -> None:
    strict = Patience(silence=10, most=1000)
    with pytest.raises(DataError, match="1000"):
        fetch(entry(server.url(mode), size=size), tmp_path, patience=strict)
    assert server.requests[mode] == 1, "another attempt would not help"
    assert visible(tmp_path) == []


def test_too_few_bytes_are_refused(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"{len(BODY)} bytes.*{len(BODY) + 5}"):
        fetch(entry(server.url("nolength"), size=len(BODY) + 5), tmp_path, patience=ONCE)
    assert visible(tmp_path) == []


@pytest.mark.parametrize("mode", ["drip", "cut", "busy"])
def test_the_total_time_is_limited(server: Server, tmp_path: Path, mode: str) -> None:
    server.requests["busy"] = -1000  # always
    start = time.monotonic()
    hasty = Patience(silence=60, total=0.7, retries=1000)
    with pytest.raises(DataError, match=r"longer than 0\.7 seconds"):
        fetch(entry(server.url(mode)), tmp_path, patience=hasty)
    assert time.monotonic() - start < 30
    assert visible(tmp_path) == []


@pytest.mark.parametrize(
    ("mode", "match"),
    [
        ("cut", "connection"),
        ("long", "connection"),
        ("short", "hash"),
        ("corrupt", "hash"),
        ("page", "hash"),
        ("stall", "timed out"),
        ("loop", "redirects"),
        ("missing", "404"),
    ],
)
def test_a_bad_file_is_never_placed(server: Server, tmp_path: Path, mode: str, match: str) -> None:
    patience = Patience(silence=1 if mode == "stall" else 10, retries=0)
    with pytest.raises(DataError, match=match) as caught:
        fetch(entry(server.url(mode)), tmp_path, patience=patience)
    assert visible(tmp_path) == []
    assert not locate(entry(server.url(mode)), tmp_path)
    for part in (server.url(mode), str(tmp_path / "toy")):
        assert part in str(caught.value)


def test_a_mirror_helps(server: Server, tmp_path: Path) -> None:
    urls = [server.url(mode) for mode in ("missing", "corrupt", "cut", "good")]
    (path,) = fetch(entry(*urls), tmp_path, patience=ONCE)
    assert path.read_bytes() == BODY


def test_an_unreachable_server_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"http://127\.0\.0\.1:9/x\.bin"):
        fetch(entry("http://127.0.0.1:9/x.bin"), tmp_path, patience=ONCE)
    with pytest.raises(DataError, match="not an http or https address"):
        fetch(entry("file:///etc/passwd"), tmp_path, patience=TWICE)


def test_offline_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_such_name(*_: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_such_name)
    patient = Patience(retries=1000)  # the pauses would take hours
    with pytest.raises(DataError, match="are you offline") as caught:
        fetch(entry("http://a.example/x.bin", "http://b.example/x.bin"), tmp_path, patience=patient)
    for part in ("http://a.example/x.bin", "http://b.example", str(tmp_path / "toy")):
        assert part in str(caught.value)


@pytest.mark.parametrize("name", ["a.csv.gz", "a.zip", "a.tar.gz"])
@pytest.mark.parametrize("mode", ["corrupt", "short", "page"])
def test_without_a_known_hash_the_structure_is_checked(
    server: Server, tmp_path: Path, name: str, mode: str
) -> None:
    box = io.BytesIO()
    with zipfile.ZipFile(box, "w") as archive:
        archive.writestr("x.txt", os.urandom(5000))
    server.body = box.getvalue() if name == "a.zip" else gzip.compress(os.urandom(5000))
    with pytest.raises(DataError, match="damaged"):
        fetch(entry(server.url(mode, name), known=False), tmp_path, patience=ONCE)
    assert visible(tmp_path) == []


def test_a_file_without_address_is_named(tmp_path: Path) -> None:
    toy = Entry("toy", "", "", files=(RemoteFile("mine.csv", "toy"),), notes="ask Ann")
    with pytest.raises(DataError, match=r"mine\.csv.*ask Ann"):
        fetch(toy, tmp_path)


def test_a_folder_that_cannot_be_written_is_named(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(DataError, match=r"cannot be written .* --to or VNT_DATA"):
        fetch(entry(server.url("good")), tmp_path / "file" / "data")


def test_what_is_present_is_not_downloaded(server: Server, tmp_path: Path) -> None:
    toy = entry(server.url("good"), compact=Compact("small.npz"))
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


@pytest.mark.parametrize("mode", ["cut", "missing"])
def test_force_keeps_the_old_file_if_the_new_one_is_bad(
    server: Server, tmp_path: Path, mode: str
) -> None:
    (path,) = fetch(entry(server.url("good"), known=False), tmp_path)
    with pytest.raises(DataError):
        fetch(entry(server.url(mode), known=False), tmp_path, force=True, patience=ONCE)
    assert path.read_bytes() == BODY


PROGRAM = """
import sys
from vntransfer_lab.data.fetch import fetch
from vntransfer_lab.data.registry import Entry, RemoteFile
url, known, folder = sys.argv[1:]
remote = RemoteFile("data.bin", "toy", urls=(url,), hashes=(known,))
fetch(Entry("toy", "", "", files=(remote,)), folder)
"""


def start(server: Server, folder: Path) -> subprocess.Popen[bytes]:
    known = f"md5:{hashlib.md5(BODY).hexdigest()}"
    return subprocess.Popen([sys.executable, "-c", PROGRAM, server.url("good"), known, str(folder)])


def test_a_killed_download_leaves_nothing_that_is_taken_for_the_file(
    server: Server, tmp_path: Path
) -> None:
    server.delay = 0.1
    process = start(server, tmp_path)
    until = time.monotonic() + 180
    while not server.requests["good"] or not visible(tmp_path):
        assert time.monotonic() < until, "the download did not start"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    toy = entry(server.url("good"))
    assert not locate(toy, tmp_path)
    server.delay = 0.0
    (path,) = fetch(toy, tmp_path)
    assert path.read_bytes() == BODY
    assert visible(tmp_path) == ["data.bin"]


def test_two_processes_download_once(server: Server, tmp_path: Path) -> None:
    server.delay = 0.01
    both = [start(server, tmp_path), start(server, tmp_path)]
    assert [process.wait(180) for process in both] == [0, 0]
    assert server.requests["good"] == 1
    assert (tmp_path / "toy/data.bin").read_bytes() == BODY
