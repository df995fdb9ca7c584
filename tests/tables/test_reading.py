"""Files as people have them: every cell arrives, guesses are stated, what is declared holds."""

import bz2
import csv
import gzip
import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers.towns import csv_text, towns, write
from vntransfer import ReadOptions, adapt, load
from vntransfer.errors import ArgumentError, DataError
from vntransfer.tables import TableEncoder, read_frame
from vntransfer.tables import csv_files as reader
from vntransfer.tables.columns import Column, Frame
from vntransfer.tables.files import chunks, open_table
from vntransfer.tables.frame import read_fixed
from vntransfer.tables.options import DEFAULTS
from vntransfer.workflows.predict import WriteOptions, predict_file

RIDGE: dict[str, Any] = {
    "domain": "town",
    "response": "price",
    "target": "new",
    "method": "ridge",
    "compare": (),
}
CELLS = st.text(st.characters(codec="utf-8"), max_size=6)


@given(
    st.integers(1, 4).flatmap(
        lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1)
    ),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.integers(1, 7),
)
@settings(suppress_health_check=list(HealthCheck))
def test_cells_and_row_numbers_are_those_of_pythons_csv_module(
    tmp_path: Path, rows: list[list[str]], delimiter: str, end: str, size: int
) -> None:
    text = io.StringIO(newline="")
    names = [f"c{i}" for i in range(len(rows[0]))]
    # before Python 3.13 the writer leaves ends of lines that are not its own without quotes
    quoted = any(c in cell for c in "\r\n" for row in rows for cell in row)
    quoting = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writerows([names, *rows])
    path = tmp_path / "a.csv"
    path.write_bytes(text.getvalue().encode())
    expected = [
        (row, [cell.strip() for cell in cells])
        for row, cells in enumerate(
            csv.reader(io.StringIO(text.getvalue(), newline=""), delimiter=delimiter), start=1
        )
        if any(cells) or cells == [""] or quoted  # what is in quotes is not left out
    ][1:]
    found = []
    with open_table(path, ReadOptions(delimiter=delimiter)) as table:
        for chunk in chunks(table, names, size=size):
            assert len(chunk.rows) <= size
            columns = [chunk.columns[name].texts() for name in names]
            found += [(row, list(cells)) for row, *cells in zip(chunk.rows, *columns, strict=True)]
        assert table.sha256() == hashlib.sha256(path.read_bytes()).hexdigest()
    assert found == expected


@given(st.lists(st.one_of(st.floats(allow_nan=False).map(repr), CELLS), min_size=1))
def test_texts_are_numbers_exactly_where_python_says_so(cells: list[str]) -> None:
    for cell, value in zip(cells, Column.of_texts(cells).numbers(), strict=True):
        try:
            meant = float(cell) if "_" not in cell else np.inf
        except ValueError:
            meant = np.nan if not cell.strip() else np.inf
        np.testing.assert_equal(value, meant)


@given(
    st.lists(st.floats(-1e12, 1e12).map(lambda x: round(x, 3)), min_size=1),
    st.sampled_from([(".", ","), (",", "."), (",", " "), (".", "'"), (",", "\u202f")]),
    st.sampled_from(["{}", "{} €", "€{}", "{}%"]),
)
def test_numbers_as_declared(values: list[float], marks: tuple[str, str], form: str) -> None:
    decimal, thousands = marks
    plain = [f"{value:,}" for value in values]
    table = str.maketrans({".": decimal, ",": thousands})
    cells = [form.format(cell.translate(table)) for cell in plain if "e" not in cell]
    said = " " if thousands == "\u202f" else thousands
    options = ReadOptions(decimal=decimal, thousands=said, units=("€", "%"))
    found = Column.of_texts(cells, options).numbers()
    np.testing.assert_array_equal(
        found, [v for v, c in zip(values, plain, strict=True) if "e" not in c]
    )


def test_marks_must_stand_where_they_belong() -> None:
    comma = Column.of_texts(["1,5", "1.5", "1,2,3", "1e3"], ReadOptions(decimal=","))
    np.testing.assert_array_equal(comma.numbers(), [1.5, np.inf, np.inf, 1000])
    groups = Column.of_texts(["1,234", "1,5", "12,34,567"], ReadOptions(thousands=","))
    np.testing.assert_array_equal(groups.numbers(), [1234, np.inf, np.inf])


