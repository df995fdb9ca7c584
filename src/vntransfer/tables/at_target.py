"""Whether a column learned from the sources can be used at a target."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vntransfer.checks import Floats
from vntransfer.display import percent
from vntransfer.tables.columns import MISSING, Column
from vntransfer.tables.encoder import read_values
from vntransfer.tables.notes import NoteKind
from vntransfer.tables.schema import PERIODS, Field, remedy

Places = NDArray[np.intp]

NEARLY_ALL = 0.95
"""Share of the target's cells that counts as nearly all."""

GAPS = 0.2
"""Share of cells by which a target may be emptier than the sources without a warning."""

SELDOM = 0.01
"""Smallest share of source rows with a value for it to count as known."""

FEW = 5
"""Cells below which a column is not called constant."""

KINDS, LOOKED = 20, 1000
"""Largest number of different codes, and rows that are searched for them."""

NEAR = {"season": 15.0, "weekday": 0.6, "hour": 1.5 / 24}
"""Days within which a date of the sources covers one of the target, on each circle."""


@dataclass(frozen=True)
class Finding:
    """A problem of a column at a target."""

    kind: NoteKind
    why: str
    share: float  # of the target's rows, or cells that are filled
    drop: bool = True
    parts: tuple[str, ...] | None = None  # of a date that stay, if not all of it is dropped


def check_target(
    field: Field, cells: Column, at_sources: Floats, places: Places, there: str
) -> Finding | None:
    """Compare a column of a target with that of the sources; ``there`` names it in messages.

    ``at_sources`` are the values of the sources' rows, NaN where empty (of categories, any
    numbers that are equal where the categories are), ``places`` the sources they are of.
    """
    gaps = float(np.isnan(at_sources).mean())
    if field.kind == "category":
        return _category(field, cells, gaps, there)
    values = read_values(field, cells)
    full = values[~np.isnan(values)]
    if found := _empty(len(values), len(full), gaps, there):
        return found
    unfit = float(np.isinf(full).mean())
    if unfit > 0.5:
        what = {"number": "numbers", "boolean": "yes or no", "date": "dates"}[field.kind]
        cell = cells.take([int(np.isinf(values).argmax())]).texts()[0]
        how = f"; {remedy(cell, cells.options)}" if field.kind == "number" else ""
        why = (
            f"{percent(unfit)} of its cells {there}, such as {cell[:40]!r}, are not {what}, "
            f"but those at the sources are{how}"
        )
        return Finding("type", why, unfit)
    if unfit:
        return None  # the encoder names the cell
    if field.kind == "date" and (full.min() > field.high or full.max() < field.low):
        return _dates(field, full, at_sources, there)
    if len(full) >= FEW and np.ptp(full) == 0:
        return _constant(field, float(full[0]), at_sources, places, there)
    found = _codes(full, at_sources, there) if field.kind == "number" else None
    return found or _gaps(field, len(values), len(full), gaps, there)


