"""Location, form and verification of data files.

Data files are looked for in ``folder``, in ``VNT_DATA`` or in the user's cache folder, in the
official layout or in a compact form; reading never writes there.
"""

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from vntransfer.errors import DataError, DataWarning
from vntransfer_lab.data.archives import archive_stem
from vntransfer_lab.data.base import Provenance
from vntransfer_lab.data.derived import digest, user_cache
from vntransfer_lab.data.registry import DATASETS, Entry, RemoteFile

Form = Literal["official", "compact", "partial"]
Check = Literal["verified", "unverified", "differs"]


@dataclass(frozen=True)
class Found:
    """A file (or unpacked folder) of a data set on disk."""

    remote: RemoteFile
    path: Path
    form: Form


def data_home(folder: str | Path | None = None) -> Path:
    """Folder that downloads go to: the one given, ``VNT_DATA`` or ``data`` in the user's cache."""
    return Path(folder or os.environ.get("VNT_DATA") or user_cache() / "data").expanduser()


def _candidates(remote: RemoteFile, root: Path) -> Iterator[Found]:
    """Every place and form of a file below one root, the best first; existence unchecked."""
    unpacked = archive_stem(remote.name)
    official = [remote.name, *remote.also, *([unpacked] if unpacked else [])]
    names: list[tuple[str, Form]] = [(name, "official") for name in official]
    if remote.compact:
        names.append((remote.compact.name, "partial" if remote.compact.partial else "compact"))
    for name, form in names:
        yield Found(remote, root / remote.folder / name, form)
        if name != remote.folder:
            yield Found(remote, root / name, form)


def locate(entry: Entry, folder: str | Path | None = None) -> list[Found]:
    """Files of a data set that are present, each in its best form.

    A whole file anywhere is better than a partial one; otherwise ``folder`` or ``VNT_DATA``
    comes before the user's cache and the official form before a compact one.
    """
    roots = dict.fromkeys([data_home(folder), *([user_cache() / "data"] if not folder else [])])
    if entry.files and folder and not data_home(folder).is_dir():
        raise DataError(f"folder: {str(folder)!r} is not a folder; give the one with the data")
    found = []
    for remote in entry.files:
        present = [
            item
            for root in roots
            for item in _candidates(remote, root)
            if item.path.exists() and not _belongs_elsewhere(item)
        ]
        present.sort(key=lambda item: item.form == "partial")
        found += present[:1]
    return found


def _belongs_elsewhere(item: Found) -> bool:
    """Whether a file outside its set's folder is another set's (MNIST and Fashion-MNIST)."""
    if item.path.parent.name == item.remote.folder:
        return False
    namesakes = {f for e in DATASETS.values() for f in e.files if f.name == item.path.name}
    return any(check(replace(item, remote=f)) == "verified" for f in namesakes - {item.remote})


def require(entry: Entry, folder: str | Path | None = None) -> list[Found]:
    """`locate`, with an error where a file is absent and a warning where it is partial."""
    seen = status(entry, folder)
    for remote in seen.missing:
        compact = f" or {remote.compact.name}" if remote.compact else ""
        get = "it has no public address: "
        if remote.urls:
            get = f"run `vnt data fetch {entry.name}`, or download {remote.urls[0]} and "
        raise DataError(
            f"{entry.name}: {remote.name} is absent; {get}put {remote.name}{compact} into "
            f"{data_home(folder) / remote.folder}"
        )
    if partial := [item.path.name for item in seen.found if item.form == "partial"]:
        warnings.warn(
            f"{entry.name}: {', '.join(partial)} contains only some of the rows; run "
            f"`vnt data fetch {entry.name}` for all of them",
            DataWarning,
            stacklevel=3,
        )
    return list(seen.found)


def check(found: Found) -> Check:
    """Compare a file with the hashes that are known for it, if any."""
    remote, compact, name = found.remote, found.remote.compact, found.path.name
    known = list(remote.hashes) if name == remote.name else []
    if compact and name == compact.name and compact.hash:
        known.append(compact.hash)
    if not known:
        return "unverified"
    kinds = {text.partition(":")[0] for text in known}
    same = any(f"{kind}:{digest(found.path, kind)}" in known for kind in kinds)
    return "verified" if same else "differs"


@dataclass(frozen=True)
class Status:
    """State of a data set on disk: files that were found, and required ones that were not."""

    found: tuple[Found, ...]
    missing: tuple[RemoteFile, ...]

    @property
    def checks(self) -> dict[Found, Check]:
        """Results of the hash checks of the files."""
        return {item: check(item) for item in self.found}

    def describe(self) -> tuple[str, str]:
        """State of the set and of its hashes, the worst of its files'."""
        forms, checks = {item.form for item in self.found}, set(self.checks.values())
        worst = next((form for form in ("partial", "compact", "official") if form in forms), None)
        state = f"present {worst}" if worst else "embedded"
        if self.missing:
            state = "incomplete" if self.found else "absent"
        judged = (word for word in ("differs", "unverified", "verified") if word in checks)
        return state, next(judged, "-")


def status(entry: Entry, folder: str | Path | None = None) -> Status:
    """Look for the files of a data set."""
    found = tuple(locate(entry, folder))
    present = {item.remote for item in found}
    return Status(found, tuple(f for f in entry.files if f not in present and not f.optional))


def trace(entry: Entry, found: Sequence[Found], provenance: Provenance) -> Provenance:
    """Complete a loader's provenance from the registry and the files."""
    checks = {item.path.name: check(item) for item in found}
    if differing := [name for name, state in checks.items() if state == "differs"]:
        warnings.warn(
            f"{entry.name}: {', '.join(differing)} has an unknown hash; "
            "unless you made it yourself, fetch it again",
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
