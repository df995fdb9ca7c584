"""Check the built site (`make site`): nothing is loaded from elsewhere, every link leads somewhere.

Links that a reader may follow are free to point anywhere; what a page loads by itself is not.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data"}
STYLE = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")


class Reader(HTMLParser):
    """Collect what a page loads, what it links to and its anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the addresses of one tag."""
        values = {name: value for name, value in attrs if value}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag == "link" and "href" in values:
            self.loads.append(values["href"])
        elif LOADED.get(tag) in values:
            self.loads.append(values[LOADED[tag]])
        self.loads += [a or b for a, b in STYLE.findall(values.get("style", ""))]


def read(page: Path) -> Reader:
    """Parse one page."""
    found = Reader()
    found.feed(page.read_text(encoding="utf-8"))
    return found


def complaints(site: Path) -> list[str]:
    """Return a sentence for everything that is wrong with a built site."""
    pages = {path.resolve(): read(path) for path in sorted(site.rglob("*.html"))}
    wrong = []
    for path, page in pages.items():
        name = path.relative_to(site.resolve()).as_posix()
        if name == "404.html":  # its addresses are those of a server's root
            continue
        for address in [*page.loads, *page.links]:
            parts = urlsplit(address)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                if address in page.loads:
                    wrong.append(f"{name} loads {address}")
                continue
            aim = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            aim = aim / "index.html" if aim.is_dir() else aim
            if not aim.exists():
                wrong.append(f"{name} points to {address}, which is not there")
            elif parts.fragment and aim in pages and parts.fragment not in pages[aim].anchors:
                wrong.append(f"{name} points to {address}: no such place on that page")
    for style in sorted(site.rglob("*.css")):
        for found in STYLE.findall(style.read_text(encoding="utf-8")):
            if urlsplit(found[0] or found[1]).scheme not in ("", "data"):
                wrong.append(f"{style.relative_to(site)} loads {found[0] or found[1]}")
    return wrong


def main(site: Path) -> None:
    """Print what is wrong, and fail if anything is."""
    wrong = complaints(site)
    print(*wrong, sep="\n", end="\n" if wrong else "")
    if wrong:
        sys.exit(f"{len(wrong)} complaints about {site}")
    print(f"{site}: {len(list(site.rglob('*.html')))} pages, all links lead somewhere, no network")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
