"""Pages of people's tables in a real browser: names of columns, places and files stay names."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from helpers.bad_tables import write_cells
from helpers.browser import chromium, visit
from helpers.gallery import HOSTILE
from helpers.towns import towns
from vntransfer.cli import app

FILE = "<img src=x onerror='window.hit=1'><script>window.hit=1<script>.csv"  # no slash in names
COLUMN, PLACE, RESPONSE, CELL = (f"{word}{HOSTILE}" for word in ("column", "place", "price", "ab"))

COMMANDS: dict[str, list[str]] = {
    "relate": ["--domain", PLACE, "--resamples", "99"],
    "adapt": ["--domain", PLACE, "--target", f"new{HOSTILE}", "--method", "ridge", "--no-compare"],
    "learn": ["--task", PLACE],
}


@pytest.fixture(scope="module")
def opened() -> Iterator[Any]:
    with chromium() as driver:
        yield driver


def hostile_table(folder: Path, *, complete: bool) -> Path:
    """Write a table in which every string would run if it were taken for markup."""
    table = towns()
    columns = {
        PLACE: [f"{town}{HOSTILE}" for town in table["town"]],
        COLUMN: table["size"],
        f"kind{HOSTILE}": [CELL if kind == "flat" else kind for kind in table["kind"]],
        RESPONSE: [7 if complete and p is None else p for p in table["price"]],
    }
    return write_cells(folder / FILE, columns)


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_of_a_table_is_run(command: str, opened: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    path = hostile_table(tmp_path, complete=command == "learn")
    out = tmp_path / FILE.replace(".csv", ".html")
    roles = [command, str(path), "--response", RESPONSE, *COMMANDS[command], "--out", str(out)]
    done = CliRunner().invoke(app, roles)
    assert done.exit_code == 0, (done.output, done.stderr)
    visit(opened, out)
    for button in opened.find_elements("css selector", "thead button"):
        opened.execute_script("arguments[0].click()", button)
    opened.execute_script("document.querySelectorAll('details').forEach(own => own.open = true)")
    charts = opened.find_elements("css selector", "svg.chart")
    charts = [chart for chart in charts if chart.is_displayed()]  # others are those of phones
    assert charts
    for chart in charts:
        chart.send_keys(Keys.ARROW_RIGHT)  # shows names and values in the tip
        assert opened.find_element("id", "tip").is_displayed()
    inside = "return [window.hit, document.images.length, document.querySelectorAll('{}').length]"
    assert opened.execute_script(inside.format("main script")) == [None, 0, 0]
    words = "return [...document.querySelectorAll('main td, main th')].map(c => c.textContent)"
    cells = [cell.strip() for cell in opened.execute_script(words)]
    assert COLUMN in cells
    if command == "learn":
        assert RESPONSE in opened.title
    else:
        assert f"north{HOSTILE}" in cells
        assert RESPONSE in opened.find_element("tag name", "body").text
    if command == "adapt":
        assert path.name in opened.find_element("tag name", "footer").text
    assert opened.get_log("browser") == []


def test_the_terminal_prints_names_as_they_are(tmp_path: Path) -> None:
    table = towns()
    town = [f"[b]{name}" for name in table["town"]]
    columns = {"town": town, "[red]size": table["size"], "price": table["price"]}
    path = write_cells(tmp_path / "[bold].csv", columns)
    roles = [str(path), "--domain", "town", "--response", "price"]
    related = CliRunner().invoke(app, ["relate", *roles, "--resamples", "99"])
    options = ["--target", "[b]new", "--method", "ridge", "--no-compare"]
    adapted = CliRunner().invoke(app, ["adapt", *roles, *options])
    for done in (related, adapted):
        assert done.exit_code == 0, (done.output, done.stderr)
        assert "[b]north" in done.output
    assert "[red]size" in adapted.output
