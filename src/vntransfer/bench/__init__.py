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

from vntransfer.bench.exports import export, results
from vntransfer.bench.packed import pack
from vntransfer.bench.provenance import read_provenance
from vntransfer.bench.report import report
from vntransfer.bench.runner import Summary, retry, run
from vntransfer.bench.verify import verify

__all__ = [
    "Summary",
    "export",
    "pack",
    "read_provenance",
    "report",
    "results",
    "retry",
    "run",
    "verify",
]
