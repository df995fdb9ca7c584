"""What is there of a data set, and whether it is the right thing."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from vntransfer_lab.data.cache import Check, Found, check, locate, settled_form
from vntransfer_lab.data.entry import Entry, RemoteFile

State = Literal["embedded", "official", "compact", "partial", "incomplete", "absent"]


@dataclass(frozen=True)
class Status:
    """State of a data set on disk.

    Parameters
    ----------
    entry
        Its record.
    checks
        Files that were found, and what their hashes say.
    missing
        Required files that were not.
    """

    entry: Entry
    checks: dict[Found, Check]
    missing: tuple[RemoteFile, ...]

    @property
    def state(self) -> State:
        """How it can be loaded, if at all."""
        if self.missing:
            return "incomplete" if self.checks else "absent"
        forms = {found.form for found in self.checks}
        worst: tuple[State, ...] = ("partial", "compact", "official")
        return next((form for form in worst if form in forms), "embedded")

    @property
    def check(self) -> Check | None:
        """The worst of its files' checks; None where there are none."""
        worst: tuple[Check, ...] = ("differs", "unverified", "verified")
        return next((state for state in worst if state in self.checks.values()), None)

    def describe(self) -> tuple[str, str]:
        """Two words for a list.

        Examples
        --------
        >>> from vntransfer_lab.data.cache import lookup
        >>> status(lookup("synthetic")).describe()
        ('embedded', '-')
        """
        present = self.state in ("official", "compact", "partial")
        return f"present {self.state}" if present else self.state, self.check or "-"


def status(entry: Entry, folder: str | Path | None = None) -> Status:
    """Look for the files of a data set and check their hashes.

    Parameters
    ----------
    entry
        Its record.
    folder
        See `vntransfer_lab.data.cache.find`.
    """
    found = [replace(item, form=settled_form(item)) for item in locate(entry, folder)]
    present = {item.remote for item in found}
    missing = tuple(r for r in entry.files if r not in present and not r.optional)
    return Status(entry, {item: check(item) for item in found}, missing)
