"""Draw the pictures of pages in README and docs: in Chromium, as a person sees them.

Run: python tools/make_page_picture.py [lab/results/synthetic] (a run folder, or packed results, for
docs/img/page.png; docs/img/tables.png is of the example table; needs chromium, chromedriver,
selenium and pillow). Left halves are light, right halves dark.
"""

import io
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from helpers.browser import chromium, prefer, resize  # noqa: E402
from vntransfer.tables.example import example_table  # noqa: E402
from vntransfer.workflows.adapt import adapt  # noqa: E402
from vntransfer.workflows.relate import relate  # noqa: E402
from vntransfer_lab.reports.page import write_page  # noqa: E402

IMAGES = ROOT / "docs" / "img"
WIDTH, GAP = 1280, 40
FRAMES = "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(arguments[0], 500)))"
Half = tuple[Path, str]  # a page, and the element at the top


def shot(opened: Any, half: Half, theme: str) -> Image.Image:
    """Picture of a page, scrolled to an element."""
    page, top = half
    prefer(opened, theme)
    opened.get(page.as_uri())
    opened.execute_script("document.querySelector(arguments[0]).scrollIntoView()", top)
    opened.execute_async_script(FRAMES)  # parts of a page are laid out when they come into view
    return Image.open(io.BytesIO(opened.get_screenshot_as_png())).convert("RGB")


def draw(name: str, left: Half, right: Half, height: int) -> None:
    """Write a picture of two halves."""
    with chromium(WIDTH, height) as opened:
        resize(opened, WIDTH, height)
        halves = shot(opened, left, "light"), shot(opened, right, "dark")
    whole = Image.new("RGB", (2 * WIDTH + GAP, height), "#8a929c")
    for place, half in zip((0, WIDTH + GAP), halves, strict=True):
        whole.paste(half, (place, 0))
    small = whole.resize((whole.width * 5 // 8, whole.height * 5 // 8), Image.Resampling.LANCZOS)
    path = IMAGES / name
    small.quantize(256, kmeans=2, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"wrote {path.relative_to(ROOT)}, {path.stat().st_size // 1000} kB")


def main(folder: Path) -> None:
    """Write both pictures."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        run = write_page(folder, place / "run.html")
        related = relate(example_table(), domain="town", response="price")
        model = adapt(example_table(), domain="town", response="price", target="Saltby")
        towns = related.to_page(place / "towns.html")
        saltby = model.to_page(place / "saltby.html")
        draw("page.png", (run, "body"), (run, "#part-3"), 1500)
        draw("tables.png", (towns, "body"), (saltby, "body"), 1150)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "lab" / "results" / "synthetic"))
