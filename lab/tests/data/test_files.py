"""Files are found in any form, hashed once, and judged by the hashes that are known."""

import hashlib
import sys
from pathlib import Path

import pytest

from vntransfer.errors import ArgumentError, DataError, DataWarning
from vntransfer_lab.data import derived, load
from vntransfer_lab.data.base import Provenance
from vntransfer_lab.data.derived import digest
from vntransfer_lab.data.files import check, data_home, locate, require, trace
from vntransfer_lab.data.registry import DATASETS, Compact, Entry, RemoteFile, lookup

CONTENT = b"content"


FEW = Compact("few.npz", partial=True)


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def known(content: bytes) -> str:
    return f"sha256:{sha(content)}"


def toy(**more: object) -> Entry:
    options: dict[str, object] = {
        "urls": ("https://a.example/data.zip",),
        "also": ("data.txt",),
        "compact": Compact("small.npz", known(b"small")),
    } | more
    return files_of("toy", RemoteFile("data.zip", "toy", **options))  # type: ignore[arg-type]


def files_of(name: str, remote: RemoteFile) -> Entry:
    return Entry(name, "a toy", "nowhere:load", files=(remote,), license="free")


def put(root: Path, *names: str, content: bytes = CONTENT) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


@pytest.mark.parametrize(
    ("present", "found", "form"),
    [
        (["toy/data.zip", "toy/small.npz"], "toy/data.zip", "official"),
        (["data.zip"], "data.zip", "official"),
        (["toy/data.txt", "toy/small.npz"], "toy/data.txt", "official"),
        (["toy/data/inside.txt"], "toy/data", "official"),
        (["toy/small.npz"], "toy/small.npz", "compact"),
    ],
)
def test_any_form_is_found(tmp_path: Path, present: list[str], found: str, form: str) -> None:
    put(tmp_path, *present)
    (item,) = locate(toy(), tmp_path)
    assert (item.path, item.form) == (tmp_path / found, form)


def test_the_folder_of_a_set_is_not_an_unpacked_archive(tmp_path: Path) -> None:
    remote = RemoteFile("toy.zip", "toy", compact=Compact("small.npz"))
    put(tmp_path, "toy/small.npz")
    (item,) = locate(files_of("toy", remote), tmp_path)
    assert item.path.name == "small.npz"


def test_a_file_of_another_set_is_not_taken_for_its_namesake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = (
        files_of(name, RemoteFile("train.gz", name, hashes=(known(content),)))
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
    partial = toy(compact=FEW)
    put(tmp_path, "mine/toy/few.npz")
    assert [(item.path.name, item.form) for item in locate(partial)] == [("few.npz", "partial")]
    put(tmp_path, "cache/vntransfer/data/toy/data.zip")
    assert locate(partial)[0].path.name == "data.zip"
    put(tmp_path, "mine/data.zip")
    assert locate(partial)[0].path == tmp_path / "mine" / "data.zip"


def test_an_absent_file_is_an_error_that_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VNT_DATA", str(tmp_path))
    with pytest.raises(DataError) as caught:
        require(toy())
    for part in ("https://a.example/data.zip", "data.zip or small.npz", str(tmp_path / "toy")):
        assert part in str(caught.value)
    with pytest.raises(DataError, match="is not a folder"):
        require(toy(), tmp_path / "nowhere")
    assert require(toy(optional=True)) == []


def test_a_partial_file_warns(tmp_path: Path) -> None:
    put(tmp_path, "few.npz")
    with pytest.warns(DataWarning, match=r"few\.npz"):
        require(toy(compact=FEW), tmp_path)


def test_hashes_are_remembered_until_the_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "a")
    assert digest(tmp_path / "a") == sha(CONTENT)
    assert digest(tmp_path / "a", "md5") == hashlib.md5(CONTENT).hexdigest()
    with monkeypatch.context() as patch:
        patch.setattr(derived, "file_hash", None)
        assert digest(tmp_path / "a") == sha(CONTENT)
    put(tmp_path, "a", content=b"changed")
    assert digest(tmp_path / "a") == sha(b"changed")


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
    md5, wrong = f"md5:{hashlib.md5(CONTENT).hexdigest()}", f"md5:{'0' * 32}"

    def judged(entry: Entry) -> str:
        (item,) = locate(entry, tmp_path)
        return check(item)

    assert judged(toy()) == "unverified"
    assert judged(toy(hashes=(known(CONTENT),))) == "verified"
    assert judged(toy(hashes=(md5,))) == "verified"
    assert judged(toy(hashes=(wrong,))) == "differs"
    assert judged(toy(hashes=(wrong, known(CONTENT)))) == "verified"
    (tmp_path / "data.zip").unlink()
    put(tmp_path, "data.txt")
    assert judged(toy(hashes=(md5,))) == "unverified"
    (tmp_path / "data.txt").unlink()
    put(tmp_path, "small.npz", content=b"small")
    assert judged(toy()) == "verified"
    put(tmp_path, "small.npz", content=b"else")
    assert judged(toy()) == "differs"


def test_provenance_is_completed(tmp_path: Path) -> None:
    put(tmp_path, "small.npz", content=b"small")
    full = trace(toy(), locate(toy(), tmp_path), Provenance(built=("made",)))
    assert full.verified
    assert full.sha256 == {"small.npz": sha(b"small")}
    assert full.sources == ("https://a.example/data.zip",)
    assert all(e.origin or any(r.urls for r in e.files) for e in DATASETS.values() if e.files)
    assert full.built == ("made",)
    put(tmp_path, "small.npz", content=b"else")
    with pytest.warns(DataWarning, match="unknown hash"):
        assert not trace(toy(), locate(toy(), tmp_path), Provenance()).verified


def test_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VNT_DATA", "~/somewhere")
    assert data_home() == Path.home() / "somewhere"
    assert data_home("~/else") == Path.home() / "else"
    monkeypatch.delenv("VNT_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if sys.platform == "linux":
        assert data_home() == tmp_path / "vntransfer" / "data"


def test_load_by_name() -> None:
    assert not load("synthetic", n_samples=10).provenance.verified
    with pytest.raises(ArgumentError, match=r"'sinthetic'.*did you mean 'synthetic'"):
        lookup("sinthetic")
    with pytest.raises(ArgumentError, match=r"parameter: .*'samples'"):
        load("synthetic", samples=10)


def test_every_record_can_be_used() -> None:
    for entry in DATASETS.values():
        assert entry.title
        assert entry.license
        assert entry.citation or not entry.files
        for name, meaning in entry.parameters.items():
            assert not meaning.startswith(" "), f"{entry.name}: {name} is not documented"
        for remote in entry.files:
            lengths = {"md5": 32, "sha256": 64}
            known = [*remote.hashes, *([remote.compact.hash] if remote.compact else [])]
            for text in filter(None, known):
                kind, _, value = text.partition(":")
                assert len(bytes.fromhex(value)) * 2 == lengths[kind]
