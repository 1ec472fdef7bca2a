"""A real browser for tests of reports: Debian's Chromium and its driver.

Both are given by path, so Selenium searches and downloads nothing.
"""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.chrome.webdriver import WebDriver

from analysis.report import write_report
from tests.fixtures.report_page import Page, small_underlay
from tests.fixtures.report_runs import write_run

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
)


def browser_at(name: str) -> str:
    """The path of a browser program; Ubuntu's snap cannot be driven this way."""
    found = shutil.which(name)
    if found is None or "snap" in str(Path(found).resolve()):
        pytest.skip(
            f"{name}: expected Debian's chromium and chromium-driver, found "
            f"{'none' if found is None else 'a snap'}; apt-get install chromium chromium-driver"
        )
    return found


@pytest.fixture(scope="session")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder for downloads."""
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory, downloads: Path) -> Iterator[WebDriver]:
    """One browser with an empty profile for all tests."""
    options = webdriver.ChromeOptions()
    options.binary_location = browser_at("chromium")
    for flag in (*_FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(browser_at("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with everything that a report can show."""
    path = write_run(tmp_path_factory.mktemp("report") / "run", small_underlay())
    write_report(path)
    return path


@pytest.fixture(scope="session")
def metrics(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "analysis" / "metrics.json").read_text())
    return found


@pytest.fixture
def page(browser: WebDriver) -> Iterator[Page]:
    """A browser page; the test fails if the page logged an error or loaded anything from the
    network.
    """
    browser.get_log("browser")
    browser.get_log("performance")
    yield Page(browser)
    assert browser.get_log("browser") == []
    messages = (json.loads(row["message"])["message"] for row in browser.get_log("performance"))
    asked = (
        m["params"]["request"]["url"]
        for m in messages
        if m["method"] == "Network.requestWillBeSent"
    )
    assert [url for url in asked if not re.match(r"file:|data:|blob:", url)] == []
