"""The store: one SQLite file per run folder, cells and their metrics per step.

Write-ahead logging while a run goes on, one transaction per finished cell, forced to disk: after
a kill or a power loss a cell is there whole or not at all. One process writes
(`vntransfer.bench.runner` holds a lock); any number may read meanwhile.
"""

import json
import shutil
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from vntransfer.bench.cells import IDENTITY, Cell, Identity, canonical_json
from vntransfer.bench.packed import is_packed, read_packed
from vntransfer.bench.preset import Preset, restore
from vntransfer.errors import StoreError

STORE_NAME = "store.sqlite"
_APPLICATION = 0x766E7462  # "vntb"
_FORMAT = 1
_UNPLANNED = "the run was stopped before its cells were planned; give its command again"
_JSON_COLUMNS = ("hyper", "settings")
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
)
# Younger than the format, which they leave as it is: stores without them are read, and get them
# when they are written again.
_ADDITIONS = (
    # detail: see vntransfer.bench.provenance
    """CREATE TABLE IF NOT EXISTS invocations (
        id INTEGER PRIMARY KEY, began REAL NOT NULL, ended REAL, how TEXT, detail TEXT NOT NULL
    )""",
    "CREATE TABLE IF NOT EXISTS times (cell INTEGER PRIMARY KEY, ended REAL NOT NULL)",
)


@dataclass(frozen=True)
class Outcome:
    """What came out of computing one cell: rows ``(step, metric, value)`` or an error."""

    rows: Sequence[tuple[int, str, float]] = ()
    seconds: float = 0.0
    error: str = ""
    traceback: str = ""
    warnings: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Record(Identity):
    """One cell as it stands in the store; ``metrics[name][step]`` is a value."""

    key: str
    status: str
    seconds: float | None = None
    error: str | None = None
    traceback: str | None = None
    warnings: str | None = None
    metrics: dict[str, dict[int, float]] = field(default_factory=dict)


