"""The file of a store: SQLite with a write-ahead log, and clear errors when it cannot be used.

Write-ahead logging during a run, every transaction forced to disk: after a kill or a power
loss a change is there whole or not at all. It is checked when it is opened. Who works in the folder
holds a lock there, which the system frees when its process dies.
"""

import fcntl
import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from vntransfer_lab.errors import StoreError
from vntransfer_lab.runner.cells import IDENTITY

STORE_NAME = "store.sqlite"
_APPLICATION = 0x766E7462  # "vntb"
_FORMAT = 1
_LOCK = "lock"
_LOCK_SECONDS = 0.5  # whoever only looks whether it is held does so for a moment
_UNPLANNED = "the run was stopped before its cells were planned; rerun its command"
_TYPED = ", ".join(
    f"{name} {'INTEGER' if name == 'seed' else 'TEXT'} NOT NULL" for name in IDENTITY
)
_SCHEMA = (
    "CREATE TABLE run (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    # place: in the plan of the last run, NULL when that run does not want the cell, below zero when
    # it wants it for the sake of others: no table shows those
    f"""CREATE TABLE cells (
        id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, place INTEGER, {_TYPED},
        status TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'done', 'failed')),
        seconds REAL, error TEXT, traceback TEXT, warnings TEXT
    )""",
    """CREATE TABLE metrics (
        cell INTEGER NOT NULL REFERENCES cells (id), name TEXT NOT NULL, step INTEGER NOT NULL,
        value REAL NOT NULL, PRIMARY KEY (cell, name, step)
    ) WITHOUT ROWID""",
    # detail: see vntransfer_lab.runner.provenance
    """CREATE TABLE invocations (
        id INTEGER PRIMARY KEY, began REAL NOT NULL, ended REAL, how TEXT, detail TEXT NOT NULL
    )""",
    "CREATE TABLE times (cell INTEGER PRIMARY KEY, ended REAL NOT NULL)",
    # see vntransfer_lab.runner.records.Cost
    """CREATE TABLE costs (
        cell INTEGER PRIMARY KEY, steps INTEGER NOT NULL, step_seconds REAL, memory INTEGER
    )""",
    # the version of vntransfer that computed a cell
    "CREATE TABLE makers (cell INTEGER PRIMARY KEY, version TEXT NOT NULL)",
    # of every finished cell by its id, and of other parts, see vntransfer_lab.runner.store
    "CREATE TABLE digests (number INTEGER PRIMARY KEY, digest TEXT NOT NULL)",
)


class UnplannedError(StoreError):
    """A store without a plan: its run was killed while it began."""

    def __init__(self, place: Path | str) -> None:
        super().__init__(f"{place}: {_UNPLANNED}")


def _recover(folder: Path) -> str:
    return (
        f"save its intact cells with `vnt bench recover {folder} --out NEW`, then rerun the "
        "command of the run with --out NEW"
    )


def make_folder(folder: Path) -> None:
    """Make a run folder, or say why that is not possible."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"{folder}: cannot make this folder ({error.strerror}); choose another --out"
        ) from None


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; the system releases it when this process dies in any way."""
    from filelock import FileLock, Timeout

    make_folder(folder)
    lock = FileLock(folder / _LOCK)
    try:
        lock.acquire(timeout=_LOCK_SECONDS)
    except Timeout:
        raise StoreError(
            f"{folder}: another run works in this folder; wait for it or choose another --out"
        ) from None
    except OSError as error:
        raise StoreError(
            f"{folder}: cannot be locked ({error.strerror}); choose another --out"
        ) from None
    try:
        yield
    finally:
        lock.release()


