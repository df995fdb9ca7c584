"""Pages in a real browser: they render, sort, answer pointer and keys, and save their figures."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.browser import chromium, point, prefer, resize, visit
from helpers.gallery import HOSTILE, charts, gallery


@pytest.fixture(scope="module")
def opened() -> Iterator[Any]:
    with chromium() as driver:
        yield driver


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return gallery().write(tmp_path_factory.mktemp("page") / "plain.html")


@pytest.fixture
def page(opened: Any, plain: Path) -> Any:
    resize(opened, 1280)
    prefer(opened, "light")
    visit(opened, plain)
    yield opened
    assert opened.get_log("browser") == []


def first_column(page: Any) -> list[str]:
    rows = "[...document.querySelector('table').tBodies[0].rows]"
    script = f"return {rows}.map(row => row.cells[0].textContent)"
    found: list[str] = page.execute_script(script)
    return found


def chart_sizes(page: Any) -> list[list[float]]:
    found: list[list[float]] = page.execute_script(
        "return [...document.querySelectorAll('svg.chart')].map(s => {"
        "const b = s.getBoundingClientRect(); return [b.width, b.height]})"
    )
    return found


def saved(page: Any) -> tuple[str, str, int]:
    from selenium.webdriver.support.ui import WebDriverWait

    script = "return document.documentElement.dataset.saved || ''"
    said = WebDriverWait(page, 60).until(lambda driver: driver.execute_script(script))
    name, kind, size = said.split(" ")
    return name, kind, int(size)


def test_everything_is_shown(page: Any) -> None:
    assert page.title == "Gallery"
    sizes = [size for size in chart_sizes(page) if size[0]]  # charts for a phone are hidden
    assert len(sizes) == len(charts()) + 1  # the maps have two panels
    assert all(width > 80 and height > 40 for width, height in sizes)
    fill = "return getComputedStyle(document.querySelector('path.q32')).fill"
    assert page.execute_script(fill) == "rgb(11, 60, 107)"  # the style is allowed by the policy


def test_tables_sort_by_click_and_by_key(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    assert first_column(page) == ["b", "a", "c"]
    buttons = page.find_elements("css selector", "thead button")
    buttons[1].click()
    assert first_column(page) == ["b", "a", "c"]  # 0.9 before 10, nothing last
    buttons[1].send_keys(Keys.ENTER)
    assert first_column(page) == ["a", "b", "c"]
    head = page.find_elements("css selector", "thead th")
    assert [h.get_attribute("aria-sort") for h in head[:3]] == ["none", "descending", "none"]
    buttons[0].send_keys(Keys.SPACE)
    assert first_column(page) == ["a", "b", "c"]
    buttons[2].click()
    assert first_column(page) == ["a", "b", "c"]
    assert head[1].get_attribute("aria-sort") == "none"


def test_the_pointer_shows_values(page: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    tip = page.find_element("id", "tip")
    assert not tip.is_displayed()
    cell = page.find_elements("css selector", "path.q0")[-1]
    point(page, cell)
    assert tip.text == "s1, s1: -1"
    line = page.find_element("css selector", "figure .series")
    svg = line.find_element("xpath", "./ancestor::*[local-name()='svg']")
    x, y = (int(v) for v in str(line.get_attribute("data-p")).split(" ")[2].split(","))
    script = "const b = arguments[0].viewBox.baseVal; return [b.width, b.height]"
    width, height = page.execute_script(script, svg)
    shown = svg.rect["width"] / width
    ActionChains(page).move_to_element(page.find_element("tag name", "h1")).perform()
    assert not tip.is_displayed()
    point(page, svg, round(shown * (x - width / 2)), round(shown * (y - height / 2)))
    value = str(line.get_attribute("data-v")).split("|")[2]
    assert tip.text == f"m0, epoch 3: {value}"


def test_the_keyboard_shows_values(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    svg = page.find_element("css selector", "svg.chart")
    svg.send_keys(Keys.ARROW_RIGHT)
    tip = page.find_element("id", "tip")
    first = tip.text
    assert first.startswith("m0, epoch ")
    svg.send_keys(Keys.ARROW_RIGHT)
    assert tip.text.startswith("m0, epoch ")
    assert tip.text != first
    svg.send_keys(Keys.END)
    assert tip.text.startswith("reference, epoch 8")
    svg.send_keys(Keys.ESCAPE)
    assert not tip.is_displayed()


def test_themes(page: Any) -> None:
    ground = "return getComputedStyle(document.body).backgroundColor"
    button = page.find_element("css selector", ".theme")
    assert page.execute_script(ground) == "rgb(255, 255, 255)"
    button.click()
    assert page.execute_script(ground) == "rgb(22, 25, 29)"
    page.refresh()
    assert page.execute_script(ground) == "rgb(22, 25, 29)"  # remembered
    page.find_element("css selector", ".theme").click()
    prefer(page, "dark")
    assert page.execute_script(ground) == "rgb(255, 255, 255)"  # the button's word counts
    page.execute_script("localStorage.clear()")
    page.refresh()
    assert page.execute_script(ground) == "rgb(22, 25, 29)"  # the system's


def test_the_legend_dims_the_other_series(page: Any) -> None:
    entry = page.find_element("css selector", ".legend button[data-n=m3]")
    entry.click()
    opacity = (
        "return getComputedStyle(document.querySelector(`.series[data-n=${arguments[0]}]`)).opacity"
    )
    assert page.execute_script(opacity, "m3") == "1"
    assert float(page.execute_script(opacity, "m1")) < 0.5
    entry.click()
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(page).move_to_element(page.find_element("tag name", "h1")).perform()
    assert page.execute_script(opacity, "m1") == "1"


@pytest.mark.parametrize("form", ["svg", "png"])
def test_figures_are_saved(page: Any, form: str) -> None:
    buttons = page.find_elements("css selector", f"button[data-as={form}]")
    assert len(buttons) == len(charts())
    page.execute_script("arguments[0].click()", buttons[list(charts()).index("maps")])
    name, kind, size = saved(page)
    assert name == f"maps.{form}"
    assert kind == {"svg": "image/svg+xml", "png": "image/png"}[form]
    assert size > 5000


def test_no_sideways_scrolling_on_a_phone(opened: Any, page: Any) -> None:
    resize(opened, 390, 844)
    width = "return [document.documentElement.scrollWidth, innerWidth]"
    assert page.execute_script(width) == [390, 390]
    boxes = page.execute_script(
        "return [...document.querySelectorAll('.panel')].map(b => b.getBoundingClientRect().right)"
    )
    assert max(boxes) <= 390
    sizes = page.execute_script(
        "return [...document.querySelectorAll('svg.chart')].filter(s => s.getBoundingClientRect()"
        ".width).flatMap(s => [...s.querySelectorAll('text:not(.sign)')].map(t => "
        "parseFloat(getComputedStyle(t).fontSize) * s.getScreenCTM().a))"
    )
    assert min(sizes) >= 11
    head = page.find_element("css selector", ".long tbody th")
    left = head.rect["x"]
    page.execute_script("document.querySelector('.long').scrollLeft = 500")
    assert head.rect["x"] == left  # the first column stays


def test_charts_use_the_width_of_a_desk_and_of_a_phone(opened: Any, page: Any) -> None:
    for width in (1280, 390):
        resize(opened, width)
        place = page.execute_script("return document.querySelector('main').clientWidth")
        widest = max(size[0] for size in chart_sizes(page))
        assert 0.95 * place < widest <= place + 6


def test_folded_tables_open(opened: Any, page: Any) -> None:
    table = page.find_element("css selector", "details.fold table")
    assert not table.is_displayed()
    page.find_element("css selector", "details.fold summary").click()
    assert table.is_displayed()


def test_hostile_names_stay_names(opened: Any, tmp_path: Path) -> None:
    visit(opened, gallery(HOSTILE).write(tmp_path / "hostile.html"))
    assert opened.execute_script("return [window.hit, document.images.length]") == [None, 0]
    assert opened.title == f"Gallery{HOSTILE}"
    for button in opened.find_elements("css selector", "button[data-as=svg]")[:2]:
        opened.execute_script("arguments[0].click()", button)
        assert saved(opened)[2] > 1000
    assert opened.execute_script("return window.hit") is None
    assert opened.get_log("browser") == []


def test_the_policy_stops_scripts_that_get_in_anyway(opened: Any, tmp_path: Path) -> None:
    text = gallery().html().replace("</body>", "<script>window.hit = 1</script></body>")
    path = tmp_path / "tampered.html"
    path.write_text(text, encoding="utf-8")
    visit(opened, path)
    assert opened.execute_script("return window.hit") is None
    assert any("Content Security Policy" in line["message"] for line in opened.get_log("browser"))
