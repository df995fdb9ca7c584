"""Files are found in any form, hashed once, and judged by the hashes that are known."""

import gzip
import hashlib
import os
from pathlib import Path

import pytest

from vntransfer.errors import ArgumentError, DataError, DataWarning
from vntransfer_lab.data import cache, load
from vntransfer_lab.data.base import Provenance
from vntransfer_lab.data.cache import (
    check,
    data_home,
    digest,
    find,
    forget,
    locate,
    lookup,
    require,
    trace,
)
from vntransfer_lab.data.entry import Compact, Entry, RemoteFile
from vntransfer_lab.data.registry import DATASETS

CONTENT = b"content"


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def toy(**more: object) -> Entry:
    options: dict[str, object] = {
        "also": ("data.txt",),
        "compact": (Compact("small.npz", sha(b"small")), Compact("few.npz", partial=True)),
    } | more
    remote = RemoteFile("data.zip", ("https://a.example/data.zip",), "toy", **options)  # type: ignore[arg-type]
    return Entry("toy", "a toy", "domains", "nowhere:load", (remote,), license="free")


def put(root: Path, *names: str, content: bytes = CONTENT) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


@pytest.mark.parametrize(
    ("present", "found", "form"),
    [
        (["toy/data.zip", "toy/small.npz"], "toy/data.zip", "official"),
        (["data.zip"], "data.zip", "official"),
        (["toy/data.txt", "toy/few.npz"], "toy/data.txt", "official"),
        (["toy/data/inside.txt"], "toy/data", "official"),
        (["toy/small.npz", "toy/few.npz"], "toy/small.npz", "compact"),
        (["few.npz"], "few.npz", "partial"),
    ],
)
def test_any_form_is_found(tmp_path: Path, present: list[str], found: str, form: str) -> None:
    put(tmp_path, *present)
    (item,) = locate(toy(), tmp_path)
    assert (item.path, item.form) == (tmp_path / found, form)


def test_the_folder_of_a_set_is_not_an_unpacked_archive(tmp_path: Path) -> None:
    remote = RemoteFile("toy.zip", (), "toy", compact=(Compact("small.npz"),))
    put(tmp_path, "toy/small.npz")
    (item,) = locate(Entry("toy", "", "domains", "", (remote,)), tmp_path)
    assert item.path.name == "small.npz"


def test_a_file_of_another_set_is_not_taken_for_its_namesake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = (
        Entry(name, "", "domains", "", (RemoteFile("train.gz", (), name, sha256=sha(content)),))
        for name, content in (("ours", CONTENT), ("theirs", b"theirs"))
    )
    monkeypatch.setitem(DATASETS, "ours", ours)
    monkeypatch.setitem(DATASETS, "theirs", theirs)
    put(tmp_path, "train.gz")
    assert locate(ours, tmp_path)
    assert not locate(theirs, tmp_path)
    put(tmp_path, "theirs/train.gz")
    assert check(locate(theirs, tmp_path)[0]) == "differs"


def test_a_whole_file_anywhere_beats_a_partial_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VNT_DATA", str(tmp_path / "mine"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    put(tmp_path, "mine/toy/few.npz", "cache/vntransfer/data/toy/small.npz")
    assert find(toy())["data.zip"].name == "small.npz"
    put(tmp_path, "mine/small.npz")
    assert find(toy())["data.zip"] == tmp_path / "mine" / "small.npz"


def test_an_absent_file_is_an_error_that_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VNT_DATA", str(tmp_path))
    with pytest.raises(DataError) as caught:
        find(toy())
    for part in ("https://a.example/data.zip", "data.zip or small.npz", str(tmp_path / "toy")):
        assert part in str(caught.value)
    with pytest.raises(DataError, match="is not a folder"):
        find(toy(), tmp_path / "nowhere")
    assert find(toy(optional=True)) == {}


def test_a_partial_file_warns(tmp_path: Path) -> None:
    put(tmp_path, "few.npz")
    with pytest.warns(DataWarning, match=r"few\.npz holds only a part"):
        require(toy(), tmp_path)


