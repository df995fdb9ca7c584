"""Size of the page of a large run, and the time that a browser takes to open it.

python benchmarks/page.py [cells are fixed: 10,200; needs chromium, chromedriver and selenium]
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "page"))

from helpers.browser import chromium
from lab_helpers.large import large_store
from vntransfer_lab.reports.page import write_page

TIMES = 5
LOADED = (
    "const [n] = performance.getEntriesByType('navigation'); return n.loadEventEnd - n.startTime"
)


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        cells = large_store(folder)
        begin = time.perf_counter()
        page = write_page(folder)
        made = time.perf_counter() - begin
        size = page.stat().st_size / 1e6
        print(f"{cells} cells: page of {size:.2f} MB, made in {made:.1f} s")
        with chromium() as opened:
            spent = []
            for _ in range(TIMES):
                opened.get(page.as_uri())
                spent.append(opened.execute_script(LOADED) / 1000)
        middle, worst = statistics.median(spent), max(spent)
        print(f"load event after {middle:.2f} s (median of {TIMES}; slowest {worst:.2f} s)")


if __name__ == "__main__":
    main()
