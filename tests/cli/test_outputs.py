"""Files that commands write: nothing of others is replaced, and it is said before any work."""

import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from helpers.towns import towns, write
from vntransfer import adapt, relate
from vntransfer.cli import app
from vntransfer.errors import ArgumentError
from vntransfer.pages import Page
from vntransfer.workflows.predict import WriteOptions, predict_file

ROLES = ["--domain", "town", "--response", "price"]
THESIS = "chapter,words\n1,4000\n"


def vnt(*arguments: Any) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a table and a model."""
    folder = tmp_path_factory.mktemp("world")
    table = write(folder / "h.csv", towns())
    quick = ["--target", "new", "--method", "ridge", "--no-compare"]
    done = vnt("adapt", table, *ROLES, *quick, "--save", folder / "m")
    assert done.exit_code == 0, done.output
    return folder


Command = Callable[[Path, Path], list[Any]]

PAGES: dict[str, Command] = {
    "relate": lambda world, out: ["relate", world / "h.csv", *ROLES, "--out", out],
    "adapt": lambda world, out: [
        *("adapt", world / "h.csv", *ROLES, "--target", "new", "--method", "ridge"),
        *("--no-compare", "--out", out),
    ],
    "learn": lambda world, out: [
        *("learn", world / "h.csv", "--task", "town", "--response", "price"),
        *("--method", "sgd", "--compare", "", "--out", out),
    ],
}
TABLES: dict[str, Command] = {
    "predict": lambda world, out: ["predict", world / "m", world / "h.csv", "--out", out],
    "example": lambda world, out: ["example", out],
}


def refuse_to_train(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every command fail that begins its work."""

    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("work has begun")

    for place in ("adapt.fit_problem", "relate.relate", "learn.learn_tasks", "load.load_predictor"):
        monkeypatch.setattr(f"vntransfer.workflows.{place}", fail)


