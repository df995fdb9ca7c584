"""Errors of the laboratory; they are `vntransfer.VnError` like all others."""

from vntransfer.errors import VnError


class PresetError(VnError, ValueError):
    """A preset of an experiment (or an option that changes it) is not valid."""


class StoreError(VnError, OSError):
    """The store of a run folder cannot be read or written."""


class ClusterError(VnError, RuntimeError):
    """A cluster that should compute cells cannot be reached, or does not fit."""
