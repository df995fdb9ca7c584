"""``vnt relate`` as somebody with a table runs it, and as somebody with a bad one does."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from helpers.bad_tables import BAD, any_table, write_cells
from helpers.relation_worlds import towns, write_csv
from vntransfer.cli import app

ROLES = ["--domain", "town", "--response", "price"]
QUICK = ["--resamples", "99"]


def run(*arguments: str):
    return CliRunner().invoke(app, ["relate", *arguments])


def test_matrix_verdict_ranking_and_page(tmp_path: Path) -> None:
    path, out = write_csv(tmp_path / "towns.csv", towns()), tmp_path / "page.html"
    done = run(str(path), *ROLES, *QUICK, "--out", str(out))
    assert done.exit_code == 0, done.output
    assert "1 of 1 tested pair of places, " in done.output
    assert re.search(r"for Lyon: Oslo \d\.?\d* ≠", done.output)
    assert "by the features alone, because it has no responses" in done.output
    text = out.read_text(encoding="utf-8")
    for part in ("How it was done", "All pairs", "Closest places", "Places and columns"):
        assert part in text
    assert "http://" not in text.replace("http://www.w3.org", "")


def test_many_files_and_a_chosen_target(tmp_path: Path) -> None:
    for k in range(2):
        write_csv(tmp_path / f"{k}.csv", towns(seed=k))
    done = run(str(tmp_path / "*.csv"), *ROLES, *QUICK, "--target", "new", "--features", "area")
    assert done.exit_code == 0, done.output
    assert "for new:" in done.output
    assert "for Lyon:" not in done.output


@pytest.mark.parametrize("name", BAD)
def test_bad_tables_end_with_a_sentence_and_write_nothing(name: str, tmp_path: Path) -> None:
    content, _, message = BAD[name]
    path, out = tmp_path / "table.csv", tmp_path / "page.html"
    path.write_text(content, encoding="utf-8", newline="")
    done = run(str(path), *ROLES, *QUICK, "--out", str(out))
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert done.stderr.startswith("vnt: ")
    assert "Traceback" not in done.output
    assert [file.name for file in tmp_path.iterdir()] == ["table.csv"]


def test_files_that_are_no_tables_of_places(tmp_path: Path) -> None:
    table = {"town": list(range(300)), "area": [1.0, 2.5] * 150, "price": [0.5, 1.0, 3.0] * 100}
    done = run(str(write_csv(tmp_path / "many.csv", table)), *ROLES)
    assert done.exit_code == 2
    assert "more than 200 places" in done.stderr
    for name, content, message in (
        ("a.csv", b"\xff\xfe\x00\x01town", "not UTF-8"),
        ("a.csv.gz", b"town,price", "damaged gzip"),
        ("a.parquet", b"PAR1 no", "damaged parquet file"),
    ):
        (tmp_path / name).write_bytes(content)
        done = run(str(tmp_path / name), *ROLES)
        assert done.exit_code == 2, done.output
        assert message in done.stderr


@given(any_table(), st.sampled_from(["csv", "parquet"]))  # few: each tests relations, and writes
@settings(max_examples=15, suppress_health_check=list(HealthCheck))
def test_any_table_is_related_or_refused(
    tmp_path_factory: pytest.TempPathFactory, table: dict[str, list[str]], kind: str
) -> None:
    folder = tmp_path_factory.mktemp("any")
    path, out = folder / f"a.{kind}", folder / "page.html"
    if kind == "csv":
        write_cells(path, table)
    else:
        pq.write_table(pa.table(table), path, row_group_size=7)
    done = run(str(path), *ROLES, "--resamples", "19", "--out", str(out))
    assert done.exit_code in (0, 2), (done.output, done.exception)
    assert out.exists() == (done.exit_code == 0)
    if done.exit_code == 2:
        assert done.stderr.startswith("vnt: ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target", "nowhere"], "no place 'nowhere'"),
        (["--divergence", "kl"], "got 'kl'"),
        (["--engine", "spark"], "engine: expected"),
        (["--drop", "town"], "is the response or the domain"),
        (["--features", "aera"], "did you mean 'area'"),
        (["--out", "."], "is a folder"),
    ],
)
def test_bad_options_end_with_a_sentence(options: list[str], message: str, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "towns.csv", towns(90))
    done = run(str(path), *ROLES, *QUICK, *options)
    assert done.exit_code == 2, done.output
    assert message in done.stderr


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_unicode_names_windows_ends_and_other_delimiters(end: str, tmp_path: Path) -> None:
    table = {"Stadt" if k == "town" else k: v for k, v in towns().items()}
    table["Stadt"] = ["Zürich 🏔" if name == "Oslo" else name for name in table["Stadt"]]
    path = write_csv(tmp_path / "städte.csv", table, delimiter=";", end=end)
    roles = ["--domain", "Stadt", "--response", "price", "--delimiter", ";"]
    done = run(str(path), *roles, *QUICK)
    assert done.exit_code == 0, done.output
    assert "Zürich 🏔" in done.output


def test_missing_files_are_named() -> None:
    done = run("nowhere.csv", *ROLES)
    assert done.exit_code == 2
    assert "no file 'nowhere.csv'" in done.stderr
