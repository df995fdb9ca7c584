"""Tables of users: what fits is read, what does not is named."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from vntransfer.errors import ArgumentError, DataError, DomainError
from vntransfer.tables.files import chunks, open_table
from vntransfer_lab.data import table

GOOD = "room,t,wind,load\nhall,20,1,1.5\nhall,21,2,2\nattic,25,3,3\nattic,24,4,2.5\n"


def write(folder: Path, content: str | bytes, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def write_parquet(folder: Path, name: str = "a.parquet", **columns: list[object]) -> Path:
    import pyarrow as arrow
    from pyarrow import parquet

    parquet.write_table(arrow.table(columns), folder / name)
    return folder / name


def test_csv_by_column(tmp_path: Path) -> None:
    rooms = table(write(tmp_path, GOOD), domain="room", response="load", targets=["attic"])
    assert list(rooms) == ["hall", "attic"]
    assert rooms.feature_names == ("t", "wind")
    assert rooms.targets == ("attic",)
    np.testing.assert_array_equal(rooms["attic"][0], [[25, 3], [24, 4]])
    np.testing.assert_array_equal(rooms["hall"][1], [1.5, 2])
    assert "a.csv" in rooms.provenance.describe()


def test_parquet_equals_csv(tmp_path: Path) -> None:
    path = write_parquet(
        tmp_path,
        room=["hall", "hall", "attic", "attic"],
        t=[20, 21, 25, 24],
        wind=[1.0, 2.0, 3.0, 4.0],
        load=[1.5, 2.0, 3.0, 2.5],
    )
    ours = table(path, domain="room", response="load")
    same = table(write(tmp_path, GOOD), domain="room", response="load")
    for name in same:
        np.testing.assert_array_equal(ours[name][0], same[name][0])
        np.testing.assert_array_equal(ours[name][1], same[name][1])


def test_gzip_equals_plain_and_damage_is_named(tmp_path: Path) -> None:
    packed = gzip.compress(GOOD.encode())
    rooms = table(write(tmp_path, packed, "a.csv.gz"), domain="room", response="load")
    np.testing.assert_array_equal(rooms["attic"][0], [[25, 3], [24, 4]])
    for broken in (packed[:-9], b"not gzip"):
        with pytest.raises(DataError, match=r"b\.csv\.gz: damaged gzip"):
            table(write(tmp_path, broken, "b.csv.gz"), domain="room", response="load")


def test_many_files_columns_in_any_order(tmp_path: Path) -> None:
    write(tmp_path, GOOD, "1.csv")
    write(tmp_path, "load,wind,t,room,note\n9,8,7,hall,x\n", "2.csv")
    rooms = table(str(tmp_path / "*.csv"), domain="room", response="load")
    np.testing.assert_array_equal(rooms["hall"][0][-1], [7, 8])
    both = table([tmp_path / "1.csv", tmp_path / "1.csv"], domain="room", response="load")
    assert len(both["hall"][1]) == 2


def test_each_file_a_domain(tmp_path: Path) -> None:
    for name in ("north", "south"):
        write(tmp_path, "x,y\n1,2\n3,4\n", f"{name}.csv")
    assert list(table(tmp_path / "*.csv", response="y")) == ["north", "south"]


def test_chosen_features_and_text_columns(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD.replace("20,1,", "20,breeze,"))
    chosen = table(path, domain="room", response="load", features=["t"])
    assert chosen.feature_names == ("t",)
    with pytest.raises(DataError, match=r"a\.csv: row 2, column 'wind': 'breeze' .* features="):
        table(path, domain="room", response="load")


def test_an_unlabeled_domain(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD + "cellar,1,2,\ncellar,3,4,\n")
    assert np.isnan(table(path, domain="room", response="load")["cellar"][1]).all()
    with pytest.raises(DataError, match=r"empty in 1 of 3 rows of domain 'hall'"):
        table(write(tmp_path, GOOD + "hall,1,2,\n"), domain="room", response="load")


def test_quotes_byte_order_mark_blank_lines_and_semicolons(tmp_path: Path) -> None:
    text = '\ufeffroom;"t, inside";load\n\nhall;"20";1\r\n"hall";21;2\n'
    rooms = table(write(tmp_path, text), domain="room", response="load")
    np.testing.assert_array_equal(rooms["hall"][0], [[20], [21]])


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("", "is empty; expected a line with the names"),
        ("room,t,load\n", "a header but no rows"),
        ("room,t,loud\nhall,1,2\n", r"no column 'load'; did you mean 'loud'\?"),
        ("a,b\n1,2\n", "no column"),
        ("room,t,t,load\nhall,1,2,3\n", "column 't' is there twice"),
        ("room,load\nhall,1\nhall,2\n", "no column is left as a feature"),
        ("room,t,load\nhall,1,2\nhall,1\n", r"row 3 has 2 cells, the header 3; is ','"),
        ("room,t,load\nhall,1,2,3\n", "row 2 has 4 cells"),
        ("room,t,load\nhall,,2\n", "row 2, column 't': '' is not a finite"),
        ("room,t,load\nhall,nan,2\n", "row 2, column 't': 'nan'"),
        ("room,t,load\nhall,1,x\n", "row 2, column 'load': 'x'"),
        ("room,t,load\nhall,1,inf\n", "row 2, column 'load': 'inf'"),
        ("room,t,load\nhall,1,2\n,1,2\n", "row 3, column 'room': is empty"),
        ('room,t,load\nhall,"1,2\n', "malformed csv"),
        ('room,t,load\n"ha"ll,1,2\n', "malformed csv near row 2"),
        (b"room,t,load\nh\xe4ll,1,2\n", "not UTF-8 text .byte 0xe4"),
        ("room,t,load\nhall,1,2\nhall,1,2\nattic,1,2\n", r"domain 'attic': has 1 row"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, content: str | bytes, match: str) -> None:
    with pytest.raises(DataError, match=match):
        table(write(tmp_path, content), domain="room", response="load")


def test_rows_are_counted_across_chunks(tmp_path: Path) -> None:
    lines = "".join(f"hall,{i},1\n" for i in range(12_000))
    with pytest.raises(DataError, match="row 12002, column 't': 'bad'"):
        table(write(tmp_path, f"room,t,load\n{lines}hall,bad,1\n"), domain="room", response="load")


def test_parquet_that_does_not_fit(tmp_path: Path) -> None:
    options = {"domain": "room", "response": "load"}
    with pytest.raises(DataError, match=r"row 3, column 't': 'warm'"):
        table(write_parquet(tmp_path, room=["a", "a"], t=["1", "warm"], load=[1, 2]), **options)
    with pytest.raises(DataError, match=r"row 2, column 't': ''"):
        table(write_parquet(tmp_path, room=["a", "a"], t=[None, 1], load=[1, 2]), **options)
    with pytest.raises(DataError, match=r"row 3, column 'room': is empty"):
        table(write_parquet(tmp_path, room=["a", None], t=[1, 1], load=[1, 2]), **options)
    with pytest.raises(DataError, match="not a readable parquet file"):
        table(write(tmp_path, GOOD, "b.parquet"), **options)


def test_parquet_with_an_unlabeled_domain(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, room=[1, 1, 2, 2], t=[1, 2, 3, 4], load=[1.0, 2.0, None, None])
    rooms = table(path, domain="room", response="load")
    assert list(rooms) == ["1", "2"]
    assert np.isnan(rooms["2"][1]).all()


def test_wrong_arguments(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    with pytest.raises(DataError, match="path: no file"):
        table(tmp_path / "*.tsv", response="y")
    with pytest.raises(ArgumentError, match="empty list"):
        table([], response="y")
    with pytest.raises(ArgumentError, match="'load' is also the response"):
        table(path, domain="room", response="load", features=["t", "load"])
    with pytest.raises(DomainError, match=r"targets \['roof'\] are not among its domains"):
        table(path, domain="room", response="load", targets=["roof"])


def test_parquet_is_held_one_row_group_at_a_time(tmp_path: Path) -> None:
    import pyarrow as arrow
    from pyarrow import parquet

    x = np.random.default_rng(0).standard_normal(100_000)
    parquet.write_table(arrow.table({"x": x}), tmp_path / "a.parquet", row_group_size=5_000)
    before, most, seen = arrow.total_allocated_bytes(), 0, []
    with open_table(tmp_path / "a.parquet") as opened:
        for chunk in chunks(opened, ["x"], size=1_000):
            most = max(most, arrow.total_allocated_bytes() - before)
            seen.append(chunk.columns["x"].numbers())
    np.testing.assert_array_equal(np.concatenate(seen), x)
    assert most < x.nbytes / 4  # all of them, if row groups are kept
