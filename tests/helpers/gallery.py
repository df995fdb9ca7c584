"""A page with one of everything, and names as hostile as wanted."""

from typing import Any

import numpy as np

from vntransfer.pages import (
    MUTED,
    Axis,
    Heatmap,
    Intervals,
    Lines,
    Page,
    Panels,
    Scatter,
    Series,
    TableCell,
    histogram,
)

HOSTILE = "</script><script>window.hit=1</script><img src=x onerror='window.hit=1'>\"'&|"


def charts(name: str = "") -> dict[str, Any]:
    """One chart of each kind; ``name`` becomes part of every text."""
    rng = np.random.default_rng(0)
    names = [f"s{i}{name}" for i in range(1, 7)]
    x = np.arange(1, 9)
    matrix = rng.random((6, 6))
    matrix = matrix + matrix.T
    np.fill_diagonal(matrix, np.nan)

    def axis(text: str, **options: Any) -> Axis:
        return Axis(f"{text}{name}", **options)

    def curves(n: int) -> list[Series]:
        y = rng.random((n, len(x))) + 0.1
        return [Series(f"m{k}{name}", x, y[k], y[k] - 0.05, y[k] + 0.05) for k in range(n)]

    reference = Series(f"reference{name}", x, 1 / x, color=MUTED, marks=False)
    return {
        "lines": Lines([*curves(9), reference], axis("epoch"), axis("loss"), title=f"t{name}"),
        "log": Lines(curves(2), axis("n", log=True), axis("error", log=True)),
        "dots": Lines(curves_at(curves(2), 6), Axis(names=names), axis("weight")),
        "scatter": Scatter(curves(3), axis("true"), axis("guess"), diagonal=True),
        "histogram": histogram({n: rng.random(50) for n in names[:2]}, x=axis("y"), bins=5),
        "intervals": Intervals(
            names,
            x[:6],
            x[:6] - 0.5,
            x[:6] + 0.5,
            axis("mae"),
            f"t{name}",
            2.0,
            names[1],
            others=[9.0, None, 0.5, 1.0, 2.0, 3.0],
            others_name=f"paper{name}",
        ),
        "maps": Panels(
            [
                Heatmap(names, names, k * matrix, f"map{k}{name}", f"rows{name}", f"columns{name}")
                for k in (1, 2)
            ]
        ),
        "robust": Heatmap(names, names, matrix, label=f"distance{name}", high=1.0),
        "beside": Heatmap(
            names, names, matrix, mark="•", marks=matrix > 1, side=[(f"rank{name}", list("123456"))]
        ),
        "negative": Heatmap(names[:1], names[:3], [[-1.0, 0.5, 0.0]]),
    }


def curves_at(series: list[Series], n: int) -> list[Series]:
    """Series at the places 0 to n - 1."""
    return [Series(s.name, range(n), s.y[:n], s.low[:n], s.high[:n]) for s in series]  # type: ignore[index]


def gallery(name: str = "") -> Page:
    """Everything that a page can hold."""
    page = Page(f"Gallery{name}", lead=f"lead{name}", footer={f"made by{name}": f"command{name}"})
    part = page.section(f"Words{name}")
    part.text(f"text{name}").facts([(f"cells{name}", f"5{name}", f"of 5{name}")])
    for kind in ("good", "bad", "neutral", "warning"):
        part.note(f"note{name}", kind=kind, head=f"head{name}")
    rows = [
        [
            f"b{name}",
            TableCell(f"0.9 ± 0.1{name}", 0.9),
            30,
            TableCell(f"better{name}", tone="good"),
        ],
        [f"a{name}", TableCell("10.0 ± 0.1", 10.0), 4, TableCell("worse", tone="bad")],
        [f"c{name}", None, None, ""],
    ]
    header = [f"method{name}", "error", "n", "verdict"]
    part.table(header, rows, f"Table{name}", [f"a note{name}"])
    wide: list[list[Any]] = [[f"row {i}{name}", *np.linspace(0, i, 30)] for i in range(30)]
    part.table(["name", *(f"column {j}" for j in range(30))], wide, f"Wide{name}", fold=False)
    part.table(header, rows, f"Folded{name}", fold=True)
    part = page.section(f"Charts{name}")
    for title, chart in charts(name).items():
        part.figure(chart, f"{title}{name}", f"caption{name}")
    return page
