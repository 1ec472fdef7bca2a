"""The topics of a report: the table, the drawing of one topic, and the loads of hosts."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from analysis.metrics.file import measure_run
from analysis.report import write_report
from tests.fixtures.report_page import Page, downloaded
from tests.fixtures.scribe_run import (
    ScribeRun,
    make_scribe_run,
    write_scribe_run,
    write_topic_tables,
)

DRAWN = """
    const {topics} = report, names = (nodes) => [...nodes].map((node) => topics.nodes.name[node]);
    return {topic: topics.topic, subscribers: names(topics.subscribers),
            relays: names(topics.relays.keys()), total: topics.values.length,
            crossings: topics.links.crossings_ab.concat(topics.links.crossings_ba)
                             .reduce((sum, count) => sum + count, 0),
            picture: topics.base.toDataURL()};"""


@pytest.fixture(scope="module")
def scribe() -> ScribeRun:
    return make_scribe_run(2)


@pytest.fixture(scope="module")
def topic_run(scribe: ScribeRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_scribe_run(scribe, tmp_path_factory.mktemp("topics") / "run")
    measure_run(path)
    write_topic_tables(scribe, path)
    write_report(path)
    return path


def drawn(page: Page) -> dict[str, Any]:
    page.settle()
    found: dict[str, Any] = page.script(DRAWN)
    return found


def test_a_selected_topic_is_drawn(page: Page, scribe: ScribeRun, topic_run: Path) -> None:
    page.open(topic_run)
    rows = page.script(
        "return [...document.querySelectorAll('tr[data-topic]')].map((row) => row.dataset.topic)"
    )
    first = drawn(page)
    assert str(first["topic"]) == rows[0]
    page.click(f"tr[data-topic='{rows[1]}']")
    second = drawn(page)
    topic = int(rows[1])
    assert second["topic"] == topic and second["picture"] != first["picture"]
    assert set(second["subscribers"]) == {
        n for n, topics in scribe.topics.items() if topic in topics
    }
    crossed = sum(
        len(scribe.recorder.routes.path(sender, host)) - 1
        for _, about, sender, host, _ in scribe.messages
        if about == topic
    )
    assert second["crossings"] == crossed
    assert page.find(f"tr[data-topic='{topic}']").get_attribute("aria-selected") == "true"
    page.choose("topic", rows[0])
    assert drawn(page)["picture"] == first["picture"]


def test_a_click_on_a_point_draws_its_topic(page: Page, topic_run: Path) -> None:
    page.open(topic_run)
    points = page.find_all("[data-scatter=overhead_per_delivery] circle")
    keys = [point.get_attribute("data-point") for point in points]
    assert len(keys) > 2
    page.script("arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", points[0])
    assert str(drawn(page)["topic"]) == keys[0]


def test_figures_of_topics_and_hosts_can_be_downloaded(
    page: Page, scribe: ScribeRun, topic_run: Path, downloads: Path
) -> None:
    page.open(topic_run)
    forwarded = Counter(sender for _, _, sender, _, _ in scribe.messages)
    rows = downloaded(page, downloads, "host_loads")
    assert {row["host"]: int(row["forwarded"]) for row in rows} == {
        name: forwarded[name] for name in scribe.recorder.names
    }
    topics = downloaded(page, downloads, "topics")
    assert sum(int(row["overhead"]) for row in topics) == len(scribe.unwanted())
    assert "Correlation of messages forwarded" in page.find("[data-figure=host_loads]").text


def test_a_report_without_topics_has_no_such_section(page: Page, run: Path) -> None:
    page.open(run)
    assert not page.find("#topics").is_displayed()
    assert page.find_all("nav a[href='#topics']") == []
