"""The commands as people run them: what is bad is said in a sentence, code 2, nothing written."""

import csv
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from typer.testing import CliRunner, Result

from helpers.bad_tables import BAD, any_table, write_cells
from helpers.towns import towns, write
from vntransfer import example_table
from vntransfer.cli import app

ROLES = ["--domain", "town", "--response", "price", "--target", "new"]
QUICK = [*ROLES, "--method", "ridge", "--no-compare"]


def vnt(*arguments: Any) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_adapt_then_predict(tmp_path: Path) -> None:
    path = write(tmp_path / "Häuser.csv", towns(), end="\r\n")
    done = vnt("adapt", path, *QUICK, "--save", tmp_path / "m", "--out", tmp_path / "p.html")
    assert done.exit_code == 0, done.output
    for part in ("Column handling", "Sources", "leave-one-source-out"):
        assert part in done.output
    assert "Expected error at new" in done.output
    assert (tmp_path / "p.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    out = tmp_path / "out.csv"
    done = vnt("predict", tmp_path / "m", path, "--out", out, "--level", 0.8, "--only")
    assert done.exit_code == 0, done.output
    assert "note: 100 of 125 rows are not of 'new', the target of the model" in done.output
    assert "100 rows with a response are from places that the model was trained on" in done.output
    assert "mean absolute error" not in done.output
    with out.open(encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["row", "town", "price predicted", "price low", "price high"]
    assert len(rows) == 126


def test_rows_that_were_not_learned_are_compared(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", towns())
    assert vnt("adapt", path, *QUICK, "--save", tmp_path / "m").exit_code == 0
    later = towns(seed=1)
    later["price"] = [300.0] * 125
    done = vnt("predict", tmp_path / "m", write(tmp_path / "b.csv", later))
    assert "25 rows have a response: mean absolute error" in done.output
    del later["town"]
    done = vnt("predict", tmp_path / "m", write(tmp_path / "c.csv", later))
    assert "125 rows have a response: mean absolute error" in done.output
    assert "the target of the model" not in done.output


def test_tables_with_tabs(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv.csv", towns(), delimiter="\t")
    for written in ("tab", r"\t", "\t"):
        done = vnt("relate", path, *ROLES[:4], "--delimiter", written, "--resamples", "19")
        assert done.exit_code == 0, done.output
        assert "detected" not in done.output
    done = vnt("relate", path, *ROLES[:4])
    assert done.exit_code == 0, done.output
    assert r"separated by '\t' (detected; override with --delimiter)" in done.output
    done = vnt("relate", path, *ROLES[:4], "--delimiter", ",")
    assert r"is '\t' the delimiter, not ','?" in done.stderr


def test_nothing_is_written_into_the_folder_of_a_model(tmp_path: Path) -> None:
    path, folder = write(tmp_path / "a.csv", towns()), tmp_path / "m"
    assert vnt("adapt", path, *QUICK, "--save", folder).exit_code == 0
    for command in (
        ("predict", folder, path, "--out", folder / "out.csv"),
        ("adapt", path, *QUICK, "--save", folder / "sub" / "m"),
        ("relate", path, *ROLES[:4], "--out", folder / "page.html"),
    ):
        done = vnt(*command)
        assert done.exit_code == 2
        assert "the folder of a saved model" in done.stderr
    assert vnt("predict", folder, path).exit_code == 0


def test_levels_are_checked_without_intervals_too(tmp_path: Path) -> None:
    own = {name: values[:25] + values[100:] for name, values in towns().items()}
    path = write(tmp_path / "a.csv", own)
    assert vnt("adapt", path, *QUICK, "--save", tmp_path / "m").exit_code == 0
    done = vnt("predict", tmp_path / "m", path, "--level", 7)
    assert done.exit_code == 2
    assert "level: expected a share between 0 and 1" in done.stderr


def test_a_table_in_place_of_a_model_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", towns())
    done = vnt("predict", path, path)
    assert done.exit_code == 2
    assert "a.csv: is a file" in done.stderr


def test_gaps_that_were_filled_are_told_by_relate(tmp_path: Path) -> None:
    table = towns()
    full = {name: table[name] for name in ("town", "size", "price")}
    done = vnt("relate", write(tmp_path / "a.csv", full), *ROLES[:4])
    assert "Column handling" not in done.output
    full["size"] = ["" if i % 5 == 0 else value for i, value in enumerate(full["size"])]
    done = vnt("relate", write(tmp_path / "b.csv", full), *ROLES[:4])
    assert "missing filled with" in " ".join(done.output.split())


def test_saved_models_need_no_skops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.csv", towns())
    monkeypatch.setitem(sys.modules, "skops.io", None)  # as if it were not installed
    done = vnt("adapt", path, *QUICK, "--save", tmp_path / "m")
    assert done.exit_code == 0, done.output
    done = vnt("predict", tmp_path / "m", path, "--out", tmp_path / "p.csv")
    assert done.exit_code == 0, done.output


def test_python_equals_the_command(tmp_path: Path) -> None:
    from vntransfer import adapt, load

    path = write(tmp_path / "a.csv", towns())
    assert vnt("adapt", path, *QUICK, "--save", tmp_path / "m").exit_code == 0
    own = adapt(path, domain="town", response="price", target="new", method="ridge", compare=())
    same = load(tmp_path / "m").predict(path).value == own.predict(path).value
    assert same.all()


def test_example_is_small_and_can_be_copied(tmp_path: Path) -> None:
    assert example_table().stat().st_size < 200_000
    place = tmp_path / "new" / "houses.csv"
    assert vnt("example", place).exit_code == 0
    assert place.read_bytes() == example_table().read_bytes()
    again = vnt("example", place)
    assert again.exit_code == 2
    assert "houses.csv exists" in again.stderr
    assert vnt("example", place, "--overwrite").exit_code == 0


@pytest.mark.parametrize("name", BAD)
def test_bad_tables(name: str, tmp_path: Path) -> None:
    content, message, _ = BAD[name]
    path = tmp_path / "a.csv"
    path.write_text(content, encoding="utf-8", newline="")
    save, out = tmp_path / "m", tmp_path / "p.html"
    done = vnt("adapt", path, *QUICK, "--save", save, "--out", out)
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert done.stderr.startswith("vnt: ")
    assert "Traceback" not in done.output
    assert [file.name for file in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--target", "nwe"], ["'nwe'", "did you mean 'new'?"]),
        (["--method", "magic"], ["method: ", "'magic'"]),
        (["--features", "size,prise"], ["'prise'", "did you mean 'price'?"]),
        (["--features", "town"], ["'town'"]),
        (["--drop", "price"], ["drop: ", "'price'"]),
        (["--category", "nothing"], ["category: ", "'nothing'"]),
    ],
)
def test_bad_options(options: list[str], named: list[str], tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", towns())
    done = vnt("adapt", path, *QUICK, *options, "--save", tmp_path / "m")
    assert done.exit_code == 2
    assert all(part in done.stderr for part in named), done.stderr
    assert not (tmp_path / "m").exists()


COMMANDS = {
    "adapt": QUICK,
    "relate": ["--domain", "town", "--response", "price", "--resamples", "99"],
    "learn": ["--task", "town", "--response", "price", "--compare", ""],
}


@pytest.mark.parametrize("command", [*COMMANDS, "predict"])
def test_outputs_that_cannot_be(command: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", towns())
    if command == "predict":
        model = tmp_path / "model"
        vnt("adapt", path, *QUICK, "--save", model)
        run = partial(vnt, "predict", model, path)
    else:
        run = partial(vnt, command, path, *COMMANDS[command])
    before = sorted(file.name for file in tmp_path.iterdir()), path.read_bytes()
    for options, message in (
        (["--out", path], "name another file"),
        (["--out", tmp_path], "name a file"),
        (["--out", path / ("page.csv" if command == "predict" else "page.html")], "folder"),
        (["--delimiter", ";;"], "delimiter: "),
    ):
        done = run(*options)
        assert done.exit_code == 2, (options, done.output, done.exception)
        assert message in done.stderr
    if command in ("adapt", "learn"):
        for options, message in (
            (["--save", path], "name a folder"),
            (["--save", path / "m"], "folder"),
            (["--save", tmp_path], "'a.csv'"),
            (["--features", ""], "feature"),
        ):
            done = run(*options)
            assert done.exit_code == 2, (options, done.output)
            assert message in done.stderr
    assert before == (sorted(file.name for file in tmp_path.iterdir()), path.read_bytes())


def test_bytes_that_are_no_text_and_files_that_are_no_files(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"town,price\n\xff\xfe,1\n")
    assert "not UTF-8" in vnt("adapt", path, *QUICK).stderr
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no")
    assert "damaged parquet file" in vnt("adapt", tmp_path / "a.parquet", *QUICK).stderr
    assert "no file" in vnt("adapt", tmp_path / "nothing.csv", *QUICK).stderr
    assert vnt("predict", tmp_path, path).exit_code == 2


@given(any_table())  # few examples: each fits a model and writes files
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
def test_any_table_gives_a_model_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, table: dict[str, list[str]]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    path = write_cells(folder / "a.csv", table)
    done = vnt("adapt", path, *QUICK, "--save", folder / "m")
    assert done.exit_code in (0, 2), (done.output, done.exception)
    assert (folder / "m").exists() == (done.exit_code == 0)
    if done.exit_code == 0:
        later = vnt("predict", folder / "m", path, "--out", folder / "out.csv")
        assert later.exit_code in (0, 2), (later.output, later.exception)


def test_predict_takes_several_targets(tmp_path: Path) -> None:
    table = towns()
    path = write(tmp_path / "a.csv", table)
    done = vnt("adapt", path, *QUICK, "--target", "east", "--save", tmp_path / "m")
    assert done.exit_code == 0, done.output
    rows = [i for i, town in enumerate(table["town"]) if town in ("new", "east")]
    some = write(tmp_path / "b.csv", {k: [v[i] for i in rows] for k, v in table.items()})
    texts = []
    for options in ([], ["--target", "new", "--target", "east"]):
        out = tmp_path / f"out{len(options)}.csv"
        done = vnt("predict", tmp_path / "m", some, "--out", out, *options)
        assert done.exit_code == 0, done.output
        texts.append(out.read_text(encoding="utf-8"))
    assert texts[0] == texts[1]
    done = vnt("predict", tmp_path / "m", path, "--target", "new", "--target", "east")
    assert done.exit_code == 2
    assert "'north' is none of the given targets ['new', 'east']" in done.output
    done = vnt("predict", tmp_path / "m", path, "--target", "new")
    assert done.exit_code == 0, done.output
    done = vnt("predict", tmp_path / "m", path, "--target", "old", "--overwrite")
    assert "target: expected one of new, east, got 'old'" in done.output
