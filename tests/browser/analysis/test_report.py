"""The report in a real browser, with pointer, keyboard and downloads."""

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from analysis.metrics.names import is_former, name_number
from analysis.report import write_report
from tests.fixtures.overlay_runs import random_overlay
from tests.fixtures.report_page import MARKS, Page, downloaded, small_underlay
from tests.fixtures.report_runs import experiment, write_documents, write_run


def leaves(given: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """All numbers with dotted names; list elements are named by their label, or by their index."""
    for key, value in given.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{key}.")
        elif isinstance(value, list) and isinstance(value[0], dict):
            parts = {str(number): part for number, part in enumerate(value, start=1)}
            yield from leaves(parts, f"{prefix}{key}.")
        elif not isinstance(value, list):
            yield prefix + key, value


def test_every_number_is_that_of_the_metrics(
    page: Page, run: Path, metrics: dict[str, Any]
) -> None:
    page.open(run)
    rows = page.script(
        """return [...document.querySelectorAll('#metrics [data-metric]')].map(
            (node) => [node.dataset.metric, node.getAttribute('value'), node.textContent])"""
    )
    shown = {name: (exact, words) for name, exact, words in rows}
    every = dict(leaves({k: v for k, v in metrics.items() if k != "notes"}))
    expected = {name: value for name, value in every.items() if not is_former(name, every)}
    numbers = {name: value for name, value in expected.items() if value is not None}
    assert shown.keys() == numbers.keys()
    for name, value in numbers.items():
        exact, words = shown[name]
        if isinstance(value, str):
            assert exact == words == value, name
            continue
        assert json.loads(exact) == value, name
        if not isinstance(value, bool):
            factor = 100 if words.endswith(" %") else 1
            digits = words.removesuffix(" %").replace(",", "")
            assert float(digits) == pytest.approx(factor * value, rel=5e-4), name
            assert (factor == 100) == (name_number(name).unit == "share"), name
    missing = page.script(
        "return [...document.querySelectorAll('#metrics [data-null]')].map((n) => n.dataset.null)"
    )
    assert sorted(missing) == sorted(name for name, value in expected.items() if value is None)
    assert metrics["notes"]["control_efficiency"] in page.find("#metrics").text
    tile = page.find("#headlines [data-metric='rdp.mean']")
    assert float(str(tile.get_attribute("value"))) == metrics["rdp"]["mean"]


def test_pointer_and_keyboard_show_the_definition_of_a_metric(page: Page, run: Path) -> None:
    page.open(run)
    name = page.find("[data-row=false_positives] .term")
    page.script("arguments[0].scrollIntoView({block: 'center'})", name)
    ActionChains(page.browser, duration=20).move_to_element(name).perform()
    assert "without a matching subscription" in page.tip()
    page.script("arguments[0].focus()", page.find("[data-row=link_stress] .term"))
    assert "Copies of one event" in page.tip()


def test_verdict_and_setup_are_shown(page: Page, tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", small_underlay(), events=5, verdict="degraded")
    write_report(path)
    page.open(path)
    verdict = page.find("[data-verdict=degraded]").text
    assert "Degraded" in verdict
    assert "expected below 90 %, found 97 %" in verdict
    setup = page.find("#setup").text
    assert 'experiments/<hand-made> & "quoted".toml' in setup
    assert "stage 0.41 s, run 30.2 s" in setup
    assert "0123456789abcdef" in setup


@pytest.mark.parametrize("name", ["Overlay", "Routing tree", "Hosts", "Names"])
def test_a_switch_changes_the_drawing_and_reverts_it(page: Page, run: Path, name: str) -> None:
    page.open(run)
    before = page.picture()
    page.click(f"[data-switch='{name}']")
    assert page.picture() != before
    page.click(f"[data-switch='{name}']")
    assert page.picture() == before


def test_the_keyboard_operates_switches_and_map(page: Page, run: Path) -> None:
    page.open(run)
    before = page.picture()
    page.find("[data-switch=Overlay]").send_keys(Keys.SPACE)
    assert page.state()["layers"]["overlay"]
    assert page.picture() != before
    stage = page.find(MARKS)
    stage.send_keys("+")
    page.settle()
    zoomed = page.state()
    assert zoomed["zoom"] == pytest.approx(1.5)
    stage.send_keys(Keys.ARROW_LEFT)
    page.settle()
    assert page.state()["centre"][0] < zoomed["centre"][0]
    stage.send_keys("0")
    page.settle()
    assert page.state()["zoom"] == 1


def test_the_tree_does_not_cover_the_colours_of_links(page: Page, run: Path) -> None:
    """On the links with the highest load, the drawing is equal with and without the tree."""
    page.open(run)
    along_worst = """
        const {map} = report, {nodes, links, base} = map;
        const copy = document.createElement('canvas');
        [copy.width, copy.height] = [base.width, base.height];
        const pen = copy.getContext('2d', {willReadFrequently: true});
        pen.drawImage(base, 0, 0);
        const rows = [...document.querySelectorAll('tr[data-link]')].slice(0, 10);
        return rows.flatMap(({dataset}) => [0.3, 0.5, 0.7].map((share) => {
            const a = links.a[dataset.link], b = links.b[dataset.link];
            const between = (axis) => nodes[axis][a] + share * (nodes[axis][b] - nodes[axis][a]);
            const at = map.toScreen(between('x'), between('y'));
            return [...pen.getImageData(...at.map((v) => Math.round(v * map.ratio)), 1, 1).data];
        }));"""
    with_tree, seen = page.script(along_worst), page.picture()
    page.click("[data-switch='Routing tree']")
    assert page.picture() != seen
    pairs = zip(with_tree, page.script(along_worst), strict=True)
    off = [max(abs(x - y) for x, y in zip(*pair, strict=True)) for pair in pairs]
    assert len(off) == 30
    assert sum(difference > 60 for difference in off) == 0, off  # Edges of lines may be translucent


def test_versions_of_the_tree_and_metrics_can_be_selected(page: Page, run: Path) -> None:
    page.open(run)
    assert page.state()["tree"] == 2
    before = page.picture()
    page.choose("tree", "0")
    assert page.picture() != before
    assert page.state()["tree"] == 1
    before = page.picture()
    page.choose("measure", "bytes")
    assert page.picture() != before
    assert page.find(".worst th.num").text == "bytes"


def test_pointing_shows_the_right_link(page: Page, run: Path) -> None:
    page.open(run)
    page.click("[data-switch='Routing tree']")
    worst = page.script("return Number(document.querySelector('tr[data-link]').dataset.link)")
    name = page.script(
        """const {nodes, links} = report.data;
        return `${nodes.name[links.a[arguments[0]]]}-${nodes.name[links.b[arguments[0]]]}`""",
        worst,
    )
    page.point_at(*page.place_of(name))
    assert page.state()["hovered"] == name
    assert all(end in page.tip() for end in name.split("-"))
    assert "highest link stress" in page.tip()
    host = name.split("-")[0]
    page.point_at(*page.place_of(name, 0.0))
    assert page.state()["hovered"] == host
    assert small_underlay().address[host] in page.tip()


def test_wheel_and_drag_zoom_and_move_the_map(page: Page, run: Path) -> None:
    page.open(run)
    page.point_at(300, 200)
    box = page.script("return arguments[0].getBoundingClientRect().toJSON()", page.find(MARKS))
    wheel = {"x": box["x"] + 300, "y": box["y"] + 200, "deltaX": 0, "deltaY": -120}
    page.browser.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseWheel", **wheel})
    page.settle()
    zoomed = page.state()
    assert zoomed["zoom"] > 1.2
    ActionChains(page.browser, duration=20).click_and_hold().move_by_offset(
        60, 0
    ).release().perform()
    page.settle()
    assert page.state()["centre"][0] < zoomed["centre"][0]
    assert page.state()["zoom"] == zoomed["zoom"]


def test_a_row_of_the_table_highlights_its_link_on_the_map(page: Page, run: Path) -> None:
    page.open(run)
    marks = page.script("return report.map.top.toDataURL()")
    page.click("tr[data-link] button")
    link = page.find("tr[data-link] button").text
    assert set(str(page.state()["selected"]).split("-")) == set(link.split(" → "))
    assert page.script("return report.map.top.toDataURL()") != marks
    assert page.find("tr[data-link]").get_attribute("aria-selected") == "true"
    page.click("tr[data-link] button")
    assert page.state()["selected"] is None


def as_numbers(rows: list[dict[str, str]]) -> list[dict[str, Any]]:
    number = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")
    return [{k: float(v) if number.fullmatch(v) else v for k, v in row.items()} for row in rows]


def test_downloads_contain_the_data(
    page: Page, run: Path, downloads: Path, metrics: dict[str, Any]
) -> None:
    page.open(run)
    for name in ("rdp_cdf", "stress_cdf", "timeline"):
        with (run / "analysis" / "figures" / f"{name}.csv").open(newline="") as file:
            expected = as_numbers(list(csv.DictReader(file)))
        found = as_numbers(downloaded(page, downloads, name))
        assert len(found) >= 3
        assert found == expected
    links = downloaded(page, downloads, "links")
    assert len(links) == 2 * len(small_underlay().links)
    assert int(links[0]["max_stress"]) == metrics["link_stress"]["max"]
    edges = downloaded(page, downloads, "edges")
    assert sum(row["layer"] != "tree" for row in edges) == metrics["overlay_links"]
    assert [row["version"] for row in edges if row["layer"] == "tree"] == ["1"] * 11 + ["2"] * 11
    figures = {row["metric"]: row["value"] for row in downloaded(page, downloads, "metrics")}
    assert float(figures["rdp.mean"]) == metrics["rdp"]["mean"]
    assert figures["control_efficiency"] == ""


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1280, 720)])
def test_nothing_is_wider_than_the_window(page: Page, run: Path, width: int, height: int) -> None:
    page.open(run, width, height)
    wide = page.script(
        """const most = document.documentElement.clientWidth, root = document.documentElement;
        const over = [...document.querySelectorAll('body *')].filter((node) => {
          const box = node.getBoundingClientRect();
          return box.width && box.right > most + 1 && !node.closest('.skip, pre, .scroll');
        });
        return [root.scrollWidth <= most, over.map((node) => node.outerHTML.slice(0, 80))]"""
    )
    assert wide == [True, []]


