"""Tables as people have them: what is copied stays whole, what is learned is kept, sentences."""

import csv
import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from helpers.saved import edit
from helpers.towns import csv_text, towns, write
from vntransfer import adapt, learn_tasks, load
from vntransfer.cli import app
from vntransfer.errors import ArgumentError, DataError, DomainError
from vntransfer.tables.frame import read_frame
from vntransfer.workflows import predict
from vntransfer.workflows.predict import predict_file

FEW = ["--domain", "town", "--response", "price", "--resamples", "99"]
ROLES: dict[str, Any] = {"domain": "town", "response": "price"}
RIDGE: dict[str, Any] = {**ROLES, "target": "new", "method": "ridge", "compare": ()}
QUICK = [
    "--domain",
    "town",
    "--response",
    "price",
    "--target",
    "new",
    "--method",
    "ridge",
    "--no-compare",
]


def vnt(*arguments: Any) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "towns"
    adapt(towns(), **RIDGE).save(folder)
    return folder


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file, strict=True))


@pytest.mark.parametrize("taken", [["row"], ["row", "row of file"]])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_column_named_row_stays_beside_the_row_numbers(
    taken: list[str], ending: str, model: Path, tmp_path: Path
) -> None:
    n = len(towns()["town"])
    table = write(
        tmp_path / "a.csv", {name: [f"r{i}" for i in range(n)] for name in taken} | towns()
    )
    out = tmp_path / f"out.{ending}"
    predict_file(load(model), table, out)
    rows = pq.read_table(out).to_pylist() if ending == "parquet" else rows_of(out)
    free = f"{taken[-1]} of file"
    assert [str(row[free]) for row in rows[:3]] == ["2", "3", "4"]
    for name in taken:
        assert [row[name] for row in rows] == [f"r{i}" for i in range(n)]
    assert [row["town"] for row in rows] == towns()["town"]


def test_columns_that_are_copied_lose_nothing_and_may_be_of_any_type(
    model: Path, tmp_path: Path
) -> None:
    n, first = len(towns()["town"]), 2**53 + 1
    own = pa.table(
        {
            "id": pa.array(range(first, first + n), pa.int64()),
            "tags": pa.array([["a", "b"]] * n),
            "seen": pa.array([19000] * n, pa.date32()),
            **{name: pa.array(cells) for name, cells in towns().items()},
        }
    )
    pq.write_table(own, tmp_path / "a.parquet")
    loaded = load(model)
    predict_file(loaded, tmp_path / "a.parquet", tmp_path / "out.parquet")
    written = pq.read_table(tmp_path / "out.parquet")
    for name in own.column_names:
        assert written.column(name).equals(own.column(name)), name
        assert written.schema.field(name).type == own.schema.field(name).type
    predict_file(loaded, tmp_path / "a.parquet", tmp_path / "out.csv")
    assert rows_of(tmp_path / "out.csv")[1]["id"] == str(first + 1)
    assert len(loaded.predict(tmp_path / "a.parquet").value) == n
    # and what is left out does not have to be read for learning either
    again = adapt(tmp_path / "a.parquet", **RIDGE, drop=["id", "tags", "seen"])
    np.testing.assert_allclose(again.predict(towns()).value, loaded.predict(towns()).value)
    with pytest.raises(DataError, match="column 'tags' has the type list"):
        adapt(tmp_path / "a.parquet", **RIDGE)
    learn = {"task": "town", "response": "garden", "features": ["size"]}
    tasks = learn_tasks(tmp_path / "a.parquet", **learn)
    assert len(tasks.predict(tmp_path / "a.parquet")) == n


def test_ids_beyond_the_precision_of_floats_tell_places_apart(tmp_path: Path) -> None:
    table = {name: list(cells) for name, cells in towns().items()}
    ids = {name: 2**53 + i for i, name in enumerate(dict.fromkeys(table["town"]))}
    table["town"] = [ids[name] for name in table["town"]]
    pq.write_table(pa.table(table), tmp_path / "a.parquet", row_group_size=30)
    model = adapt(tmp_path / "a.parquet", **{**RIDGE, "target": ids["new"]})
    assert len(model.outcomes[str(ids["new"])].source_weights) == 4
    done = predict_file(model, tmp_path / "a.parquet", tmp_path / "out.csv")
    assert done.rows == len(table["town"])
    assert [int(row["town"]) for row in rows_of(tmp_path / "out.csv")] == table["town"]