def make_folder(folder: Path) -> None:
    """Make a run folder, or say why that is not possible."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"{folder}: cannot make this folder ({error.strerror}); choose another --out"
        ) from None


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
                f"the disk is full or failing ({free:.0f} MB free); finished cells are kept: make "
                "room and give the same command again"
            )
        elif "readonly" in text or "unable to open" in text:
            advice = "the folder cannot be written; check its permissions or choose another --out"
        elif "locked" in text:
            advice = "another program holds it; close that and try again"
        else:
            advice = "it is damaged or not a store of vnt; move it away or choose another --out"
        raise StoreError(f"{path}: {text}: {advice}") from error


class Store:
    """The store of one run folder.

    Parameters
    ----------
    folder
        The run folder.
    write
        Make the folder and the store when absent, and allow changes.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Store(folder, write=True) as store:
    ...     store.records()
    []
    """

    def __init__(self, folder: str | Path, *, write: bool = False) -> None:
        self.path = Path(folder) / STORE_NAME
        self._logs = False
        if not write and not self.path.is_file():
            raise StoreError(
                f"{folder}: no run here ({STORE_NAME} is absent); start one with "
                "vnt bench run NAME --out DIR"
            )
        with _explained(self.path):
            self._connection = self._open(write)
            try:
                self._check_or_create(write)
            except BaseException:
                self._connection.close()
                raise

    def _open(self, write: bool) -> sqlite3.Connection:
        if write:
            make_folder(self.path.parent)
            return sqlite3.connect(self.path, timeout=30, isolation_level=None)
        address = self.path.absolute().as_uri()
        connection = sqlite3.connect(f"{address}?mode=ro", uri=True, timeout=30)
        try:
            connection.execute("SELECT 1 FROM sqlite_master")
        except sqlite3.OperationalError:
            # Write-ahead logging needs to write a small file even to read; without a log
            # (a run that ended) the store can be read as it is, also from a read-only disk.
            connection.close()
            log = self.path.with_name(f"{STORE_NAME}-wal")
            if log.exists() and log.stat().st_size:
                raise
            connection = sqlite3.connect(f"{address}?immutable=1", uri=True)
        return connection

    def _check_or_create(self, write: bool) -> None:
        execute = self._connection.execute
        empty = not execute("SELECT 1 FROM sqlite_master").fetchone()
        if empty and write:
            self._log_ahead()
            with self.transaction():
                for statement in (*_SCHEMA, *_ADDITIONS):
                    execute(statement)
                execute(f"PRAGMA application_id = {_APPLICATION}")
                execute(f"PRAGMA user_version = {_FORMAT}")
            return
        if empty:
            raise StoreError(f"{self.path}: {_UNPLANNED}")
        if execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
            raise StoreError(
                f"{self.path}: an SQLite file of another program; move it away or choose another "
                "--out"
            )
        version = execute("PRAGMA user_version").fetchone()[0]
        if version != _FORMAT:
            raise StoreError(
                f"{self.path}: has format {version}, this vntransfer knows {_FORMAT}; use the "
                "version that wrote it or another --out"
            )
        if write:
            self._log_ahead()
            state = execute("PRAGMA quick_check(1)").fetchone()[0]
            if state != "ok":
                raise sqlite3.DatabaseError(state)
            for statement in _ADDITIONS:
                execute(statement)

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

    def plan(
        self,
        preset: Preset,
        cells: Sequence[Cell],
        *,
        places: Sequence[int] | None = None,
        retry: bool = False,
    ) -> list[Cell]:
        """Make these cells the plan of the folder and return those that are still to compute.

        Finished and failed cells stay as they are; ``retry`` makes failed ones pending again.
        Everything happens in one transaction. ``places`` leave room for cells of `extend`.
        """
        mine = self.preset()
        if mine and mine.name != preset.name:
            raise StoreError(
                f"{self.path.parent}: holds a run of preset {mine.name!r}, not of "
                f"{preset.name!r}; choose another --out"
            )
        numbered = zip(range(len(cells)) if places is None else places, cells, strict=True)
        with self.transaction():
            execute = self._connection.execute
            execute("INSERT OR REPLACE INTO run VALUES ('preset', ?)", (_preset_text(preset),))
            execute("UPDATE cells SET place = NULL")
            self._insert(numbered)
            if retry:
                execute(
                    "UPDATE cells SET status = 'pending', error = NULL, traceback = NULL "
                    "WHERE status = 'failed' AND place IS NOT NULL"
                )
            pending = {
                key
                for (key,) in execute(
                    "SELECT key FROM cells WHERE status = 'pending' AND place IS NOT NULL"
                )
            }
        return [cell for cell in cells if cell.key in pending]

    def extend(self, place: int, cell: Cell) -> None:
        """Add a cell to the plan: a trial that follows from the results before it."""
        with self.transaction():
            self._insert([(place, cell)])

    def _insert(self, numbered: Iterable[tuple[int, Cell]]) -> None:
        names, marks = ", ".join(IDENTITY), ", ".join("?" * len(IDENTITY))
        self._connection.executemany(
            f"INSERT INTO cells (key, place, {names}) VALUES (?, ?, {marks}) "
            "ON CONFLICT (key) DO UPDATE SET place = excluded.place",
            (
                (cell.key, place, *(_cell_value(cell, name) for name in IDENTITY))
                for place, cell in numbered
            ),
        )

    def outcome(self, key: str) -> Outcome | None:
        """Return what came out of a cell, planned or not; None if it is not finished."""
        query = "SELECT id, seconds, error FROM cells WHERE key = ? AND status != 'pending'"
        found = self.read(query, key)
        if not found:
            return None
        identity, seconds, error = found[0]
        rows = self.read("SELECT step, name, value FROM metrics WHERE cell = ?", identity)
        return Outcome(rows, seconds, error or "")

    def finish(self, key: str, outcome: Outcome) -> None:
        """Record the outcome of a cell, whole or not at all."""
        with self.transaction():
            execute = self._connection.execute
            (identity,) = execute("SELECT id FROM cells WHERE key = ?", (key,)).fetchone()
            execute("DELETE FROM metrics WHERE cell = ?", (identity,))
            self._connection.executemany(
                "INSERT INTO metrics (cell, step, name, value) VALUES (?, ?, ?, ?)",
                ((identity, *row) for row in outcome.rows),
            )
            execute(
                "UPDATE cells SET status = ?, seconds = ?, error = ?, traceback = ?, warnings = ? "
                "WHERE id = ?",
                (
                    "failed" if outcome.error else "done",
                    outcome.seconds,
                    outcome.error or None,
                    outcome.traceback or None,
                    "\n".join(outcome.warnings) or None,
                    identity,
                ),
            )
            execute("INSERT OR REPLACE INTO times VALUES (?, ?)", (identity, time.time()))

    def preset(self) -> Preset | None:
        """Return the preset of the last run in this folder."""
        row = self.read("SELECT value FROM run WHERE name = 'preset'")
        return restore(json.loads(row[0][0])) if row else None

    def counts(self) -> dict[str, int]:
        """Return the number of planned cells by status."""
        return dict(
            self.read("SELECT status, count(*) FROM cells WHERE place IS NOT NULL GROUP BY status")
        )

    def pending(self) -> set[str]:
        """Return the keys of all cells that are not finished, also those of other settings."""
        return {key for (key,) in self.read("SELECT key FROM cells WHERE status = 'pending'")}

    def unplanned(self) -> int:
        """Return the number of finished cells that the last run did not ask for."""
        query = "SELECT count(*) FROM cells WHERE place IS NULL AND status = 'done'"
        return int(self.read(query)[0][0])

    def records(self) -> list[Record]:
        """Return the planned cells that tables show, with their metrics, in the plan's order."""
        names = ("key", *IDENTITY, "status", "seconds", "error", "traceback", "warnings")
        query = f"SELECT id, {', '.join(names)} FROM cells WHERE place >= 0 ORDER BY place"
        metrics: dict[int, dict[str, dict[int, float]]] = {}
        for cell, name, step, value in self.read(
            "SELECT cell, name, step, value FROM metrics "
            "JOIN cells ON cells.id = cell WHERE place >= 0 ORDER BY cell, name, step"
        ):
            metrics.setdefault(cell, {}).setdefault(name, {})[step] = value
        records = []
        for identity, *values in self.read(query):
            row: dict[str, Any] = dict(zip(names, values, strict=True))
            row.update({name: json.loads(row[name]) for name in _JSON_COLUMNS})
            records.append(Record(**row, metrics=metrics.get(identity, {})))
        return records

    def read(self, query: str, *values: object) -> list[Any]:
        """Give the rows that answer an SQL query."""
        with _explained(self.path):
            return self._connection.execute(query, values).fetchall()

    def has(self, table: str) -> bool:
        """Say whether the store has a table: older ones lack some."""
        return bool(self.read("SELECT 1 FROM sqlite_master WHERE name = ?", table))


