"""Draw docs/img/page.png: the page of a run in Chromium, as a person sees it.

Run: python tools/make_page_picture.py runs/synthetic (a run folder, or packed results; needs
chromium, chromedriver, selenium and pillow). The left half is light, the right half dark.
"""

import io
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "page"))

from browser import chromium, prefer, resize  # noqa: E402

from vntransfer.bench.page import write_page  # noqa: E402

PICTURE = ROOT / "docs" / "img" / "page.png"
SIZE = (1280, 1500)


def shot(opened: Any, page: Path, theme: str, to: str) -> Image.Image:
    """Picture of a page, scrolled to an element."""
    prefer(opened, theme)
    opened.get(page.as_uri())
    opened.execute_script("document.querySelector(arguments[0]).scrollIntoView()", to)
    return Image.open(io.BytesIO(opened.get_screenshot_as_png())).convert("RGB")


def main(folder: Path) -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as place, chromium(*SIZE) as opened:
        page = write_page(folder, Path(place, "page.html"))
        resize(opened, *SIZE)
        # the beginning in light, the figures in dark
        left, right = shot(opened, page, "light", "body"), shot(opened, page, "dark", "#part-3")
    whole = Image.new("RGB", (2 * SIZE[0] + 40, SIZE[1]), "#8a929c")
    whole.paste(left, (0, 0))
    whole.paste(right, (SIZE[0] + 40, 0))
    small = whole.resize((whole.width * 5 // 8, whole.height * 5 // 8), Image.Resampling.LANCZOS)
    small.quantize(256, kmeans=2, dither=Image.Dither.NONE).save(PICTURE, optimize=True)
    print(f"wrote {PICTURE.relative_to(ROOT)}, {PICTURE.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
