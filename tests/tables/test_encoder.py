"""Columns of every kind become numbers, and what was done is said and travels as JSON."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vntransfer.errors import DataError
from vntransfer.tables import TableEncoder, read_frame
from vntransfer.tables.columns import Column


def text(*cells: str) -> Column:
    return Column.of_texts(cells)


def kinds(encoder: TableEncoder) -> dict[str, str]:
    return {name: kind for name, kind, _ in encoder.summary()}


MIXED = {
    "area": text("50", "NA", "80.5", "61"),
    "lift": text("yes", "no", "No", "YES"),
    "sold": text("2024-03-31", "2023-12-01", "", "2024-01-15"),
    "kind": text("flat", "NA", "flat", ""),
    "code": text("01067", "01097", "01067", "01067"),
    "same": text("x", "x", "x", "x"),
}


def test_kinds_are_found_and_nothing_is_dropped_silently() -> None:
    encoder = TableEncoder.fit(MIXED)
    assert kinds(encoder) == {
        "area": "number",
        "lift": "boolean",
        "sold": "date",
        "kind": "category",
        "code": "category",
        "same": "dropped",
    }
    notes = {name: note for name, _, note in encoder.summary()}
    assert (
        notes["area"] == "number from 50 to 80.5; 1 missing filled with 61 and marked in a column"
    )
    assert notes["same"] == "constant, 'x' everywhere"
    assert encoder.names[:3] == ["area", "area is missing", "lift"]
    assert {"kind=flat", "kind=NA", "kind is missing", "sold: years"} <= set(encoder.names)
    X = encoder.encode(MIXED).X
    assert X.shape == (4, len(encoder.names))
    at = {name: X[:, j] for j, name in enumerate(encoder.names)}
    np.testing.assert_array_equal(at["area"], [50, 61, 80.5, 61])
    np.testing.assert_array_equal(at["lift"], [1, 0, 0, 1])
    np.testing.assert_array_equal(at["sold is missing"], [0, 0, 1, 0])
    np.testing.assert_array_equal(at["kind=NA"], [0, 1, 0, 0])
    np.testing.assert_allclose(
        np.diff(at["sold: years"][[1, 3, 0]]), [45 / 365.2425, 76 / 365.2425]
    )


def test_record_survives_json_and_damage_is_refused() -> None:
    encoder = TableEncoder.fit(MIXED)
    record = json.loads(json.dumps(encoder.as_json()))
    again = TableEncoder.from_json(record)
    assert again == encoder
    np.testing.assert_array_equal(again.encode(MIXED).X, encoder.encode(MIXED).X)
    for key, value in (("kind", "code"), ("fill", "many"), ("parts", [1]), ("missing", 3)):
        broken = [{**record[0], key: value}, *record[1:]]
        with pytest.raises(DataError, match="schema"):
            TableEncoder.from_json(broken)
    with pytest.raises(DataError, match="expected a list"):
        TableEncoder.from_json({"area": 1})


def test_later_rows_are_encoded_as_the_first_ones_were() -> None:
    encoder = TableEncoder.fit({"a": text("1", "3", "5"), "k": text("u", "v", "u")})
    X, found = encoder.encode({"k": text("w", ""), "a": text("", "9")})
    np.testing.assert_array_equal(X, [[3, 0, 0], [9, 0, 0]])
    assert [line.split(":")[0] for line in found.lines()] == ["'k'", "'a'", "'k'", "'a'"]
    assert "never seen in training ('w')" in found.lines()[0]
    with pytest.raises(DataError, match=r"row 7.*'a'.*'many'"):
        encoder.encode({"a": text("many"), "k": text("u")}, [7])


def test_frequent_categories_have_columns_and_the_others_share_one() -> None:
    cells = [f"c{i}" for i in range(40) for _ in range(80 - i)]
    encoder = TableEncoder.fit({"k": text(*cells)})
    assert len(encoder.names) == 31
    assert encoder.names[-1] == "k=(other)"
    X, found = encoder.encode({"k": text("c0", "c39", "new")})
    np.testing.assert_array_equal(X[:, [0, -1]], [[1, 0], [0, 1], [0, 1]])
    assert found.unseen == {"k": {"new": 1}}  # c39 was there


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": text("1", "2", "3 km")}, r"row 4, column 'a': '3 km' is not a number, 2 others"),
        ({"a": text("", "NA", "")}, r"column 'a': empty in all 3 rows;"),
        ({"a": text(*(f"x{i // 2}" for i in range(4000)))}, r"2000 different texts.*--drop 'a'"),
        ({"a": text(*(f"x{i}" for i in range(2000)))}, r"no usable column .*an id or prose"),
        ({"a": text("1", "1", "1")}, r"no usable column"),
        (read_frame({"a": [1.0, np.inf]}).columns, r"row 3, column 'a': infinite"),
    ],
)
def test_columns_that_cannot_be_used(columns: dict[str, Column], message: str) -> None:
    with pytest.raises(DataError, match=message):
        TableEncoder.fit(columns)


def test_ids_and_row_numbers_are_left_out_unless_asked_for() -> None:
    n = 60
    columns = {
        "id": text(*(f"person {i}" for i in range(n))),
        "row": text(*map(str, range(n))),
        "day": text(*(f"{i % 28 + 1}/03/24" for i in range(n))),
        "size": text(*(f"{i}.5 m²" for i in range(n))),
        "x": text(*(str(i % 7) for i in range(n))),
    }
    encoder = TableEncoder.fit(columns)
    notes = {name: note for name, _, note in encoder.summary()}
    left_out = {"id": "dropped", "row": "dropped", "size": "dropped"}
    assert kinds(encoder) == left_out | {"day": "category", "x": "number"}
    assert notes["id"].endswith("an id or prose")
    assert "--unit" in notes["size"]
    assert "looks like a date" in notes["day"]
    asked = TableEncoder.fit(columns, wanted=["id", "row"], category=["x"])
    wanted = {"id": "category", "row": "number", "x": "category"}
    assert kinds(asked) == wanted | {"day": "category", "size": "dropped"}


def test_files_and_frames_in_memory_are_read_alike(tmp_path: Path) -> None:
    import pyarrow as arrow
    from pyarrow import parquet

    pandas = pytest.importorskip("pandas")
    plain: dict[str, list[Any]] = {
        "a": [1.5, None, 3.0],
        "b": [True, False, None],
        "d": [np.datetime64("2024-01-01", "us"), np.datetime64("2024-02-01", "us"), None],
        "t": ["ü", "", "ü"],
    }
    parquet.write_table(arrow.table(plain), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_bytes(
        "a,b,d,t\r\n1.5,True,2024-01-01,ü\r\n,False,2024-02-01,\r\n3,,,ü\r\n".encode("utf-8-sig")
    )
    frames = [
        read_frame(tmp_path / "a.parquet"),
        read_frame(tmp_path / "a.csv"),
        read_frame(pandas.read_parquet(tmp_path / "a.parquet")),
        read_frame(pandas.read_parquet(tmp_path / "a.parquet").convert_dtypes()),
        read_frame(plain),
    ]
    encoders = [TableEncoder.fit(frame.columns, frame.rows) for frame in frames]
    first = encoders[0].encode(frames[0].columns).X
    for frame, encoder in zip(frames, encoders, strict=True):
        assert kinds(encoder) == {"a": "number", "b": "boolean", "d": "date", "t": "category"}
        np.testing.assert_array_equal(encoder.encode(frame.columns).X, first)