def test_several_files_are_not_predicted_as_one(model: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / f"sales.{name}.csv", towns())
    with pytest.raises(ArgumentError, match="path: 2 files"):
        predict_file(load(model), tmp_path / "sales.*.csv")
    for name in ("a", "b"):
        done = vnt("predict", model, tmp_path / f"sales.{name}.csv")
        assert done.exit_code == 0, done.output
        assert (tmp_path / f"sales.{name}.predicted.csv").exists()


def test_of_many_sources_those_that_were_not_held_out_have_no_error() -> None:
    rng = np.random.default_rng(0)
    town = np.repeat([f"t{i:02}" for i in range(24)] + ["new"], 12)
    size = rng.uniform(30, 120, len(town))
    price = np.where(town == "new", np.nan, 3 * size + rng.normal(0, 2, len(town)))
    own = adapt({"town": town, "size": size, "price": price}, **RIDGE)
    outcome = own.outcomes["new"]
    assert len(outcome.errors["ridge"]) == 20
    assert outcome.errors["constant"].keys() == outcome.errors["ridge"].keys()
    error, spread = outcome.expected()
    assert 1 < error < 3
    assert 0 < spread < 1
    assert outcome.expected("constant")[0] > 10 * error
    assert len(outcome.source_weights) == 24


@pytest.mark.parametrize("marks", [["TBD", "inf"], ["later", "?"]])
def test_responses_of_targets_are_not_read(marks: list[str]) -> None:
    table = towns()
    aimed = [i for i, name in enumerate(table["town"]) if name == "new"]
    for i, mark in zip(aimed, marks, strict=False):
        table["price"][i] = mark
    model, plain = adapt(table, **RIDGE), adapt(towns(), **RIDGE)
    np.testing.assert_array_equal(model.predict(towns()).value, plain.predict(towns()).value)
    with pytest.raises(DataError, match="is not a finite number"):
        adapt(table, **RIDGE, use_target_labels=True)


def test_names_that_labeled_rows_would_get_are_refused() -> None:
    table = towns()
    table["town"] = [name.replace("west", "new (labeled)") for name in table["town"]]
    table["price"][table["town"].index("new")] = 100.0
    with pytest.raises(DomainError, match=r"'new \(labeled\)' names labeled target rows"):
        adapt(table, **RIDGE, use_target_labels=True)


@pytest.mark.parametrize("bad", ["12,5", "inf", "broken"])
def test_one_bad_number_does_not_make_classes(bad: str) -> None:
    table = {name: cells[:100] for name, cells in towns().items()}
    table["price"] = [str(price) for price in table["price"]]
    table["price"][7] = bad
    with pytest.raises(DataError, match=f"row 9, column 'price': '{bad}'"):
        learn_tasks(table, task="town", response="price")
    table["price"] = [price.replace(".", ",") for price in table["price"]]
    with pytest.raises(DataError, match="is not a finite number"):
        learn_tasks(table, task="town", response="price")


@pytest.mark.parametrize("command", ["adapt", "relate"])
def test_a_reader_that_leaves_costs_neither_model_nor_page(command: str, tmp_path: Path) -> None:
    table, page = write(tmp_path / "a.csv", towns()), tmp_path / "p.html"
    options = [*QUICK, "--save", tmp_path / "m"] if command == "adapt" else FEW
    read, unread = os.pipe()
    os.close(read)  # as `| head -0` does
    code = "from vntransfer.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, (command, table, *options, "--out", page))],
        stdout=unread,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(unread)
    assert page.exists(), done.stderr
    assert "Traceback" not in done.stderr
    if command == "adapt":
        assert load(tmp_path / "m").targets == ["new"]