def is_held(folder: Path) -> bool | None:
    """Whether a runner holds the lock; None where that cannot be found out."""
    try:
        with open(folder / _LOCK, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    except OSError:
        return None
    return False


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what SQLite says into a sentence with a way out."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        text = str(error)
        if "full" in text or "disk I/O" in text:
            folder = path.parent if path.parent.is_dir() else path.parent.parent
            free = shutil.disk_usage(folder).free / 1e6
            advice = (
                f"the disk is full or failing ({free:.0f} MB free); finished cells are kept: free "
                "some space and rerun the same command"
            )
        elif "readonly" in text or "unable to open" in text:
            advice = "the folder cannot be written; check its permissions or choose another --out"
        elif "locked" in text:
            advice = "another program holds it; close that and try again"
        else:
            advice = f"it is damaged or not a store of vnt; {_recover(path.parent)}"
        raise StoreError(f"{path}: {text}: {advice}") from error


class StoreFile:
    """What can be done with any SQLite file of a run folder: open, check, read, change.

    ``write`` makes the folder and the file when they are absent, and allows changes. Without
    ``verify`` damage is not looked for.
    """

    def __init__(self, folder: str | Path, *, write: bool = False, verify: bool = True) -> None:
        self.path = Path(folder) / STORE_NAME
        self._logs = False
        if not write and not self.path.is_file():
            raise StoreError(
                f"{folder}: no run here ({STORE_NAME} is absent); start one with "
                "vnt bench run NAME --out DIR"
            )
        with _explained(self.path):
            self._connection = self._open(write, verify)
            try:
                self._check_or_create(write, verify)
                if verify:
                    self._compare()
            except BaseException:
                self._connection.close()
                raise

    def _open(self, write: bool, verify: bool) -> sqlite3.Connection:
        if write:
            make_folder(self.path.parent)
            return sqlite3.connect(self.path, timeout=30, isolation_level=None)
        address = self.path.absolute().as_uri()
        # without an isolation level: a reader sees one state from its first query to its last
        options: dict[str, Any] = {"uri": True, "timeout": 30, "isolation_level": None}
        connection = sqlite3.connect(f"{address}?mode=ro", **options)
        if not verify:  # or SQLite refuses a file that was cut
            connection.execute("PRAGMA writable_schema = ON")
        try:
            connection.execute("BEGIN")
            connection.execute("SELECT 1 FROM sqlite_master")
        except sqlite3.OperationalError:
            # Write-ahead logging needs to write a small file even to read; without a log
            # (a run that ended) the store can be read as it is, also from a read-only disk.
            connection.close()
            if self._log_bytes():
                raise
            connection = sqlite3.connect(f"{address}?immutable=1", **options)
        return connection

    def _log_bytes(self) -> int:
        log = self.path.with_name(f"{STORE_NAME}-wal")
        return log.stat().st_size if log.exists() else 0

    def _check_or_create(self, write: bool, verify: bool) -> None:
        execute = self._connection.execute
        empty = not execute("SELECT 1 FROM sqlite_master").fetchone()
        if empty and write:
            self._log_ahead()
            with self.transaction():
                for statement in _SCHEMA:
                    execute(statement)
                execute(f"PRAGMA application_id = {_APPLICATION}")
                execute(f"PRAGMA user_version = {_FORMAT}")
                self._created()
            return
        if empty:
            raise UnplannedError(self.path)
        if verify and execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
            raise StoreError(
                f"{self.path}: an SQLite file of another program; choose another --out. If it is "
                f"yours and damaged, {_recover(self.path.parent)}"
            )
        version = execute("PRAGMA user_version").fetchone()[0]
        if verify and version != _FORMAT:
            raise StoreError(
                f"{self.path}: has format {version}, this vntransfer knows {_FORMAT}; use the "
                f"version that wrote it. If it is damaged, {_recover(self.path.parent)}"
            )
        if verify:  # before anything is changed
            state = execute("PRAGMA integrity_check(1)").fetchone()[0]
            if state != "ok":
                raise self.damaged(state.splitlines()[-1])
        if write:
            self._log_ahead()

    def _created(self) -> None:
        raise NotImplementedError

    def _compare(self) -> None:
        raise NotImplementedError

    def damaged(self, what: str) -> StoreError:
        """Return the error for a file that is not as it was written."""
        return StoreError(f"{self.path}: is damaged ({what}); {_recover(self.path.parent)}")

    def decode(self, text: str) -> Any:
        """Read JSON of the file."""
        try:
            return json.loads(text)
        except (ValueError, TypeError) as error:
            raise self.damaged(str(error)) from None

    def _log_ahead(self) -> None:
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._logs = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._logs:
            # At rest the store is one file, which readers leave alone: reading with a log makes
            # new files. Refused while somebody reads; then the log stays, which is as good.
            with suppress(sqlite3.OperationalError):
                self._connection.execute("PRAGMA busy_timeout = 0")
                self._connection.execute("PRAGMA journal_mode = DELETE")
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Make changes inside the block, all of them or none."""
        with _explained(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def read(self, query: str, *values: object) -> list[Any]:
        """Return the rows that answer an SQL query."""
        with _explained(self.path):
            return self._connection.execute(query, values).fetchall()
