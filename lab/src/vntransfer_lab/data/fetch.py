"""Downloads of data sets: mirrors, one process at a time, checked, then placed as a whole."""

import gzip
import json
import os
import zlib
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

from vntransfer.errors import DataError
from vntransfer.storage.files import atomic_write, file_hash
from vntransfer_lab.data.archives import archive_stem, inspect, unpack
from vntransfer_lab.data.cache import Found, check, data_home, digest, locate, record_path
from vntransfer_lab.data.download import PATIENCE, Patience, Version, discard, download
from vntransfer_lab.data.entry import Entry, RemoteFile


def fetch(
    entry: Entry,
    folder: str | Path | None = None,
    *,
    force: bool = False,
    unpacked: bool = False,
    patience: Patience = PATIENCE,
) -> list[Path]:
    """Download the files of a data set that are absent.

    Parameters
    ----------
    entry
        Record of the data set.
    folder
        Where to put them; default ``VNT_DATA``, else the user cache.
    force
        Download again what is present, compact or damaged.
    unpacked
        Unpack archives beside themselves, too.
    patience
        When to give a server up.

    Returns
    -------
    list
        Paths of the official files.

    Raises
    ------
    DataError
        When no address gives a good file; nothing bad is left in the folder.
    """
    root = Path(folder).expanduser() if folder is not None else data_home()
    try:
        root.mkdir(parents=True, exist_ok=True)
        present = {item.remote: item for item in locate(entry, root)}
        paths = [
            _get(entry, remote, present.get(remote), root, force, patience)
            for remote in entry.files
            if remote.urls or remote in present or not remote.optional
        ]
        for path in paths if unpacked else ():
            stem = archive_stem(path.name)
            if stem is not None and not (path.parent / stem).exists():
                unpack(path, path.parent / stem)
    except OSError as error:
        raise DataError(
            f"{root}: cannot be written ({error}); make room, or choose another folder by --to or "
            "VNT_DATA"
        ) from error
    return paths


def _get(
    entry: Entry,
    remote: RemoteFile,
    found: Found | None,
    root: Path,
    force: bool,
    patience: Patience,
) -> Path:
    """Path of one file: the one that is present if it will do, else a new one."""
    usable = found is not None and found.form != "partial"
    if remote.urls and (force or not usable):
        return fetch_file(remote, root, force=force, patience=patience)
    if found is None:
        raise DataError(
            f"{entry.name}: {remote.name} has no public address ({entry.notes}); put it into "
            f"{root / remote.folder}"
        )
    if check(found) == "differs":
        raise DataError(
            f"{found.path}: is not the file that is known (another hash); to replace it run "
            f"`vnt data fetch {entry.name} --force`"
        )
    return found.path


def fetch_file(
    remote: RemoteFile,
    root: Path,
    *,
    force: bool = False,
    patience: Patience = PATIENCE,
) -> Path:
    """Download one file below ``root``, from the first address that gives a good one."""
    missing = [name for name in ("pooch", "filelock") if find_spec(name) is None]
    if missing:
        raise DataError(
            f"downloads need {' and '.join(missing)}: run `pip install ./lab`, "
            f"or get {remote.name} from {remote.urls[0]} and put it into {root / remote.folder}"
        )
    from filelock import FileLock

    place = root / remote.folder / remote.name
    place.parent.mkdir(parents=True, exist_ok=True)
    part, problems = place.with_name(f"{place.name}.part"), list[str]()
    before = _identity(place)
    with FileLock(place.with_name(f".{place.name}.lock")):
        if place.exists() and (not force or _identity(place) != before):
            return place  # another process was faster
        for url in remote.urls:
            try:
                version = download(url, part, size=remote.size, patience=patience)
                check_structure(part, remote.name)
                _place(remote, version, part, place)
                return place
            except DataError as error:
                problems.append(str(error))
    raise DataError(
        f"{remote.name}: no address gave a good file: {'; '.join(problems)}. Get it by other means "
        f"and put it into {place.parent}"
    )


def _identity(place: Path) -> tuple[int, int] | None:
    try:
        state = place.stat()
    except FileNotFoundError:
        return None
    return state.st_ino, state.st_mtime_ns


def check_structure(path: Path, name: str) -> None:
    """Read a new file to its end as what its name says; a bad one is removed.

    This is all that can be checked where no hash is known: an archive or a gzip file must be
    whole, anything else must not be empty or a web page (what servers send for a lost file).
    """
    try:
        if archive_stem(name) is not None:
            inspect(path)
        elif name.lower().endswith(".gz"):
            _read_gzip(path)
        else:
            with open(path, "rb") as file:
                head = file.read(256).lstrip().lower()
            if not head or head.startswith((b"<!doctype html", b"<html")):
                raise DataError(f"{name}: is {'a web page' if head else 'empty'}")
    except DataError:
        discard(path)
        raise


def _read_gzip(path: Path) -> None:
    try:
        with gzip.open(path) as file:
            while file.read(1 << 20):
                pass
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path.name}: not a whole gzip file ({error})") from error


def _place(remote: RemoteFile, version: Version, part: Path, place: Path) -> None:
    """Let pooch check the hash and rename the file, and record what came from where."""
    import pooch

    pooch.get_logger().setLevel("WARNING")
    known = f"md5:{remote.md5}" if remote.md5 else f"sha256:{remote.sha256 or file_hash(part)}"
    try:
        pooch.retrieve(
            version.url,
            known_hash=known,
            fname=place.name,
            path=place.parent,
            downloader=lambda url, output, _: os.replace(part, output),
        )
    except ValueError as error:
        raise DataError(f"{version.url}: sent a file with a wrong hash ({error})") from error
    finally:
        discard(part)
    note = {
        "url": version.url,
        "size": place.stat().st_size,
        "sha256": digest(place),
        "etag": version.etag,
        "modified": version.modified,
        "fetched": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    with atomic_write(record_path(place), "w") as file:
        json.dump(note, file, indent=1)