def test_no_page_takes_the_place_of_a_table_a_pipe_or_a_model(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / f"{name}.csv", towns())
    before = (tmp_path / "b.csv").read_bytes()
    relate = ["relate", tmp_path / "*.csv", "--domain", "town", "--response", "price"]
    for command in (relate, ["adapt", tmp_path / "*.csv", *QUICK]):
        done = vnt(*command, "--out", tmp_path / "b.csv")
        assert (done.exit_code, (tmp_path / "b.csv").read_bytes()) == (2, before)
        assert "is the table that is read" in " ".join(done.stderr.split())
    os.mkfifo(tmp_path / "pipe.html")
    done = vnt(*relate, "--out", tmp_path / "pipe.html")
    assert (done.exit_code, (tmp_path / "pipe.html").is_fifo()) == (2, True)
    inside = ["--save", tmp_path / "m", "--out", tmp_path / "m" / "page.html"]
    done = vnt("adapt", tmp_path / "a.csv", *QUICK, *inside)
    assert (done.exit_code, (tmp_path / "m").exists()) == (2, False)


def test_a_model_of_one_source_says_nothing_of_intervals(tmp_path: Path) -> None:
    table = {name: cells[:25] + cells[100:] for name, cells in towns().items()}
    model = adapt(table, **RIDGE)
    done = predict_file(model, write(tmp_path / "a.csv", towns()))
    assert "interval" not in done.comparison(0.9)
    assert "nan" not in model.to_page(tmp_path / "p.html").read_text(encoding="utf-8").lower()


def test_classes_are_compared_as_they_are_meant(tmp_path: Path) -> None:
    table = {**towns(), "garden": [own == "yes" for own in towns()["garden"]]}
    model = learn_tasks(table, task="town", response="garden", features=["size"])
    files = {}
    for name, written in {"plain": str, "capital": lambda v: str(v).capitalize()}.items():
        cells = [written("true" if own else "false") for own in table["garden"]]
        files[name] = write(tmp_path / f"{name}.csv", {**table, "garden": cells})
    plain, capital = (predict_file(model, file) for file in files.values())
    assert plain.error == capital.error
    assert 0 < plain.error < 1
    some = ["NA" if i % 5 == 0 else str(own).lower() for i, own in enumerate(table["garden"])]
    done = predict_file(model, write(tmp_path / "some.csv", {**table, "garden": some}))
    assert done.labeled == len(some) * 4 // 5


def test_a_place_that_is_a_number_is_named_as_it_is_written() -> None:
    places = dict(zip(dict.fromkeys(towns()["town"]), [1.0, 2.0, 3.0, 3.5, 4.0], strict=True))
    table = {**towns(), "town": [places[name] for name in towns()["town"]]}
    assert adapt(table, **{**RIDGE, "target": 4.0}).targets == ["4"]


def test_cells_of_lists_and_codes() -> None:
    frame = read_frame({"place": [float("nan"), "A"], "code": ["2024_01", "2024_02"]})
    assert frame.columns["place"].texts().tolist() == ["", "A"]
    assert np.isinf(frame.columns["code"].numbers()).all()


