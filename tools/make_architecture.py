"""Draw docs/img/architecture.svg from the import graph (`make docs`).

Every package is a box; below its name stand the packages that it imports. Colors follow the
reader's light or dark setting, and nothing is loaded from elsewhere.
"""

import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

from import_graph import FACE, LAYERS, distribution, edges, imports, package
from vntransfer.pages.palette import GROUND, INK, SERIES

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "img" / "architecture.svg"
MATHEMATICS = LAYERS[0]
LEFT, WIDTH, GAP = 128, 760, 10
LINE, LETTER = 15, 6.1
"""Height of a line, and width of a letter, of small text."""

STYLE = """\
svg{--ground:%s;--ink:%s;--line:%s}
@media (prefers-color-scheme:dark){svg{--ground:%s;--ink:%s;--line:%s}}
text{font:11px system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;fill:var(--ink)}
.name{font-weight:600;font-size:13px}
.row{fill:var(--line);font-weight:600}
.ground{fill:var(--ground)}
.box{fill:var(--line);fill-opacity:.08;stroke:var(--line)}
.arrow{stroke:var(--line);stroke-width:1.5;fill:none}
.tip{fill:var(--line)}"""


@dataclass(frozen=True)
class Box:
    """One package: its name, and lines of small text."""

    name: str
    notes: tuple[str, ...]

    def lines(self, width: float) -> list[tuple[str, str]]:
        """Return classes and texts of its lines, broken to fit."""
        letters = int((width - 16) / LETTER)
        small = [line for note in self.notes for line in textwrap.wrap(note, letters)]
        return [*([("name", self.name)] if self.name else []), *(("note", line) for line in small)]


@dataclass(frozen=True)
class Row:
    """Boxes beside each other, with a title to the left."""

    title: str
    boxes: tuple[Box, ...]


def grouped(names: set[str]) -> str:
    """List packages of the library, with all of mathematics as one."""
    shown = [MATHEMATICS.title] if names & set(MATHEMATICS.packages) else []
    shown += [name for layer in LAYERS[1:] for name in layer.packages if name in names]
    return ", ".join("vntransfer" if name == FACE else name for name in shown)


def levels(names: Iterable[str], graph: dict[str, set[str]]) -> Iterator[list[str]]:
    """Give the packages in groups, each after those that it imports."""
    left = set(names)
    while left:
        free = sorted(name for name in left if not graph[name] & left)
        yield free
        left -= set(free)


def library_rows() -> list[Row]:
    """Return one row per layer of the library."""
    graph = edges("vntransfer")
    ordered = [name for level in levels(MATHEMATICS.packages, graph) for name in level]
    rows = [Row(MATHEMATICS.title, (Box("", (", ".join(ordered),)),))]
    for layer in LAYERS[1:]:
        boxes = (
            Box("vntransfer" if name == FACE else name, (f"imports {grouped(graph[name])}",))
            for name in layer.packages
        )
        rows.append(Row(layer.title, tuple(boxes)))
    return rows


def laboratory_rows() -> list[Row]:
    """Return the packages of the laboratory, each below those that it imports."""
    graph = edges("vntransfer_lab")
    library: dict[str, set[str]] = {name: set() for name in graph}
    for one in imports("vntransfer_lab"):
        if distribution(one.target) == "vntransfer" and not one.typing:
            library[package(one.source)].add(package(one.target))
    rows: list[Row] = []
    for level in levels(graph, graph):
        boxes = []
        for name in level:
            own = ["vntransfer_lab" if n == FACE else n for n in sorted(graph[name])]
            notes = [f"imports {', '.join(own)}"] if own else []
            notes += [f"from the library: {grouped(library[name])}"] if library[name] else []
            boxes.append(Box("vntransfer_lab" if name == FACE else name, tuple(notes)))
        rows.append(Row("" if rows else "laboratory", tuple(boxes)))
    return rows


def draw_row(row: Row, top: float) -> tuple[list[str], float]:
    """Draw one row; return its height as well."""
    width = (WIDTH - LEFT - GAP * len(row.boxes)) / len(row.boxes)
    texts = [box.lines(width) for box in row.boxes]
    height = 10 + LINE * max(map(len, texts))
    out = [f'<text class="row" x="{GAP}" y="{top + 18:g}">{row.title}</text>'] if row.title else []
    for i, lines in enumerate(texts):
        x = LEFT + i * (width + GAP)
        size = f'width="{width:g}" height="{height:g}"'
        out.append(f'<rect class="box" x="{x:g}" y="{top:g}" {size} rx="4"/>')
        for j, (kind, line) in enumerate(lines):
            y = top + 18 + j * LINE
            out.append(f'<text class="{kind}" x="{x + 8:g}" y="{y:g}">{escape(line)}</text>')
    return out, height


def picture() -> str:
    """Return the whole picture."""
    parts: list[str] = []
    top = 14.0
    for rows in (library_rows(), laboratory_rows()):
        start = top
        for row in rows:
            drawn, height = draw_row(row, top)
            parts += drawn
            top += height + GAP
        x = LEFT - 16
        parts.append(f'<path class="arrow" d="M{x} {top - GAP:g}V{start + 8:g}"/>')
        parts.append(f'<path class="tip" d="M{x - 5} {start + 9:g}h10l-5 -9z"/>')
        top += 14
    colors = [c[theme] for theme in ("light", "dark") for c in (GROUND, INK)]
    light, dark = SERIES["light"][0], SERIES["dark"][5]
    style = STYLE % (*colors[:2], light, *colors[2:], dark)
    title = "Packages of the library and the laboratory; imports only point up"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top - 14:g}" '
            f'width="{WIDTH}" role="img">',
            f"<title>{title}</title>",
            f"<style>{style}</style>",
            '<rect class="ground" width="100%" height="100%"/>',
            *parts,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    print(f"wrote {PICTURE.name}")