def _codes(values: Floats, at_sources: Floats, there: str) -> Finding | None:
    """Find a few whole numbers that no source has: possibly codes."""
    few = np.unique(values[:LOOKED])
    some = at_sources[:: max(1, len(at_sources) // LOOKED)]
    if len(values) < FEW or len(few) > KINDS or (few % 1).any() or np.isin(few, some).any():
        return None
    if len(np.unique(some[~np.isnan(some)])) > KINDS:
        return None
    share = float(1 - np.isin(values, at_sources).mean())
    if share < NEARLY_ALL:
        return None
    why = (
        f"{percent(share)} of its values {there}, such as {few[0]:g}, occur at no source; if they "
        f"are codes, use --category"
    )
    return Finding("unseen", why, share, drop=False)


def _empty(n: int, filled: int, at_sources: float, there: str) -> Finding | None:
    share = 1 - filled / n
    if not filled:
        return Finding("empty", f"empty in all {n:,} rows {there}", 1.0)
    if share >= NEARLY_ALL and at_sources <= 0.5:
        known = percent(at_sources)
        why = f"empty in {percent(share)} of the rows {there} and in {known} at the sources"
        return Finding("empty", why, share)
    return None


def _gaps(field: Field, n: int, filled: int, at_sources: float, there: str) -> Finding | None:
    share = 1 - filled / n
    if share - at_sources <= GAPS:
        return None
    why = (
        f"empty in {percent(share)} of the rows {there}, but in {percent(at_sources)} at the "
        f"sources. The expected error and intervals do not include the cost of these gaps; fill "
        f"them, or remove the column with --drop {field.name!r}"
    )
    return Finding("gaps", why, share, drop=False)


def _category(field: Field, cells: Column, gaps: float, there: str) -> Finding | None:
    counts, n = cells.counts(), len(cells)
    known = {*field.categories, *field.others}
    blank = sum(counts[text] for text in counts if text in MISSING and text not in known)
    filled = n - blank
    if found := _empty(n, filled, gaps, there):
        return found
    new = {text: k for text, k in counts.items() if text not in known and text not in MISSING}
    share = sum(new.values()) / filled
    if share >= NEARLY_ALL:
        first = max(new, key=new.__getitem__)
        why = f"{percent(share)} of its values {there}, such as {first[:40]!r}, occur at no source"
        return Finding("unseen", why, share)
    filled_with = [text for text in counts if text in known]
    if filled >= FEW and len(filled_with) == 1 and not new:
        why = f"{filled_with[0][:40]!r} in all rows {there} and at some sources"
        return Finding("constant", why, 1.0, drop=False)
    return _gaps(field, n, filled, gaps, there)


def _constant(
    field: Field, value: float, at_sources: Floats, places: Places, there: str
) -> Finding:
    said = str(np.datetime64(int(value), "D")) if field.kind == "date" else f"{value:g}"
    known = float(np.isclose(at_sources, value, rtol=1e-12, atol=0).mean())
    if known >= SELDOM:
        why = f"{said} in all rows {there} and in {percent(known)} of the rows of the sources"
        return Finding("constant", why, 1.0, drop=False)
    own = [at_sources[(places == k) & ~np.isnan(at_sources)] for k in np.unique(places)]
    alike = sum(len(v) > 0 and np.ptp(v) == 0 for v in own)
    if field.low <= value <= field.high and len(own) >= 3 and 2 * alike >= len(own):
        why = f"one value for each place; {said} {there} lies between those of the sources"
        return Finding("constant", why, 1.0, drop=False)
    why = (
        f"{said} in all rows {there}, but in {'no' if not known else 'hardly any'} row of a source"
    )
    return Finding("constant", why, 1.0)


def _dates(field: Field, t: Floats, at_sources: Floats, there: str) -> Finding:
    """Keep the parts of dates, such as weekdays, that the sources cover."""
    known = at_sources[~np.isnan(at_sources)]
    covered = {
        period: len(known) > 0 and _covered(t, known, PERIODS[period], near) >= 0.5
        for period, near in NEAR.items()
    }
    parts = tuple(part for part in field.parts if covered.get(part.split()[0], False))
    first, last = (np.datetime64(int(v), "D") for v in (t.min(), t.max()))
    why = f"its dates {there}, from {first} to {last}, are outside the range of the sources"
    if not parts:
        return Finding("dates", why, 1.0)
    why = (
        f"{why}; only {', '.join(parts)} used. The expected error does not include changes of the "
        f"response over time"
    )
    return Finding("dates", why, 1.0, drop=False, parts=parts)


def _covered(t: Floats, known: Floats, period: float, near: float) -> float:
    """Share of dates with a known date nearby on a circle."""
    circle = np.unique(known % period)
    circle = np.concatenate((circle[-1:] - period, circle, circle[:1] + period))
    at = np.searchsorted(circle, t % period).clip(1, len(circle) - 1)
    gap = np.minimum(circle[at] - t % period, t % period - circle[at - 1])
    return float((np.abs(gap) <= near).mean())
