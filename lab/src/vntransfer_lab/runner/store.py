"""The store: one SQLite file per run folder, cells and their metrics per step.

One transaction per finished cell: it is there whole or not at all
(`vntransfer_lab.runner.store_file`). One process writes (`vntransfer_lab.runner.run` holds a lock);
any number may read meanwhile. A digest over the rows of every finished cell, of the plan and of the
notes is kept with each change and compared when the store is opened.
"""

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any, NamedTuple

from vntransfer_lab.errors import StoreError
from vntransfer_lab.runner.cells import IDENTITY, Cell
from vntransfer_lab.runner.packed import is_packed, read_packed
from vntransfer_lab.runner.preset import Preset
from vntransfer_lab.runner.records import JSON_COLUMNS, CellOutcome, Cost, Record, columns
from vntransfer_lab.runner.store_file import STORE_NAME, StoreFile, UnplannedError

_CELL_BYTES = 40  # no row of a cell is shorter than its key
_CELLS = "cells LEFT JOIN makers ON makers.cell = id LEFT JOIN costs ON costs.cell = id"
_MADE = "makers.version, steps, step_seconds, memory"
_COLUMNS = ", ".join(f"cells.{name}" for name in ("key", *IDENTITY))
# What digests are taken over: a finished cell, by its id, and other parts, numbered below zero.
_CELL = (
    f"""SELECT {_COLUMNS}, status, seconds, error, traceback, warnings, ended, {_MADE}
    FROM {_CELLS} LEFT JOIN times ON times.cell = id WHERE id = ?""",
    "SELECT name, step, value FROM metrics WHERE cell = ? ORDER BY name, step",
)
_PLAN, _RUNNING, _INVOCATIONS = -1, -2, -3
_PARTS = {
    _PLAN: (
        "SELECT value FROM run WHERE name = 'preset'",
        f"SELECT place, {_COLUMNS} FROM cells WHERE place IS NOT NULL ORDER BY place",
    ),
    # what stores of earlier versions say of running cells
    _RUNNING: ("SELECT value FROM run WHERE name = 'running'",),
    _INVOCATIONS: ("SELECT * FROM invocations ORDER BY id",),
}


class CellGroup(NamedTuple):
    """Numbers of cells of one method on one data set, and the mean time of the finished ones."""

    data: str
    method: str
    done: int
    failed: int
    pending: int
    seconds: float | None


class Invocation(NamedTuple):
    """One command that worked on a folder: times in seconds since 1970, detail as JSON."""

    began: float
    ended: float | None
    how: str | None
    detail: str


class RunRecords(NamedTuple):
    """Preset and planned cells of a run, and the number of other finished cells."""

    preset: Preset
    records: list[Record]
    unplanned: int