def test_hashes_are_remembered_until_the_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "a")
    assert digest(tmp_path / "a") == sha(CONTENT)
    assert digest(tmp_path / "a", "md5") == hashlib.md5(CONTENT).hexdigest()
    with monkeypatch.context() as patch:
        patch.setattr(cache, "file_hash", None)
        assert digest(tmp_path / "a") == sha(CONTENT)
    put(tmp_path, "a", content=b"changed")
    assert digest(tmp_path / "a") == sha(b"changed")
    state = (tmp_path / "a").stat()
    put(tmp_path, "a", content=b"CHANGED")
    os.utime(tmp_path / "a", ns=(state.st_atime_ns, state.st_mtime_ns))
    forget(tmp_path / "a")
    assert digest(tmp_path / "a") == sha(b"CHANGED")


def test_a_damaged_memo_is_ignored(tmp_path: Path, derived_folder: Path) -> None:
    put(tmp_path, "a")
    before = set((derived_folder / "hashes").glob("*")) if derived_folder.exists() else set()
    digest(tmp_path / "a")
    (memo,) = set((derived_folder / "hashes").glob("*")) - before
    for junk in ("{", "[]", "null"):
        memo.write_text(junk)
        assert digest(tmp_path / "a") == sha(CONTENT)


def test_a_folder_has_a_hash(tmp_path: Path) -> None:
    put(tmp_path, "d/a", "d/b/c")
    first = digest(tmp_path / "d")
    put(tmp_path, "d/b/c", content=b"other")
    assert digest(tmp_path / "d") != first


def test_files_are_judged_by_known_hashes(tmp_path: Path) -> None:
    put(tmp_path, "data.zip")
    md5 = hashlib.md5(CONTENT).hexdigest()

    def judged(entry: Entry) -> str:
        (item,) = locate(entry, tmp_path)
        return check(item)

    assert judged(toy()) == "unverified"
    assert judged(toy(sha256=sha(CONTENT))) == "verified"
    assert judged(toy(md5=md5)) == "verified"
    assert judged(toy(md5="0" * 32)) == "differs"
    assert judged(toy(md5="0" * 32, compact=(Compact("data.zip", sha(CONTENT)),))) == "verified"
    (tmp_path / "data.zip").unlink()
    put(tmp_path, "data.txt")
    assert judged(toy(md5=md5)) == "unverified"
    (tmp_path / "data.txt").unlink()
    put(tmp_path, "small.npz", content=b"small")
    assert judged(toy()) == "verified"
    put(tmp_path, "small.npz", content=b"else")
    assert judged(toy()) == "differs"


def test_the_content_of_a_gzip_file_counts(tmp_path: Path) -> None:
    remote = RemoteFile(
        "a.gz", (), "toy", md5="0" * 32, content_md5=hashlib.md5(CONTENT).hexdigest()
    )
    put(tmp_path, "a.gz", content=gzip.compress(CONTENT, 1))
    (item,) = locate(Entry("toy", "", "domains", "", (remote,)), tmp_path)
    assert check(item) == "verified"
    put(tmp_path, "a.gz", content=b"no gzip at all")
    assert check(item) == "differs"


def test_provenance_is_completed(tmp_path: Path) -> None:
    put(tmp_path, "small.npz", content=b"small")
    full = trace(toy(), locate(toy(), tmp_path), Provenance(built=("made",)))
    assert full.verified
    assert full.sha256 == {"small.npz": sha(b"small")}
    assert full.sources == ("https://a.example/data.zip",)
    assert all(e.origin or any(r.urls for r in e.files) for e in DATASETS.values() if e.files)
    assert full.built == ("made",)
    put(tmp_path, "small.npz", content=b"else")
    with pytest.warns(DataWarning, match="another hash"):
        assert not trace(toy(), locate(toy(), tmp_path), Provenance()).verified


def test_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VNT_DATA", "~/somewhere")
    assert data_home() == Path.home() / "somewhere"
    monkeypatch.delenv("VNT_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cache.sys, "platform", "linux")
    assert data_home() == tmp_path / "vntransfer" / "data"
    monkeypatch.setattr(cache.sys, "platform", "darwin")
    assert data_home() == Path.home() / "Library/Caches/vntransfer/data"
    monkeypatch.setattr(cache.sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert data_home() == tmp_path / "vntransfer" / "data"


def test_load_by_name() -> None:
    assert not load("synthetic", n_samples=10).provenance.verified
    with pytest.raises(ArgumentError, match="no data set 'sinthetic'; did you mean 'synthetic'"):
        lookup("sinthetic")
    with pytest.raises(ArgumentError, match="no such parameter"):
        load("synthetic", samples=10)