@pytest.mark.parametrize(
    ("text", "delimiter", "decimal", "thousands"),
    [
        ('"place|","size|x","a|b|c"\n"n|",1,2\n"s|",3,4\n', ",", ".", None),
        ("a,b\n1.5,2\n", ",", ".", None),
        ("a;b\n1,5;2\n", ";", ",", None),
        ("a;b\n1.234,5;2\n", ";", ",", "."),
        ("a;b\n1,234;2\n", ";", ".", None),  # thousands or decimals: not guessed
        ("a;b\n1,5;2.5\n", ";", ".", None),  # both marks: not guessed
        ('a\tb, or c\n1\t"x, y"\n', "\t", ".", None),
        ("a|b\n1|2\n", "|", ".", None),
        ("price, EUR;size\n100,5;3\n", ";", ",", None),
        ("a\n1\n", ",", ".", None),
    ],
)
def test_what_is_detected_is_stated(
    tmp_path: Path, text: str, delimiter: str, decimal: str, thousands: str | None
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    frame = read_frame(path)
    found = frame.options
    assert (found.delimiter, found.decimal, found.thousands) == (delimiter, decimal, thousands)
    assert any("--delimiter" in note for note in frame.notes) == (delimiter != ",")
    assert any("--decimal" in note for note in frame.notes) == (decimal == ",")
    again = read_frame(path, options=found)
    assert again.notes == ()
    for name, column in frame.columns.items():
        assert again.columns[name].texts().tolist() == column.texts().tolist()


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8-sig", "cp1252"])
def test_encodings_and_packed_files(encoding: str, tmp_path: Path) -> None:
    content = ("Stadt;größe\n" + "Köln;1\n" * 20_000).encode(encoding)
    for name, pack in (("a.csv", bytes), ("a.csv.gz", gzip.compress), ("a.csv.bz2", bz2.compress)):
        (tmp_path / name).write_bytes(pack(content))
        frame = read_frame(tmp_path / name, options=ReadOptions(encoding=encoding))
        assert list(frame.columns) == ["Stadt", "größe"]
        assert set(frame.columns["Stadt"].texts()) == {"Köln"}
        assert len(frame) == 20_000
    if encoding != "utf-8-sig":
        with pytest.raises(DataError, match=r"not UTF-8 text.*--encoding"):
            read_frame(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ('a,b\n1,"2\n', "malformed csv near row"),
        ('a,b\n1,"2"x\n', "malformed csv near row 2"),
        ('a,b\n1,2\n\n"x\ny",2\n3\n', r"row 5 has 1 cells, the header 2"),
        ("a,b\n1,2\n\n3,\x80\n", r"not UTF-8 text \(byte 0x80 in row 4\).*--encoding"),
    ],
)
def test_what_arrow_would_read_somehow_is_refused(content: str, match: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(content, encoding="latin-1")
    with pytest.raises(DataError, match=match):
        read_frame(tmp_path / "a.csv")


@given(st.integers(0, 200))
@settings(suppress_health_check=list(HealthCheck))
def test_quotes_are_watched_from_piece_to_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    monkeypatch.setattr(reader, "BLOCK", 128)
    monkeypatch.setattr(reader, "SAMPLE", 16)
    path = tmp_path / "a.csv"
    filled = "a,b\n" + "1,2\n" * (before // 4) + f"1,{'2' * (before % 4)}\n"
    path.write_text(filled + '1,"one ""and"" two"x\n' + "1,2\n" * 40)
    with pytest.raises(DataError, match="malformed csv near row"):
        read_frame(path)


@given(st.text('a",\n', max_size=40))
def test_quotes_around_whole_cells_need_no_search(text: str) -> None:
    """The quick look answers only where Python's strict reader has nothing to refuse."""
    text = f"a{text}"
    bytes_ = reader._Utf8(io.BytesIO(b""))
    bytes_.expect(",")
    rest = bytes_._open_cell(text.encode())
    if '"' in text and rest is not None:
        rows = list(csv.reader(io.StringIO(text[:rest], newline=""), strict=True))
        assert not any('"' in cell for row in rows for cell in row)
        assert rest == len(text) or '"' in text[rest : rest + 2]


def test_marks_of_inches_and_rows_longer_than_a_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.csv"
    path.write_text('size,note\n6"x4",a "b" c\n7","d\ne"\n')
    assert read_frame(path).columns["size"].texts().tolist() == ['6"x4"', '7"']
    monkeypatch.setattr(reader, "BLOCK", 100)
    path.write_text(f"a,b\n{'x' * 300},2\n")
    with pytest.raises(DataError, match="cannot be read as csv"):
        read_frame(path)


def test_rows_are_counted_through_empty_lines(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n\n1,2\n,\n\n3,4\n,,\n".replace(",,", ","))
    frame = read_frame(tmp_path / "a.csv")
    assert list(frame.rows) == [3, 6]
    assert any("4 empty rows of a.csv" in note for note in frame.notes)


@pytest.mark.parametrize(
    ("dates", "option", "first", "said"),
    [
        (["31/01/2020", "01/02/2020"], None, "2020-01-31", "read day first"),
        (["01/31/2020", "02/01/2020"], None, "2020-01-31", "read month first"),
        (["01/02/2020", "03/04/2020"], None, "2020-01-02", "--day-first"),
        (["01.02.2020", "03.04.2020"], None, "2020-02-01", "--month-first"),
        (["01/02/2020", "03/04/2020"], True, "2020-02-01", "read day first"),
        (["01.02.2020 12:00", "03.04.2020 00:00"], False, "2020-01-02", "read month first"),
    ],
)
def test_dates_with_numbers(dates: list[str], option: bool | None, first: str, said: str) -> None:
    column = Column.of_texts(dates, ReadOptions(day_first=option))
    encoder = TableEncoder.fit({"day": column})
    assert said in encoder.fields[0].note
    assert encoder.fields[0].low <= (np.datetime64(first) - np.datetime64(0, "D")).astype(int) + 0.5
    days = column.days(day_first=encoder.fields[0].day_first)
    assert str(np.datetime64(int(days[0]), "D")) == first
    assert TableEncoder.from_json(encoder.as_json()) == encoder
    with pytest.raises(DataError, match=r"'day'.*'31/31/2020'"):
        encoder.encode({"day": Column.of_texts(["31/31/2020"])})


def test_a_model_reads_later_files_as_its_table(tmp_path: Path) -> None:
    plain = adapt(towns(), **RIDGE)
    table = german(towns())
    table["size"] = [f"{cell} m²" for cell in table["size"]]
    path = tmp_path / "a.csv"
    path.write_text(csv_text(table, delimiter=";"), encoding="latin-1")
    options = ReadOptions(encoding="latin-1", units=("m²",))
    model = adapt(path, **RIDGE, read_options=options)
    assert any("decimal comma" in note for note in model.notes)
    np.testing.assert_array_equal(model.predict(path).value, plain.predict(towns()).value)
    model.save(tmp_path / "m")
    later = load(tmp_path / "m")
    assert later.read_options == model.read_options
    tabs = tmp_path / "b.csv"
    tabs.write_text(csv_text(table, delimiter="\t"), encoding="latin-1")
    done = predict_file(later, tabs, tmp_path / "out.csv")
    assert done.rows == len(table["town"])
    assert any("latin-1" in note for note in done.notes)
    assert any("--delimiter" in note for note in done.notes)
    assert (tmp_path / "out.csv").read_text().startswith("row\ttown\t")
    with pytest.raises(DataError, match=r"column 'size': .* is not a number"):
        later.predict(tabs, read_options=ReadOptions(decimal="."))


def german(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {
        name: [str(c).replace(".", ",") if isinstance(c, float) else c for c in cells]
        for name, cells in columns.items()
    }


def test_predictions_have_the_decimal_mark_of_the_table(tmp_path: Path) -> None:
    path, out = write(tmp_path / "a.csv", german(towns()), delimiter=";"), tmp_path / "out.csv"
    model = adapt(path, **RIDGE)
    done = predict_file(model, path, out, write_options=WriteOptions(escape_formulas=True))
    assert any("decimal comma, as in training" in note for note in done.notes)
    with out.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    found = [float(row["price predicted"].replace(",", ".")) for row in rows]
    np.testing.assert_allclose(found, model.predict(path).value, rtol=1e-9)
    assert "." not in out.read_text(encoding="utf-8")
    assert all(row["size"] == size for row, size in zip(rows, german(towns())["size"], strict=True))
    # what parquet holds as numbers has a point, and so do the predictions beside it
    pq.write_table(pa.table(towns()), tmp_path / "a.parquet")
    other = tmp_path / "other.csv"
    predict_file(model, tmp_path / "a.parquet", other)
    assert np.isfinite(read_frame(other).columns["price predicted"].numbers()).all()


def test_another_decimal_mark_than_in_training_is_refused(tmp_path: Path) -> None:
    comma = german(towns())
    comma["size"][0] = "1.050,5"
    model = adapt(write(tmp_path / "a.csv", comma, delimiter=";"), **RIDGE)
    assert model.read_options.thousands == "."
    later = write(tmp_path / "b.csv", towns(), delimiter=";")
    with pytest.raises(DataError, match=r"row 2, column 'size': '87.3' is not .*--decimal"):
        predict_file(model, later)
    given = ReadOptions(decimal=".")
    value = model.predict(later, read_options=given).value
    np.testing.assert_array_equal(value, model.predict(towns(), read_options=given).value)
    # below one, three digits after the mark are never thousands
    with pytest.raises(DataError, match=r"row 2, column 'size': '0.763' is not .*--decimal"):
        model.predict({**towns(), "size": ["0.763"] * len(towns()["town"])})
    points = {**towns(), "size": [round(size) for size in towns()["size"]]}
    done = predict_file(model, write(tmp_path / "c.csv", points, delimiter=";"))
    assert any("100 responses are not numbers" in note for note in done.notes), done.notes


def test_numbers_with_another_mark_than_declared_are_no_categories() -> None:
    with pytest.raises(DataError, match=r"column 'a': '1.5' is not read .* decimal comma"):
        TableEncoder.fit({"a": Column.of_texts(["1.5", "2.5"], ReadOptions(decimal=","))})


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"delimiter": ";;"}, "delimiter: expected one character"),
        ({"decimal": ";"}, "decimal: expected one of"),
        ({"thousands": "x"}, "thousands: expected one of"),
        ({"thousands": "."}, "thousands: '.' is also the decimal mark"),
        ({"encoding": "klingon"}, "encoding: unknown 'klingon'"),
        ({"day_first": "yes"}, "^day_first: .*yes"),
        ({"units": ("5",)}, "units: expected signs"),
    ],
)
def test_options_are_checked(options: dict[str, Any], match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        ReadOptions(**options)


@given(st.lists(st.integers(0, 4000), max_size=4), st.sampled_from([77, 1500, 5000]))
@settings(deadline=None, max_examples=20)
def test_sampled_rows_of_parquet_are_from_all_parts_wherever_files_are_cut(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], group: int
) -> None:
    folder, x = tmp_path_factory.mktemp("cut"), np.arange(4000)
    ends = [0, *sorted(cuts), len(x)]
    files = [folder / f"{k}.parquet" for k in range(len(ends) - 1)]
    for file, low, high in zip(files, ends, ends[1:], strict=False):
        pq.write_table(pa.table({"x": x[low:high]}), file, row_group_size=group)

    def keep(own: Frame) -> np.ndarray:
        return own.columns["x"].numbers() % 3 > 0

    frames, complete = read_fixed(files, ["x"], DEFAULTS, 1600, keep)
    assert not complete
    found = np.concatenate([own.columns["x"].numbers() for own in frames])
    stretches = [np.arange(k * 250, k * 250 + 100) for k in range(16)]
    np.testing.assert_array_equal(found, [i for i in np.concatenate(stretches) if i % 3])
    for own, low in zip(frames, ends, strict=False):
        np.testing.assert_array_equal(own.columns["x"].numbers() - low + 2, own.rows)
