"""Where data files are: found in the official layout or in a compact form, and hashed once.

Data files are looked for in ``folder``, in ``VNT_DATA`` or in the platform's user cache, and are
never written to by reading. What is derived from them (hashes, parsed arrays) goes to
``VNT_CACHE`` or the user cache.
"""

import gzip
import hashlib
import json
import os
import sys
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from vntransfer.errors import ArgumentError, DataError, DataWarning
from vntransfer.storage.files import atomic_write, file_hash
from vntransfer_lab.data.archives import archive_stem
from vntransfer_lab.data.base import Provenance
from vntransfer_lab.data.entry import Entry, RemoteFile

Form = Literal["official", "compact", "partial"]
Check = Literal["verified", "unverified", "differs"]
HashKind = Literal["sha256", "md5", "content_md5"]


@dataclass(frozen=True)
class Found:
    """A file (or unpacked folder) of a data set on disk."""

    remote: RemoteFile
    path: Path
    form: Form


def lookup(name: str) -> Entry:
    """Record of a data set.

    Examples
    --------
    >>> lookup("synthetic").kind
    'domains'
    """
    from vntransfer_lab.data.registry import DATASETS

    if name not in DATASETS:
        close = get_close_matches(name, DATASETS, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(DATASETS)}"
        raise ArgumentError(f"name: no data set {name!r}; {hint}")
    return DATASETS[name]


