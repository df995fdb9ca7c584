"""A headless Chromium for tests; skipped with a reason where there is none."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--hide-scrollbars"),
)


@contextmanager
def chromium(width: int = 1280, height: int = 900) -> Iterator[Any]:
    """Open a browser with a profile of its own."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    from selenium.webdriver.chrome.service import Service

    browser = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not browser or not driver:
        pytest.skip("chromium or chromedriver is not installed")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = browser
        for flag in (*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        opened = webdriver.Chrome(options=options, service=Service(driver))
        try:
            opened.set_page_load_timeout(120)
            yield opened
        finally:
            opened.quit()


def resize(opened: Any, width: int, height: int = 900) -> None:
    """Give the page a size in its own pixels, narrower than a window can be."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def prefer(opened: Any, scheme: str) -> None:
    """Let the system prefer light or dark."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def visit(opened: Any, path: Path) -> None:
    """Open a file with nothing remembered, and no log of what was before."""
    opened.get(path.absolute().as_uri())
    opened.execute_script("localStorage.clear(); delete document.documentElement.dataset.theme")
    opened.get_log("browser")
    opened.refresh()


def point(opened: Any, element: Any, dx: int = 0, dy: int = 0) -> None:
    """Point at a place, counted from the middle of an element, until the page shows its tip.

    Charts are laid out when they come into view, so that scrolling to one can move it, and the
    event of a scroll, which hides the tip, comes with a later frame. On a busy machine both may be
    later than the pointer: it is moved again, as a hand would, until the tip stays.
    """
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.support.ui import WebDriverWait

    tip = opened.find_element("id", "tip")

    frames = "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(arguments[0], 0)))"

    def shown(_: Any) -> bool:
        opened.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        opened.execute_async_script(frames)
        beside = ActionChains(opened).move_to_element_with_offset(element, dx + 1, dy)
        beside.move_to_element_with_offset(element, dx, dy).perform()
        opened.execute_async_script(frames)
        return bool(tip.is_displayed())

    WebDriverWait(opened, 60).until(shown, "the tip is not shown")
