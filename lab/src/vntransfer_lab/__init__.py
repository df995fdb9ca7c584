"""Experiments as presets: run them, resume them, report them.

Examples
--------
>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     _ = run("smoke", methods=["constant"], targets=["s1"], seeds=2, out=folder)
...     frame = results(folder)
>>> frame["metric"].tolist()
['mae', 'source_validation', 'mae', 'source_validation']
"""

from vntransfer_lab.reports.exports import export, results
from vntransfer_lab.reports.report import report
from vntransfer_lab.reports.verification import verify
from vntransfer_lab.runner.packed import pack
from vntransfer_lab.runner.provenance import read_provenance
from vntransfer_lab.runner.run import RunOptions, RunSummary, retry, run

__all__ = [
    "RunOptions",
    "RunSummary",
    "export",
    "pack",
    "read_provenance",
    "report",
    "results",
    "retry",
    "run",
    "verify",
]