@pytest.mark.parametrize("name", [*PAGES, *TABLES])
def test_a_file_of_another_kind_is_refused_before_any_work(
    name: str, world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_to_train(monkeypatch)
    wrong = tmp_path / ("thesis.csv" if name in PAGES else "thesis.html")
    wrong.write_text(THESIS)
    done = vnt(*(PAGES | TABLES)[name](world, wrong), "--overwrite")
    assert done.exit_code == 2, done.output
    assert str(wrong) in done.stderr
    assert ("html" if name in PAGES else "csv") in done.stderr
    assert wrong.read_text() == THESIS


@pytest.mark.parametrize("name", [*PAGES, *TABLES])
def test_a_file_of_others_is_replaced_only_if_asked_for(
    name: str, world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / ("p.html" if name in PAGES else "p.csv")
    out.write_text(THESIS)
    command = (PAGES | TABLES)[name](world, out)
    with monkeypatch.context() as patched:
        refuse_to_train(patched)
        done = vnt(*command)
    assert done.exit_code == 2, done.output
    assert str(out) in done.stderr
    assert "--overwrite" in done.stderr
    assert out.read_text() == THESIS
    done = vnt(*command, "--overwrite")
    assert done.exit_code == 0, done.output
    assert out.read_text(encoding="utf-8") != THESIS
    # a page of ours may be replaced, a table has no mark
    assert vnt(*command).exit_code == (0 if name in PAGES else 2)
    assert [file.name for file in tmp_path.iterdir()] == [out.name]


def test_predictions_without_a_name_do_not_replace_a_file(world: Path, tmp_path: Path) -> None:
    table = write(tmp_path / "h.csv", towns())
    other = tmp_path / "h.predicted.csv"
    other.write_text(THESIS)
    done = vnt("predict", world / "m", table)
    assert done.exit_code == 2
    assert "h.predicted.csv" in done.stderr
    assert other.read_text() == THESIS


@pytest.mark.parametrize("name", ["relate", "example"])
def test_links_are_followed_and_stay(name: str, world: Path, tmp_path: Path) -> None:
    ending = ".html" if name in PAGES else ".csv"
    real, link = tmp_path / "there" / f"real{ending}", tmp_path / f"link{ending}"
    real.parent.mkdir()
    real.write_text(THESIS)
    link.symlink_to(real)
    command = (PAGES | TABLES)[name](world, link)
    assert vnt(*command).exit_code == 2
    assert real.read_text() == THESIS
    assert vnt(*command, "--overwrite").exit_code == 0
    assert link.is_symlink()
    assert real.read_text(encoding="utf-8") != THESIS
    real.unlink()  # a link to a file that is not there yet
    assert vnt(*command).exit_code == 0
    assert link.is_symlink()
    assert real.is_file()
    link.unlink()
    link.symlink_to(link)
    done = vnt(*command, "--overwrite")
    assert done.exit_code == 2
    assert str(link) in done.stderr


def test_a_link_to_the_table_is_the_table(world: Path, tmp_path: Path) -> None:
    table = write(tmp_path / "h.csv", towns())
    before = table.read_bytes()
    (tmp_path / "other.csv").symlink_to(table)
    done = vnt("predict", world / "m", table, "--out", tmp_path / "other.csv", "--overwrite")
    assert done.exit_code == 2
    assert "table that is read" in done.stderr
    assert table.read_bytes() == before


@pytest.mark.parametrize(("out", "save"), [("a.html", "a.html"), ("a.html", "a.html/m")])
def test_page_and_model_have_places_of_their_own(
    out: str, save: str, world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_to_train(monkeypatch)
    done = vnt(*PAGES["adapt"](world, tmp_path / out), "--save", tmp_path / save)
    assert done.exit_code == 2
    assert "a.html" in done.stderr


def test_python_functions_replace_nothing_either(world: Path, tmp_path: Path) -> None:
    table = world / "h.csv"
    found = relate(table, domain="town", response="price", n_resamples=119)
    roles = {"domain": "town", "response": "price", "target": "new"}
    model = adapt(table, **roles, method="ridge", compare=())  # type: ignore[arg-type]
    page, out = tmp_path / "a.html", tmp_path / "a.csv"
    for write_page in (found.to_page, model.to_page, Page("Mine").write):
        with pytest.raises(ArgumentError, match=r"path: .*a\.csv"):
            write_page(out)
        page.write_text(THESIS)
        with pytest.raises(ArgumentError, match=r"a\.html.*overwrite=True"):
            write_page(page)
        assert write_page(page, overwrite=True) == page
        assert write_page(page) == page
    out.write_text(THESIS)
    with pytest.raises(ArgumentError, match=r"out: .*a\.csv.*overwrite"):
        predict_file(model, table, out)
    predict_file(model, table, out, write_options=WriteOptions(overwrite=True))
    assert "price predicted" in out.read_text()


@pytest.mark.parametrize("name", ["example", "predict"])
def test_a_full_disk_leaves_no_half_file(name: str, world: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_text(THESIS)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, limits[1]))
    try:
        done = vnt(*TABLES[name](world, out), "--overwrite")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert done.exit_code == 2, done.output
    assert str(out) in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["out.csv"]
    assert out.read_text() == THESIS


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("name", [*PAGES, *TABLES])
def test_a_command_that_is_stopped_leaves_nothing_half_written(
    name: str, number: int, code: int, world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / ("p.html" if name in PAGES else "p.csv")
    remove = Path.unlink

    def stop(*_: Any) -> None:
        os.kill(os.getpid(), number)

    def impatient(self: Path, missing_ok: bool = False) -> None:
        os.kill(os.getpid(), signal.SIGTERM)  # while the first one is handled
        remove(self, missing_ok)

    monkeypatch.setattr(os, "fsync", stop)  # when all is in the temporary file
    if number == signal.SIGTERM:
        monkeypatch.setattr(Path, "unlink", impatient)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        done = vnt(*(PAGES | TABLES)[name](world, out))
    finally:
        signal.signal(signal.SIGINT, before)
    assert done.exit_code == code, done.output
    assert list(tmp_path.iterdir()) == []
    assert [line for line in done.stderr.splitlines() if "stopped" in line] == [
        f"vnt: stopped; no incomplete file was left ({signal.Signals(number).name})"
    ]