def test_damage_is_a_sentence(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(csv_text(towns()).encode()))
    packed[len(packed) // 2] ^= 0xFF
    (tmp_path / "a.csv.gz").write_bytes(packed)
    with pytest.raises(DataError, match="damaged gzip"):
        adapt(tmp_path / "a.csv.gz", **RIDGE)
    (tmp_path / "b.csv").write_text("\n" + csv_text(towns()))
    with pytest.raises(DataError, match="begins with an empty line"):
        adapt(tmp_path / "b.csv", **RIDGE)
    with pytest.raises(DataError, match=r"column 'size': 1e\+200 is too large"):
        adapt({**towns(), "size": [1e200, *towns()["size"][1:]]}, **RIDGE)
    for options in ({"features": "size"}, {"drop": "kind"}):
        with pytest.raises(ArgumentError, match="expected a list of columns"):
            adapt(towns(), **RIDGE, **options)
    with pytest.raises(ArgumentError, match=r"^domain: .*column.* 0"):
        adapt(towns(), **{**RIDGE, "domain": 0})


def test_edited_models_are_refused(tmp_path: Path) -> None:
    adapt(towns(), **RIDGE).save(tmp_path / "m")

    def change(content: dict[str, Any]) -> None:
        content["record"]["schema"] = [own | {"low": "3"} for own in content["record"]["schema"]]

    edit(tmp_path / "m", change)
    with pytest.raises(DataError, match=r"model\.json: .*low"):
        load(tmp_path / "m")


def test_folders_of_tasks_are_checked_as_those_of_models(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    learn_tasks(towns(), task="town", response="garden", features=["size"]).save(folder)
    (folder / "more.txt").write_text("")
    with pytest.raises(DataError, match=r"more.txt is not part of the model"):
        load(folder)
    (folder / "more.txt").unlink()
    edit(folder, lambda content: content["record"].update(classes=["a", "b", "c"]))
    with pytest.raises(DataError, match=r"model\.json: .*classes"):
        load(folder)


@pytest.mark.parametrize("write_as", ["{},5", "{}%", "1,{:03.0f}.5"])
def test_numbers_as_people_write_them_are_not_taken_for_categories(write_as: str) -> None:
    table = towns()
    table["size"] = [write_as.format(int(value)) for value in table["size"]]
    with pytest.raises(DataError, match=r"row 2, column 'size': .* is not read as a number"):
        adapt(table, **RIDGE)
    adapt(table, **RIDGE, category=["size"])


def test_a_response_with_a_decimal_comma_is_called_that() -> None:
    table = towns()
    table["price"] = [
        "" if value is None else f"{value}".replace(".", ",") for value in table["price"]
    ]
    with pytest.raises(DataError, match=r"write numbers as 1234[.]5, without commas"):
        adapt(table, **RIDGE)


def test_one_bad_date_is_named() -> None:
    days = [f"2020-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(125)]
    days[7] = "2020-02-30"
    with pytest.raises(DataError, match=r"row 9.*'day'.*'2020-02-30'"):
        adapt({**towns(), "day": days}, **RIDGE)


def test_ids_of_64_bits_without_a_sign(tmp_path: Path) -> None:
    ids = np.arange(125, dtype=np.uint64) + np.uint64(2**63 + 1)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({**towns(), "id": ids}), path)
    assert read_frame(path).columns["id"].texts()[0] == str(2**63 + 1)
    assert "price" in adapt(path, **RIDGE).names
    mixed = tmp_path / "b.parquet"
    pq.write_table(pa.table({**towns(), "id": pa.array([-1] * 125)}), mixed)
    with pytest.raises(DataError, match=r"column 'id': whole numbers .*as text"):
        read_frame([path, mixed])


def test_copies_of_parquet_in_csv_lose_nothing(model: Path, tmp_path: Path) -> None:
    from datetime import datetime
    from decimal import Decimal
    from zoneinfo import ZoneInfo

    night = datetime(2024, 3, 2, tzinfo=ZoneInfo("Europe/Berlin"))
    kinds = {
        "when": (pa.timestamp("us", "Europe/Berlin"), night, "2024-03-02 00:00:00.000000+0100"),
        "nano": (pa.timestamp("ns"), 1, "1970-01-01 00:00:00.000000001"),
        "much": (
            pa.decimal128(22, 2),
            Decimal("12345678901234567890.12"),
            "12345678901234567890.12",
        ),
        "tenth": (pa.float32(), 0.1, "0.1"),
        "none": (pa.float64(), None, ""),
    }
    columns = {name: pa.array([value] * 125, kind) for name, (kind, value, _) in kinds.items()}
    path, out = tmp_path / "a.parquet", tmp_path / "out.csv"
    pq.write_table(pa.table({**towns(), **columns}), path)
    predict_file(load(model), path, out)
    row = rows_of(out)[0]
    assert {name: row[name] for name in kinds} == {name: own[2] for name, own in kinds.items()}


def test_copied_categories_of_parquet_stay_categories(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predict, "CHUNK", 7)
    color = pa.array(["red", "blue", None, "red", "red"] * 25).dictionary_encode()
    path, out = tmp_path / "a.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table({**towns(), "color": color}), path)
    predict_file(load(model), path, out)
    found = pq.read_table(out).column("color")
    assert pa.types.is_dictionary(found.type)
    assert found.to_pylist() == color.to_pylist()