def _cell_value(cell: Cell, name: str) -> Any:
    value = getattr(cell, name)
    return canonical_json(value) if name in _JSON_COLUMNS else value


def _preset_text(preset: Preset) -> str:
    # Not the canonical form: the order of methods and grids is the order of the tables.
    return json.dumps(preset.as_dict(), allow_nan=False)


def read_records(folder: str | Path) -> tuple[Preset, list[Record], int]:
    """Preset, planned cells and number of other finished cells of a run folder.

    A folder of packed results (`vntransfer.bench.packed`) is read alike.
    """
    if is_packed(folder):
        return *read_packed(folder), 0
    with Store(folder) as store:
        preset = store.preset()
        if preset is None:
            raise StoreError(f"{folder}: {_UNPLANNED}")
        return preset, store.records(), store.unplanned()


def flat_rows(records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    """One dictionary per metric and step, with the cell's columns before it.

    Settings become columns ``settings.NAME`` and ``hyper.NAME``; a cell without metrics (failed,
    pending) gives one row with an empty metric.
    """
    for record in records:
        names = ("key", *IDENTITY, "status", "seconds", "error", "warnings")
        head = {name: getattr(record, name) for name in names if name not in _JSON_COLUMNS}
        head |= {f"settings.{name}": value for name, value in record.settings.items()}
        head |= {f"hyper.{name}": value for name, value in record.hyper.items()}
        if not record.metrics:
            yield {**head, "metric": None, "step": None, "value": None}
        for name, steps in record.metrics.items():
            for step, value in steps.items():
                yield {**head, "metric": name, "step": step, "value": value}
