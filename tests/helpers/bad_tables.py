"""Tables that cannot be used, with what is said of them, and tables of any kind."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from helpers.towns import csv_text, towns


def change(**columns: Any) -> str:
    """The towns with other columns."""
    return csv_text({**towns(), **columns})


n = len(towns()["town"])
size, town = towns()["size"], towns()["town"]
twice = csv_text(towns()).replace("town,size", "town,size,size").replace("\n", ",1\n")

BAD: dict[str, tuple[str, str, str]] = {
    "empty file": ("", *["is empty; expected a line with the names"] * 2),
    "header only": ("town,size,garden,kind,price\n", *["has a header but no rows; fill it"] * 2),
    "one row": (
        "town,size,price\nnorth,3,1\n",
        "has no place 'new'",
        "has one row; at least two places",
    ),
    "one place": (
        change(town=["new"] * n),
        "has one place, 'new'; at least two are needed",
        "has one place, 'new'; at least two are needed",
    ),
    "no response column": (
        csv_text({k: v for k, v in towns().items() if k != "price"}),
        *["has no column 'price'; it has town, size"] * 2,
    ),
    "no responses": (
        change(price=[None] * n),
        "0 rows of sources have a response",
        "is known in no place; at least two",
    ),
    "all missing": (
        change(size=[""] * n, garden=[""] * n, kind=[""] * n),
        "no usable column ('size': empty in all 100 labeled rows;",
        "column 'size': empty in all 125 rows;",
    ),
    "constant response": (
        change(price=["7"] * n),
        "is 7 in all labeled rows",
        "give a response that varies",
    ),
    "column twice": (twice, *["column 'size' occurs twice; rename one"] * 2),
    "mixed types": (
        change(size=["big", *size[1:]]),
        "row 2, column 'size': 'big' is not a number, 99 others of the column are",
        "row 2, column 'size': 'big' is not a number, 124 others of the column are",
    ),
    "many categories": (
        csv_text(
            {
                "town": ["a", "b"] * 10_000 + ["new"] * 3,
                "code": [f"c{i % 10_000}" for i in range(20_003)],
                "price": [*range(20_000), "", "", ""],
            }
        ),
        *["column 'code': 10000 different texts"] * 2,
    ),
    "text response": (change(price=["dear"] * n), *["row 2, column 'price': 'dear' is not"] * 2),
    "place missing": (change(town=["", *town[1:]]), *["empty; enter the place of the row"] * 2),
    "ragged": (csv_text(towns()) + "north,3\n", *["row 127 has 2 cells, the header 5"] * 2),
    "nothing to learn from": (
        csv_text({k: v for k, v in towns().items() if k in ("town", "price")}),
        *["no column is left as a feature"] * 2,
    ),
    "only constants": (
        csv_text({"town": town, "x": ["1"] * n, "price": towns()["price"]}),
        *["no usable column"] * 2,
    ),
    "quotes": (csv_text(towns()) + '"north,3\n', *["malformed csv"] * 2),
}
"""Name -> content, what `vnt adapt` says, what `vnt relate` says."""

CELLS = st.one_of(
    st.sampled_from(["", "NA", "yes", "no", "1", "-2.5", "1e300", "inf", "2024-02-30", "=1+1"]),
    st.dates().map(str),
    st.integers(-5, 5).map(str),
    st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=4),
)


def any_table(rows: int = 20) -> st.SearchStrategy[dict[str, list[str]]]:
    """Make tables of places a, b and new with one to four columns of anything."""

    def column(cells: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
        return st.lists(cells, min_size=rows, max_size=rows)

    price = column(st.one_of(st.integers(-9, 9).map(str), st.just("")))
    place = column(st.sampled_from(["a", "b", "new"]))
    features = st.lists(column(CELLS), min_size=1, max_size=4)
    return st.builds(
        lambda place, features, price: {
            "town": place,
            **{f"x{i}": own for i, own in enumerate(features)},
            "price": price,
        },
        place,
        features,
        price,
    )


def write_cells(path: Path, table: Mapping[str, Sequence[str]]) -> Path:
    """Write cells of any kind as csv, quoted where they must be."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
    return path