def test_a_run_that_failed_shows_the_available_data(page: Page, tmp_path: Path) -> None:
    run = tmp_path / "simulation-s1.partial"
    random_overlay(small_underlay(), 1).write_logs(run)
    write_documents(run, experiment())
    (run / "verdict.json").unlink()
    write_report(run)
    page.open(run)
    words = page.find("#missing").text
    assert "not complete" in words
    assert "tdo analyze" in words
    assert "No verdict" in page.find(".verdict").text
    assert page.state()["measure"] == "overlay_links"
    assert page.find("[data-switch='Routing tree']").get_attribute("disabled")
    assert len(page.find_all("#distributions svg")) == 1


def test_a_run_without_records_or_packets_still_has_a_map(page: Page, tmp_path: Path) -> None:
    run = random_overlay(small_underlay(), 1).write(tmp_path / "run")
    (run / "agents" / "records.parquet").unlink()
    write_report(run)
    page.open(run)
    assert "run.json" in page.find("#missing").text
    assert page.state()["measure"] is None
    assert "so its links have no load" in page.find(".worst").text
    assert page.find_all("#distributions svg") == []
    before = page.picture()
    page.click("[data-switch=Hosts]")
    assert page.picture() != before


def test_a_missing_underlay_is_stated_in_the_report(page: Page, tmp_path: Path) -> None:
    write_documents(tmp_path / "run", experiment())
    write_report(tmp_path / "run")
    page.open(tmp_path / "run")
    assert "no underlay.json" in page.find("#topology").text
    assert page.find("h1").text == "hand-made"
