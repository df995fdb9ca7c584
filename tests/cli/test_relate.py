"""``vnt relate`` as somebody with a table runs it, and as somebody with a bad one does."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from vntransfer.cli import app
from worlds_relate import towns, write_csv

ROLES = ["--domain", "town", "--response", "price"]
QUICK = ["--resamples", "99"]


def run(*arguments: str):
    return CliRunner().invoke(app, ["relate", *arguments])


def test_matrix_verdict_ranking_and_page(tmp_path: Path) -> None:
    path, out = write_csv(tmp_path / "towns.csv", towns()), tmp_path / "page.html"
    done = run(str(path), *ROLES, *QUICK, "--out", str(out))
    assert done.exit_code == 0, done.output
    assert "1 of 1 pairs of places are different" in done.output
    assert re.search(r"for Lyon: Oslo \d\.?\d* ≠", done.output)
    assert "by the features alone: it has no responses" in done.output
    text = out.read_text(encoding="utf-8")
    for part in ("What the numbers mean", "All pairs", "Closest sources", "Places and columns"):
        assert part in text
    assert "http://" not in text.replace("http://www.w3.org", "")


def test_many_files_and_a_chosen_target(tmp_path: Path) -> None:
    for k in range(2):
        write_csv(tmp_path / f"{k}.csv", towns(seed=k))
    done = run(str(tmp_path / "*.csv"), *ROLES, *QUICK, "--target", "new", "--features", "area")
    assert done.exit_code == 0, done.output
    assert "for new:" in done.output
    assert "for Lyon:" not in done.output


def change(**columns):
    return {**towns(60), **columns}


BAD = {
    "empty": ("", "is empty"),
    "header only": ("town,area,price\n", "no rows"),
    "one row": ("town,area,price\na,1,2\n", "one place|nothing|constant|no column"),
    "one place": (change(town=["a"] * 60), "has one place, 'a'"),
    "no response column": ("town,area\na,1\nb,2\n", "has no column 'price'"),
    "no responses": (change(price=[None] * 60), "known in 0 place"),
    "empty column": (change(area=[None] * 60), "'area': empty in all"),
    "constant response": (change(price=[5.0] * 60), "a constant depends on nothing"),
    "twice": ("town,area,area,price\na,1,1,2\nb,2,2,3\n", "'area' is there twice"),
    "mixed": (change(area=[*["3.5"] * 40, *["many"] * 20]), "'many' is not a number"),
    "text response": (change(price=["dear"] * 60), "'dear' is not a finite number"),
    "semicolons": ("town;area;price\na;1;2\nb;2;3\n", "is ';' the delimiter"),
    "ragged": ("town,area,price\na,1,2\nb,2\n", "row 3 has 2 cells"),
    "unnamed place": (change(town=["", *["a"] * 59]), "is empty; say where"),
    "thousands of places": (
        {"town": list(range(300)), "area": [1.0, 2.5] * 150, "price": [0.5, 1.0, 3.0] * 100},
        "more than 200 places",
    ),
    "not text": (b"\xff\xfe\x00\x01town", "not UTF-8"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_end_with_a_sentence_and_write_nothing(case: str, tmp_path: Path) -> None:
    content, message = BAD[case]
    path, out = tmp_path / "table.csv", tmp_path / "page.html"
    if isinstance(content, dict):
        write_csv(path, content)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    done = run(str(path), *ROLES, *QUICK, "--out", str(out))
    assert done.exit_code == 2, done.output
    assert re.search(message, done.stderr), done.stderr
    assert done.stderr.startswith("vnt: ")
    assert "Traceback" not in done.output
    assert not out.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target", "nowhere"], "no place 'nowhere'"),
        (["--divergence", "kl"], "unknown id 'kl'"),
        (["--null", "none"], "null: expected one of"),
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
