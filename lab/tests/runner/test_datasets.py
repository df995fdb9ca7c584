"""Names of data sets with parameters, as presets give them."""

from pathlib import Path

import numpy as np
import pytest

from lab_helpers.runs import changed, final
from vntransfer import example_table
from vntransfer.errors import ArgumentError, DataError
from vntransfer_lab import run
from vntransfer_lab.errors import PresetError
from vntransfer_lab.reports.drawings import draw
from vntransfer_lab.runner.cells import Cell, expand
from vntransfer_lab.runner.datasets import load_data, parse_data, split_names


def test_values_are_read_as_what_they_look_like() -> None:
    assert parse_data("x: a=1, b=0.5,c=true,d=word") == (
        "x",
        {"a": 1, "b": 0.5, "c": True, "d": "word"},
    )


def test_parameters_stay_with_their_set() -> None:
    names = "bike:k=8,seed=1, amazon4,families:shift=both,seed=3"
    assert split_names(names) == ["bike:k=8,seed=1", "amazon4", "families:shift=both,seed=3"]
    assert parse_data("mine.csv:domain=01") == ("mine.csv", {"domain": "01"})


@pytest.mark.parametrize("text", ["x:a", "x:=1", "x:a=", "x:a=1,a=2", "x:a=1,"])
def test_what_cannot_be_read_is_said(text: str) -> None:
    with pytest.raises(PresetError, match=r"^data: .*NAME:PARAMETER=VALUE"):
        parse_data(text)


def test_parameters_reach_the_loader() -> None:
    one, other = (load_data(f"families:n_samples=20,seed={seed}") for seed in (1, 2))
    assert one["w1"][0].shape == (20, 8)
    assert not np.array_equal(one["w1"][0], other["w1"][0])
    with pytest.raises(ArgumentError, match=r"^families: parameter: .*sead"):
        load_data("families:sead=1")


def of_kelsea(data: str) -> Cell:
    chosen = {"methods": ["ridge"], "targets": ["Kelsea"], "seeds": [11]}
    (cell,) = expand(changed("protocol-adaptation", settings={"data": data}, **chosen))
    return cell


def test_columns_of_a_table_are_named_by_texts(tmp_path: Path) -> None:
    file = tmp_path / "numbers.csv"
    file.write_text("01,1e3,x\n" + "".join(f"{i % 2},{i},{i}\n" for i in range(8)), "utf-8")
    assert len(load_data(f"{file}:domain=01,response=1e3")) == 2


def test_a_table_of_ones_own_is_named_by_its_file(tmp_path: Path) -> None:
    file = tmp_path / "houses.csv"
    file.write_bytes(Path(example_table()).read_bytes())
    name = f"{file}:domain=town,response=price"
    houses = load_data(name)
    assert list(houses) == [
        "Harbourne",
        "Kelsea",
        "Millbrook",
        "Thornbury",
        "Oakhampton",
        "Ashford",
    ]
    assert "kind=flat" in houses.feature_names
    assert all(np.isfinite(x).all() and np.isfinite(y).all() for x, y in houses.values())
    cell = of_kelsea(name)
    error = final(cell)["mae"]
    assert 0.1 < error < 0.5
    head, *rows = file.read_text("utf-8").splitlines(keepends=True)
    file.write_text(head + "".join(rows[::2]), "utf-8")  # half of it
    again = of_kelsea(name)
    assert again.key != cell.key
    assert final(again)["mae"] != error


def test_figures_of_a_table_have_names_that_files_can_have(tmp_path: Path) -> None:
    settings = {"data": f"{example_table()}:domain=town,response=price", "rows": 40}
    chosen = {"methods": ["constant", "weighted"], "seeds": [11]}
    run("protocol-adaptation", settings=settings, out=tmp_path / "run", **chosen)
    names = [path.name for path in draw(tmp_path / "run", tmp_path / "figures")]
    assert sum("houses.csv-domain-town-response-price" in name for name in names) >= 1
    assert sorted(names) == sorted(path.name for path in (tmp_path / "figures").iterdir())


@pytest.mark.parametrize(
    ("rest", "error", "message"),
    [
        ("", PresetError, "^data: .*domain=COLUMN,response=COLUMN"),
        (":domain=town", PresetError, "response ''"),
        (":domain=town,response=price,k=3", PresetError, "and 'k'"),
        (":domain=city,response=price", DataError, "has no column 'city'"),
    ],
)
def test_tables_that_are_named_wrongly(rest: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        load_data(f"{example_table()}{rest}")


def test_a_table_with_another_delimiter_and_a_column_too_many(tmp_path: Path) -> None:
    lines = Path(example_table()).read_text("utf-8").splitlines()
    file = tmp_path / "houses.csv"
    file.write_text("".join(line.replace(",", ";") + ";\n" for line in lines), "utf-8")
    name = f"{file}:domain=town,response=price,delimiter=;"
    with pytest.raises(DataError, match="empty in all"):
        load_data(name)
    houses, whole = (
        load_data(f"{name},drop=''|area"),
        load_data(f"{example_table()}:domain=town,response=price"),
    )
    assert set(whole.feature_names) - set(houses.feature_names) == {"area"}


def test_a_table_that_is_absent(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no file"):
        load_data(f"{tmp_path}/none.csv:domain=a,response=b")
