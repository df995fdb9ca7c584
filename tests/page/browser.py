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


def bring(opened: Any, element: Any) -> None:
    """Scroll an element to the middle and wait for the frames in which the page hears of it.

    The event of a scroll comes with a later frame; a pointer that moves before it would have its
    tip hidden again.
    """
    opened.execute_async_script(
        "const done = arguments[1]; arguments[0].scrollIntoView({block: 'center'});"
        "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0)))",
        element,
    )