def user_cache() -> Path:
    """Cache folder of this user on this platform."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "vntransfer"


def data_home() -> Path:
    """Folder that downloads go to: ``VNT_DATA`` or ``data`` in the user cache."""
    return Path(os.environ.get("VNT_DATA") or user_cache() / "data").expanduser()


def derived_home() -> Path:
    """Folder of hashes and parsed arrays: ``VNT_CACHE`` or ``derived`` in the user cache."""
    return Path(os.environ.get("VNT_CACHE") or user_cache() / "derived").expanduser()


def _roots(folder: str | Path | None) -> list[Path]:
    if folder is not None:
        if not Path(folder).expanduser().is_dir():
            raise DataError(f"folder: {str(folder)!r} is not a folder; give the one with the data")
        return [Path(folder).expanduser()]
    return list(dict.fromkeys([data_home(), user_cache() / "data"]))


def _candidates(remote: RemoteFile, root: Path) -> Iterator[Found]:
    """Every place and form of a file below one root, the best first; existence unchecked."""
    official = [remote.name, *remote.also]
    if (stem := archive_stem(remote.name)) is not None:
        official.append(stem)  # unpacked beside the archive
    names: list[tuple[str, Form]] = [(name, "official") for name in official]
    names += [(c.name, "partial" if c.partial else "compact") for c in remote.compact]
    for name, form in names:
        yield Found(remote, root / remote.folder / name, form)
        if name != remote.folder:
            yield Found(remote, root / name, form)


def locate(entry: Entry, folder: str | Path | None = None) -> list[Found]:
    """Files of a data set that are present, each in its best form.

    A whole file anywhere is better than a partial one; otherwise ``folder`` or ``VNT_DATA``
    comes before the user cache and the official form before a compact one.
    """
    found = []
    for remote in entry.files:
        present = [
            item
            for root in _roots(folder)
            for item in _candidates(remote, root)
            if item.path.exists() and not _belongs_elsewhere(item)
        ]
        present.sort(key=lambda item: item.form == "partial")
        found += present[:1]
    return found


def _belongs_elsewhere(item: Found) -> bool:
    """Whether a file outside its set's folder is another set's (MNIST and Fashion-MNIST)."""
    from vntransfer_lab.data.registry import DATASETS

    if item.path.parent.name == item.remote.folder:
        return False
    namesakes = {
        remote
        for other in DATASETS.values()
        for remote in other.files
        if remote.name == item.path.name and remote.folder != item.remote.folder
    }
    return any(check(replace(item, remote=remote)) == "verified" for remote in namesakes)


def find(entry: Entry, folder: str | Path | None = None) -> dict[str, Path]:
    """Paths of a data set's files by their official names, whatever form they have.

    Parameters
    ----------
    entry
        Record of the data set.
    folder
        Look only here; default ``VNT_DATA``, then the user cache.

    Returns
    -------
    dict
        `RemoteFile.name` -> path; its file name tells the form.

    Raises
    ------
    DataError
        When a file is absent: names its address, its name and the folder to put it in.

    Examples
    --------
    >>> find(lookup("synthetic"))
    {}
    """
    return {item.remote.name: item.path for item in require(entry, folder)}


def require(entry: Entry, folder: str | Path | None = None) -> list[Found]:
    """`locate`, with an error where a file is absent and a warning where it is partial."""
    found = locate(entry, folder)
    present = {item.remote.name for item in found}
    for remote in entry.files:
        if remote.name not in present and not remote.optional:
            home = Path(folder).expanduser() if folder is not None else data_home()
            names = dict.fromkeys((remote.name, *(c.name for c in remote.compact)))
            get = "it has no public address: "
            if remote.urls:
                get = f"run `vnt data fetch {entry.name}`, or download {remote.urls[0]} and "
            raise DataError(
                f"{entry.name}: {remote.name} is absent; {get}put {' or '.join(names)} into "
                f"{home / remote.folder}"
            )
    if partial := [item.path.name for item in found if item.form == "partial"]:
        warnings.warn(
            f"{entry.name}: {', '.join(partial)} holds only a part of the rows; run "
            f"`vnt data fetch {entry.name}` for all of them",
            DataWarning,
            stacklevel=3,
        )
    return found


def _stamp(path: Path) -> list[int]:
    """Count, bytes and latest change of the files at a path: enough to see that it changed."""
    stats = [item.stat() for item in _files(path)]
    return [
        len(stats),
        sum(s.st_size for s in stats),
        max((s.st_mtime_ns for s in stats), default=0),
    ]


def _files(path: Path) -> list[Path]:
    return sorted(item for item in path.rglob("*") if item.is_file()) if path.is_dir() else [path]


def digest(path: str | Path, kind: HashKind = "sha256") -> str:
    """Hash of a file, or of a folder's file names and contents; remembered until it changes.

    Parameters
    ----------
    path
        File or folder.
    kind
        "sha256", "md5", or "content_md5" (of what a .gz file holds).
    """
    path = Path(path).resolve()
    memo, stamp = _memo_path(path), _stamp(path)
    known = _read_memo(memo)
    if known.get("stamp") != stamp:
        known = {"path": str(path), "stamp": stamp}
    if kind not in known:
        known[kind] = _compute(path, kind)
        with suppress(OSError), atomic_write(memo, "w") as file:  # no room to remember: no harm
            json.dump(known, file)
    return str(known[kind])


def forget(path: str | Path) -> None:
    """Forget the hashes of a file, so that it is read again."""
    _memo_path(Path(path).resolve()).unlink(missing_ok=True)


def _memo_path(path: Path) -> Path:
    key = hashlib.sha256(str(path).encode()).hexdigest()[:32]
    return derived_home() / "hashes" / f"{key}.json"


def _read_memo(memo: Path) -> dict[str, object]:
    """Return what is remembered, nothing if the memo is absent or damaged."""
    try:
        known = json.loads(memo.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _compute(path: Path, kind: HashKind) -> str:
    if path.is_dir():
        lines = [f"{file_hash(f)}  {f.relative_to(path).as_posix()}\n" for f in _files(path)]
        return hashlib.sha256("".join(lines).encode()).hexdigest()
    if kind != "content_md5":
        return file_hash(path, kind)
    whole = hashlib.md5(usedforsecurity=False)
    try:
        with gzip.open(path) as file:
            while piece := file.read(1 << 20):
                whole.update(piece)
    except (OSError, EOFError, zlib.error):
        return "not a whole gzip file"
    return whole.hexdigest()


def known_hashes(found: Found) -> list[tuple[HashKind, str]]:
    """Hashes that are known to be right for the file as it is named on disk."""
    remote, name, pairs = found.remote, found.path.name, list[tuple[HashKind, str | None]]()
    if name == remote.name:
        pairs += [("sha256", remote.sha256), ("md5", remote.md5)]
        pairs += [("content_md5", remote.content_md5)]
    pairs += [("sha256", c.sha256) for c in remote.compact if c.name == name]
    return [(kind, value) for kind, value in pairs if value is not None]


def settled_form(found: Found) -> Form:
    """Form by content: a compact file may have the official name (MNIST, wrapped differently)."""
    twins = [c.sha256 for c in found.remote.compact if c.name == found.path.name and c.sha256]
    if found.form != "official" or not twins or digest(found.path) not in twins:
        return found.form
    own = {found.remote.sha256, found.remote.md5}
    return "official" if {digest(found.path), digest(found.path, "md5")} & own else "compact"


def record_path(path: Path) -> Path:
    """Return the file beside a download that records its address, size and hash."""
    return path.with_name(f"{path.name}.vnt.json")


def check(found: Found) -> Check:
    """Compare a file with the hashes that are known for it.

    Returns
    -------
    str
        "verified"; "unverified" where no right hash is known; "differs" where the file has none
        of the known hashes, or has changed since its download was recorded.
    """
    known = known_hashes(found)
    if any(digest(found.path, kind) == value for kind, value in known):
        return "verified"
    if known:
        return "differs"
    try:
        recorded = json.loads(record_path(found.path).read_text(encoding="utf-8"))["sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        return "unverified"
    same = digest(found.path) == recorded
    return "unverified" if same else "differs"


def trace(entry: Entry, found: Sequence[Found], provenance: Provenance) -> Provenance:
    """Complete a loader's provenance by what the registry and the files say."""
    checks = {item.path.name: check(item) for item in found}
    if differing := [name for name, state in checks.items() if state == "differs"]:
        warnings.warn(
            f"{entry.name}: {', '.join(differing)} has another hash than the one that is known; "
            "if you did not make it yourself, fetch it again",
            DataWarning,
            stacklevel=3,
        )
    return replace(
        provenance,
        sources=tuple(remote.urls[0] for remote in entry.files if remote.urls)
        or tuple(filter(None, [entry.origin])),
        license=entry.license,
        citation=entry.citation,
        sha256={item.path.name: digest(item.path) for item in found},
        verified=bool(checks) and set(checks.values()) == {"verified"},
    )