class Store(StoreFile):
    """The store of one run folder."""

    def _created(self) -> None:
        """Keep the digests of a store without cells."""
        for part in _PARTS:
            self._seal(part)

    def _compare(self) -> None:
        """Compare all digests."""
        ids = self.read("SELECT id FROM cells WHERE status != 'pending'")
        found = {number: self.digest(number) for number in (*_PARTS, *(i for (i,) in ids))}
        known = dict(self.read("SELECT number, digest FROM digests"))
        if known != found:
            wrong = {number for number, _ in known.items() ^ found.items()}
            cells = len(wrong - _PARTS.keys())
            raise self.damaged(f"not as written: {f'{cells} cells' if cells else 'plan or notes'}")

    def digest(self, number: int) -> str:
        """Hash what the store holds of a cell, given by its id, or of another part."""
        of_cell = () if number in _PARTS else (number,)
        rows = [self.read(query, *of_cell) for query in _PARTS.get(number, _CELL)]
        return hashlib.sha256(repr(rows).encode()).hexdigest()[:32]

    def _seal(self, number: int) -> None:
        """Keep the digest of a cell or a part that has changed."""
        values = (number, self.digest(number))
        self._connection.execute("INSERT OR REPLACE INTO digests VALUES (?, ?)", values)

    def plan(
        self,
        preset: Preset,
        cells: Sequence[Cell],
        *,
        places: Iterable[int] | None = None,
        retry: bool = False,
    ) -> list[Cell]:
        """Make these cells the plan of the folder and return those that are still to compute.

        Finished and failed cells stay as they are; ``retry`` makes failed ones pending again.
        Everything happens in one transaction.
        """
        mine = self.preset()
        if mine and mine.name != preset.name:
            raise StoreError(
                f"{self.path.parent}: holds a run of preset {mine.name!r}, not of "
                f"{preset.name!r}; choose another --out"
            )
        with self.transaction():
            execute = self._connection.execute
            # Not the canonical form: the order of methods and grids is the order of the tables.
            text = json.dumps(preset.as_dict(), allow_nan=False)
            execute("INSERT OR REPLACE INTO run VALUES ('preset', ?)", (text,))
            execute("UPDATE cells SET place = NULL")
            self._insert(zip(places or range(len(cells)), cells, strict=True))
            if retry:
                execute(
                    "UPDATE cells SET status = 'pending', error = NULL, traceback = NULL "
                    "WHERE status = 'failed' AND place IS NOT NULL"
                )
                pending = "SELECT id FROM cells WHERE status = 'pending'"
                execute(f"DELETE FROM digests WHERE number IN ({pending})")
            query = "SELECT key FROM cells WHERE status = 'pending' AND place IS NOT NULL"
            todo = {key for (key,) in execute(query)}
        return [cell for cell in cells if cell.key in todo]

    def adopt(self, cells: Sequence[Cell], outcomes: Mapping[str, CellOutcome]) -> None:
        """Take in cells that were computed elsewhere, with their outcomes by key; plans none."""
        with self.transaction():
            self._insert((None, cell) for cell in cells)
        for cell in cells:
            self.finish(cell.key, outcomes[cell.key])

    def _insert(self, numbered: Iterable[tuple[int | None, Cell]]) -> None:
        names, marks = ", ".join(IDENTITY), ", ".join(f":{name}" for name in IDENTITY)
        self._connection.executemany(
            f"INSERT INTO cells (key, place, {names}) VALUES (:key, :place, {marks}) "
            "ON CONFLICT (key) DO UPDATE SET place = excluded.place",
            ({**columns(cell), "key": cell.key, "place": place} for place, cell in numbered),
        )
        self._seal(_PLAN)

    def outcome(self, key: str) -> CellOutcome | None:
        """Return the result of a cell; None if it is not finished."""
        for record in self._records("key = ? AND status != 'pending'", key):
            return record.outcome()
        return None

    def intact(self) -> Iterator[tuple[Cell, CellOutcome]]:
        """Give the finished cells of a damaged file that have the digest they were given.

        Every id that the file has room for is asked for by itself: a damaged page takes only its
        own cells along.
        """
        for number in range(1, self.path.stat().st_size // _CELL_BYTES):
            with suppress(StoreError, ValueError, TypeError):  # of a row that is damaged
                for record in self._records("id = ? AND status = 'done'", number):
                    known = self.read("SELECT digest FROM digests WHERE number = ?", number)
                    if known == [(self.digest(number),)]:
                        identity = {name: getattr(record, name) for name in IDENTITY}
                        yield Cell(**identity), record.outcome()

    def finish(self, key: str, outcome: CellOutcome) -> None:
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
            execute("INSERT OR REPLACE INTO makers VALUES (?, ?)", (identity, outcome.made_by))
            execute("DELETE FROM costs WHERE cell = ?", (identity,))
            if outcome.cost is not None:
                spent = astuple(outcome.cost)
                execute("INSERT INTO costs VALUES (?, ?, ?, ?)", (identity, *spent))
            self._seal(identity)

    def preset(self) -> Preset | None:
        """Return the preset of the last run in this folder."""
        row = self.read("SELECT value FROM run WHERE name = 'preset'")
        return Preset.from_dict(self.decode(row[0][0])) if row else None

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
        return self._records("place >= 0")

    def _records(self, which: str, *values: object) -> list[Record]:
        """Return the cells that meet an SQL condition, in the plan's order."""
        names = ("key", *IDENTITY, "status", "seconds", "error", "traceback", "warnings")
        wanted = ", ".join(f"cells.{name}" for name in names)
        query = f"SELECT id, {_MADE}, {wanted} FROM {_CELLS} WHERE {which} ORDER BY place"
        found = self.read(query, *values)
        metrics: dict[int, dict[str, dict[int, float]]] = {}
        query = f"""SELECT cell, name, step, value FROM metrics JOIN cells ON id = cell
            WHERE {which} ORDER BY cell, name, step"""
        for cell, name, step, value in self.read(query, *values) if found else ():
            metrics.setdefault(cell, {}).setdefault(name, {})[step] = value
        records = []
        for cell, made_by, steps, step_seconds, memory, *own in found:
            row: dict[str, Any] = dict(zip(names, own, strict=True))
            row.update({name: self.decode(row[name]) for name in JSON_COLUMNS})
            cost = None if steps is None else Cost(steps, step_seconds, memory)
            own_metrics = metrics.get(cell, {})
            records.append(Record(**row, made_by=made_by or "", cost=cost, metrics=own_metrics))
        return records

    def groups(self) -> list[CellGroup]:
        """Count the planned cells of each method on each data set, in the plan's order."""
        query = """SELECT data, method, sum(status = 'done'), sum(status = 'failed'),
            sum(status = 'pending'), avg(CASE WHEN status != 'pending' THEN seconds END)
            FROM cells WHERE place IS NOT NULL GROUP BY data, method ORDER BY min(place)"""
        return [CellGroup(*row) for row in self.read(query)]

    def latest_failures(self, count: int) -> list[tuple[str, str]]:
        """Return label and first line of the error of the latest planned cells that failed."""
        query = """SELECT data, target, method, seed, error FROM cells
            LEFT JOIN times ON cell = id WHERE status = 'failed' AND place IS NOT NULL
            ORDER BY ended DESC, place DESC LIMIT ?"""
        return [
            (f"{data} {target} {method} seed {seed}", error.partition("\n")[0])
            for data, target, method, seed, error in self.read(query, count)
        ]

    def latest_ends(self, since: float, count: int) -> list[tuple[float, float]]:
        """Return when cells were finished from a moment on, and what they took; latest last."""
        query = """SELECT ended, coalesce(seconds, 0) FROM times JOIN cells ON id = cell
            WHERE ended >= ? ORDER BY ended DESC LIMIT ?"""
        return self.read(query, since, count)[::-1]

    def begin_invocation(self, detail: str) -> int:
        """Record that a command begins to work on the folder; returns its number."""
        with self.transaction() as connection:
            row = "INSERT INTO invocations (began, detail) VALUES (?, ?)"
            number = connection.execute(row, (time.time(), detail)).lastrowid or 0
            self._seal(_INVOCATIONS)
        return number

    def end_invocation(self, number: int, how: str) -> None:
        """Record the end of a command; one without an end was killed."""
        with self.transaction() as connection:
            query = "UPDATE invocations SET ended = ?, how = ? WHERE id = ?"
            connection.execute(query, (time.time(), how, number))
            self._seal(_INVOCATIONS)

    def invocations(self) -> list[Invocation]:
        """Return all commands that worked on the folder, in order of time."""
        query = "SELECT began, ended, how, detail FROM invocations ORDER BY id"
        return [Invocation(*row) for row in self.read(query)]


def read_records(folder: str | Path) -> RunRecords:
    """Read a run folder, or a folder of packed results (`vntransfer_lab.runner.packed`)."""
    if is_packed(folder):
        return RunRecords(*read_packed(folder), 0)
    with Store(folder) as store:
        preset = store.preset()
        if preset is None:
            raise UnplannedError(folder)
        return RunRecords(preset, store.records(), store.unplanned())


def read_outcomes(folder: str | Path, keys: Iterable[str]) -> dict[str, CellOutcome]:
    """Return what a run folder, or packed results, know of cells that ended without an error."""
    if is_packed(folder):
        known = {record.key: record.outcome() for record in read_packed(folder)[1]}
        return {key: known[key] for key in keys if key in known}
    with Store(folder) as store:
        found = {key: store.outcome(key) for key in keys}
    return {key: outcome for key, outcome in found.items() if outcome and not outcome.error}


def recover(folder: str | Path, out: str | Path) -> int:
    """Copy the finished cells of a run folder that are intact into a new one; return their number.

    The new folder has no plan: the command of the run, with ``--out`` for it, computes the rest.
    """
    if Path(out, STORE_NAME).exists():
        raise StoreError(f"--out: {out} holds a run already; name a new folder")
    found, reason = list[tuple[Cell, CellOutcome]](), ""
    try:
        with Store(folder, verify=False) as store:
            found.extend(store.intact())
    except StoreError as error:
        reason = f" ({error.__cause__ or error})"
    if not found:
        raise StoreError(
            f"{folder}: no intact cell was found{reason}; start the run again in a new folder"
        )
    with Store(out, write=True) as new:
        new.adopt([cell for cell, _ in found], {cell.key: outcome for cell, outcome in found})
    return len(found)
