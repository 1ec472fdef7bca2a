"""A report in a browser, as tests look at it and work it."""

import csv
import time
from pathlib import Path
from typing import Any

from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.remote.webelement import WebElement

from topologies.hosts import attach_hosts, make_anonymous
from topologies.underlay import Underlay
from topologies.waxman import generate_waxman

MARKS = ".stage canvas:nth-of-type(2)"


def small_underlay() -> Underlay:
    return make_anonymous(attach_hosts(generate_waxman(20, seed=1), 12, 1), 0.1, 1)


class Page:
    """A report in the browser."""

    def __init__(self, browser: WebDriver) -> None:
        self.browser = browser

    def open(self, run: Path, width: int = 1440, height: int = 900) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.browser.get((run / "analysis" / "report.html").as_uri())
        self.settle()

    def script(self, text: str, *arguments: Any) -> Any:
        return self.browser.execute_script(text, *arguments)

    def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        self.browser.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))"
        )

    def find(self, css: str) -> WebElement:
        return self.browser.find_element("css selector", css)

    def find_all(self, css: str) -> list[WebElement]:
        return self.browser.find_elements("css selector", css)

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = self.script("return report.map.state()")
        return found

    def picture(self) -> str:
        """The map as it is drawn, without marks."""
        self.settle()
        return str(self.script("return report.map.base.toDataURL()"))

    def click(self, css: str) -> None:
        self.script("arguments[0].click()", self.find(css))
        self.settle()

    def choose(self, what: str, value: str) -> None:
        """Choose from a list of the map."""
        self.script(
            """const [what, value] = arguments;
            const node = document.querySelector(`[data-choose=${what}]`);
            node.value = value;
            node.dispatchEvent(new Event('change'));""",
            what,
            value,
        )

    def point_at(self, x: float, y: float) -> None:
        """Move the pointer to a place of the map."""
        self.script("document.querySelector('.stage').scrollIntoView({block: 'center'})")
        stage = self.find(MARKS)
        dx, dy = x - stage.size["width"] / 2, y - stage.size["height"] / 2
        ActionChains(self.browser, duration=20).move_to_element_with_offset(
            stage, round(dx), round(dy)
        ).perform()

    def place_of(self, link: str, share: float = 0.5) -> tuple[float, float]:
        """A place on the drawing of a link."""
        x, y = self.script(
            """const [link, share] = arguments, {map} = report, {nodes, links} = map;
            const at = (name) => nodes.name.indexOf(name);
            const [a, b] = link.split('-').map(at);
            return map.toScreen(nodes.x[a] + share * (nodes.x[b] - nodes.x[a]),
                                nodes.y[a] + share * (nodes.y[b] - nodes.y[a]));""",
            link,
            share,
        )
        return x, y

    def tip(self) -> str:
        return str(self.script("return document.getElementById('tip').innerText"))


def is_complete(path: Path) -> bool:
    """Whether a download has ended; until then the file is empty, beside one that grows."""
    is_there = path.exists() and path.stat().st_size > 0
    return is_there and not list(path.parent.glob("*.crdownload"))


def downloaded(page: Page, folder: Path, name: str) -> list[dict[str, str]]:
    button = page.find(f"[data-csv={name}]")
    page.script("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()  # by hand: a page may not start several downloads by itself
    path = folder / f"{name}.csv"
    end = time.monotonic() + 30
    while not is_complete(path) and time.monotonic() < end:
        time.sleep(0.02)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    path.unlink()
    return rows
