"""The page of reproduced claims in a real browser."""

import csv
import time
from pathlib import Path

from selenium.webdriver.chrome.webdriver import WebDriver

from tests.fixtures.claim_runs import reproduce_here

FIGURES = "section#T12 figure svg"


def test_the_page_shows_figures_and_offers_their_data(
    browser: WebDriver, downloads: Path, tmp_path: Path
) -> None:
    assert reproduce_here(tmp_path, "T12") == 0
    browser.get((tmp_path / "reproduce" / "small" / "T12.html").as_uri())
    row = browser.find_element("css selector", "tbody tr")
    assert row.text.startswith("T12")
    assert row.find_element("css selector", ".badge").text == "yes"
    figures = browser.find_elements("css selector", FIGURES)
    assert len(figures) == 2
    assert all(figure.size["width"] > 200 and figure.size["height"] > 150 for figure in figures)
    assert [figure.text.count("containment") for figure in figures] == [1, 1]
    # No two pictures share an id; otherwise one could show parts of another.
    repeated = "return new Set([...document.querySelectorAll('[id]')].map(e => e.id)).size"
    assert browser.execute_script(repeated) == len(browser.find_elements("css selector", "[id]"))
    fetched = "return performance.getEntriesByType('resource').map(e => e.name)"
    assert [name for name in browser.execute_script(fetched) if name[:5] != "data:"] == []

    browser.find_element("css selector", "section#T12 figure a.csv").click()
    file = downloads / "example1-messages.csv"
    for _ in range(100):
        if file.exists():
            break
        time.sleep(0.1)
    with file.open(newline="") as opened:
        means = {line["variant"]: float(line["mean"]) for line in csv.DictReader(opened)}
    assert means["containment"] > means["underlay"] > 0


def test_the_page_of_a_computation_has_the_same_parts(browser: WebDriver, tmp_path: Path) -> None:
    assert reproduce_here(tmp_path, "G2", "--set", "seed=[1, 2, 3]") == 0
    (page,) = tmp_path.glob("reproduce/small/G2-*.html")
    browser.get(page.as_uri())
    assert browser.find_element("css selector", "tbody tr").text.startswith("G2")
    assert "(3 points)" in browser.find_element("css selector", "section#G2 dl").text
    figures = browser.find_elements("css selector", "section#G2 figure svg")
    assert ["396" in figure.text and "1584" in figure.text for figure in figures] == [True, True]
    links = [link.text for link in browser.find_elements("css selector", "main > section li a.csv")]
    assert links == ["transit-stub-networks: 9 points"]
