"""A real browser for tests of reports: Debian's Chromium, driven by its own driver.

Both are named by their paths, so Selenium looks for nothing and downloads nothing.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.chrome.webdriver import WebDriver

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
)


def browser_at(name: str) -> str:
    """The path of a part of the browser; Ubuntu's, which is a snap, cannot be driven like this."""
    found = shutil.which(name)
    if found is None or "snap" in str(Path(found).resolve()):
        pytest.skip(
            f"{name}: expected Debian's chromium and chromium-driver, found "
            f"{'none' if found is None else 'a snap'}; apt-get install chromium chromium-driver"
        )
    return found


@pytest.fixture(scope="session")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the browser puts what is downloaded."""
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
