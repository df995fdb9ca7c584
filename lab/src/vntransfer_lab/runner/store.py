"""The store: one SQLite file per run folder, cells and their metrics per step.

One transaction per finished cell: it is there whole or not at all
(`vntransfer_lab.runner.store_file`). One process writes (`vntransfer_lab.runner.run` holds a lock);
any number may read meanwhile.
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

from vntransfer_lab.errors import StoreError
from vntransfer_lab.runner.cells import IDENTITY, Cell, canonical_json
from vntransfer_lab.runner.packed import is_packed, read_packed, read_packed_costs
from vntransfer_lab.runner.preset import Preset, restore
from vntransfer_lab.runner.records import JSON_COLUMNS, CellOutcome, Cost, Record
from vntransfer_lab.runner.store_file import StoreFile, UnplannedError


class Store(StoreFile):
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

    def adopt(self, cells: Sequence[Cell], outcomes: Mapping[str, CellOutcome]) -> None:
        """Take in cells that were computed elsewhere, with their outcomes by key; plans none."""
        with self.transaction():
            self._insert((None, cell) for cell in cells)
        for cell in cells:
            self.finish(cell.key, outcomes[cell.key])

    def _insert(self, numbered: Iterable[tuple[int | None, Cell]]) -> None:
        names, marks = ", ".join(IDENTITY), ", ".join("?" * len(IDENTITY))
        self._connection.executemany(
            f"INSERT INTO cells (key, place, {names}) VALUES (?, ?, {marks}) "
            "ON CONFLICT (key) DO UPDATE SET place = excluded.place",
            (
                (cell.key, place, *(_cell_value(cell, name) for name in IDENTITY))
                for place, cell in numbered
            ),
        )

    def outcome(self, key: str) -> CellOutcome | None:
        """Return what came out of a cell, planned or not; None if it is not finished."""
        query = (
            "SELECT id, seconds, error, warnings FROM cells WHERE key = ? AND status != 'pending'"
        )
        found = self.read(query, key)
        if not found:
            return None
        identity, seconds, error, warnings = found[0]
        rows = self.read("SELECT step, name, value FROM metrics WHERE cell = ?", identity)
        said = (warnings or "").splitlines()
        made_by = self._makers(identity).get(identity, "")
        return CellOutcome(rows, seconds, error or "", warnings=said, made_by=made_by)

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
        records, makers = [], self._makers()
        for identity, *values in self.read(query):
            row: dict[str, Any] = dict(zip(names, values, strict=True))
            row.update({name: json.loads(row[name]) for name in JSON_COLUMNS})
            row["made_by"] = makers.get(identity, "")
            records.append(Record(**row, metrics=metrics.get(identity, {})))
        return records

    def _makers(self, *cell: int) -> dict[int, str]:
        """Return the version that computed each cell, or one; stores of 0.1.0.dev0 do not tell."""
        if not self.has("makers"):
            return {}
        which = " WHERE cell = ?" if cell else ""
        return dict(self.read(f"SELECT cell, version FROM makers{which}", *cell))

    def costs(self) -> dict[str, Cost]:
        """Return what planned cells cost, by their keys; not all of them know."""
        if not self.has("costs"):
            return {}
        query = (
            "SELECT key, steps, step_seconds, memory FROM costs "
            "JOIN cells ON cells.id = cell WHERE place >= 0 ORDER BY place"
        )
        return {key: Cost(*values) for key, *values in self.read(query)}


def _cell_value(cell: Cell, name: str) -> Any:
    value = getattr(cell, name)
    return canonical_json(value) if name in JSON_COLUMNS else value


def _preset_text(preset: Preset) -> str:
    # Not the canonical form: the order of methods and grids is the order of the tables.
    return json.dumps(preset.as_dict(), allow_nan=False)


def read_records(folder: str | Path) -> tuple[Preset, list[Record], int]:
    """Preset, planned cells and number of other finished cells of a run folder.

    A folder of packed results (`vntransfer_lab.runner.packed`) is read alike.
    """
    if is_packed(folder):
        return *read_packed(folder), 0
    with Store(folder) as store:
        preset = store.preset()
        if preset is None:
            raise UnplannedError(folder)
        return preset, store.records(), store.unplanned()


def read_costs(folder: str | Path) -> dict[str, Cost]:
    """Costs of the cells of a run folder or of packed results, by their keys."""
    if is_packed(folder):
        return read_packed_costs(folder)
    with Store(folder) as store:
        return store.costs()
