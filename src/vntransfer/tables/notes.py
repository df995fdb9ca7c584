"""Notes on a table: sentences with a kind, by which pages and terminals group them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from vntransfer.display import counted, listed

NoteKind = Literal[
    "empty",  # no cell of the column is filled, or hardly any
    "constant",  # at a target
    "unvaried",  # constant at the sources
    "unseen",  # values that no source has
    "type",  # written as something else than at the sources
    "id",
    "dates",  # outside of the sources' dates
    "determines",  # the response, nearly
    "close",  # predicts the response alone, not quite as well
    "gaps",  # more cells are empty at a target than at the sources
    "marker",  # a number that may mark missing values
    "flat",  # responses that do not vary at a source
    "repeats",  # rows that repeat others
    "unusual",  # cells of the target that differ from those of the sources
    "rows",  # which rows are used
    "reading",
]
Done = Literal["", "kept", "dropped"]

DROPPED = "dropped"
MANY = 0.05
"""Share of repeated rows above which they are no accident."""
MOST = 0.5
"""Share of a target's rows with categories that no source has above which there is a warning."""
CHECK = ("gaps", "dates", "marker", "flat")
"""Kinds of notes to check even if the column stays."""
GROUPS: Mapping[str, tuple[str, str]] = {
    DROPPED: ("column dropped", "columns dropped"),
    "determines": (
        "column nearly determines the response",
        "columns nearly determine the response",
    ),
    "check": ("column to check", "columns to check"),
    "repeats": ("note on repeated rows", "notes on repeated rows"),
    "unusual": ("column with unusual values", "columns with unusual values"),
    "rows": ("note on rows", "notes on rows"),
    "reading": ("note on reading", "notes on reading"),
}
"""Names of groups of notes, singular and plural, in the order of display."""


@dataclass(frozen=True)
class Note:
    """A sentence on a table.

    Examples
    --------
    >>> note = Note("empty", "'tax' is empty at the target", column="tax", done="dropped")
    >>> note.group, note.warning
    ('dropped', True)
    """

    kind: NoteKind
    text: str
    column: str = ""  # "": it is about rows
    share: float = 0.0  # of the rows that it is about
    done: Done = ""  # to the column

    @property
    def group(self) -> str:
        """The group of `GROUPS` that shows it."""
        if self.done == DROPPED:
            return DROPPED
        return self.kind if self.kind in GROUPS else "check"

    @property
    def warning(self) -> bool:
        """Whether a careful person would look into it."""
        if self.kind == "repeats":
            return self.share >= MANY
        if self.kind == "unusual":
            return self.share > MOST
        harmless = self.kind in ("id", "unvaried")  # once dropped
        return self.kind in CHECK or (self.group in (DROPPED, "determines") and not harmless)


def grouped(notes: Iterable[Note]) -> dict[str, list[Note]]:
    """Sort notes by group, in the order of `GROUPS`."""
    found = [*notes]
    groups = {name: [note for note in found if note.group == name] for name in GROUPS}
    return {name: own for name, own in groups.items() if own}


def heading(group: str, notes: list[Note]) -> str:
    """Count the notes of a group: "2 columns dropped".

    Examples
    --------
    >>> heading("dropped", [Note("id", "'nr' is dropped: row numbers", "nr", done="dropped")])
    '1 column dropped'
    """
    return f"{len(notes):,} {GROUPS[group][len(notes) > 1]}"


def overview(notes: Iterable[Note]) -> str:
    """Count all notes in one line: "3 notes: 2 columns dropped, 1 note on rows"."""
    groups = grouped(notes)
    total = sum(map(len, groups.values()))
    parts = ", ".join(heading(name, own) for name, own in groups.items())
    return f"{counted(total, 'note')}: {parts}" if total else ""


def warning_line(group: str, notes: list[Note]) -> str:
    """Summarize a group: name its columns, or quote notes on rows."""
    if len(notes) == 1 or not notes[0].column:
        return "; ".join(note.text for note in notes)
    return f"{heading(group, notes)}: {listed((note.column for note in notes), 5, 40)}"
