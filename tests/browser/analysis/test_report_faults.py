"""Faults in a report: on the timeline and in a table, with the duration of their effects."""

from pathlib import Path
from typing import Any

import pytest

from analysis.report import write_report
from tests.fixtures.report_page import Page, downloaded, small_underlay
from tests.fixtures.report_runs import experiment, write_documents, write_run


def test_faults_are_listed_with_the_recovery_of_the_metrics(
    page: Page, run: Path, downloads: Path, metrics: dict[str, Any]
) -> None:
    page.open(run)
    rows = page.script(
        """return [...document.querySelectorAll('tr[data-moment]')].map((row) => [
            Number(row.dataset.moment), row.innerText,
            Object.fromEntries([...row.querySelectorAll('data')].map(
                (node) => [node.dataset.metric.split('.').pop(), Number(node.value)]))])"""
    )
    shown = {at_s: (words, numbers) for at_s, words, numbers in rows}
    assert list(shown) == [14.0, 20.0, 24.5]
    names = ("recovery_s", "late", "missing", "deliveries")
    for fault in metrics["recovery"]["faults"]:
        words, numbers = shown[fault["at_s"]]
        expected = {name: fault[name] for name in names if fault[name] is not None}
        assert numbers == expected
        assert fault.get("note", " s") in words
    assert "kill-agent h3, h5" in shown[14.0][0]
    assert "repair" in shown[24.5][0] and shown[24.5][1] == {}
    saved = downloaded(page, downloads, "faults")
    assert [row["recovery_s"] for row in saved] == ["3.456789", "", ""]
    assert [row["late"] for row in saved] == ["17", "44", ""]


def test_the_timeline_shows_faults_and_the_duration_of_their_effects(page: Page, run: Path) -> None:
    page.open(run)
    labels = page.script("return [...document.querySelectorAll('[data-fault]')].map((n) => n.textContent)")  # fmt: skip  # noqa: E501
    assert labels == ["kill-agent h3, h5", "link-down r1-r2", "link-up r1-r2"]
    bands = page.script(
        """return [...document.querySelectorAll('[data-recovering]')].map((node) => [
            Number(node.dataset.recovering), node.width.baseVal.value])"""
    )
    cover_width = 1300 - 58 - 16
    assert bands == [[14.0, pytest.approx(3.456789 / 30 * cover_width, rel=1e-3)]]


def test_labels_of_many_faults_do_not_overlap(page: Page, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", small_underlay(), events=5)
    faults = [
        {"at_s": 2 + number / 3, "action": "router-down", "target": f"r{number % 20 + 1}"}
        for number in range(40)
    ]
    faults += [{"at_s": 27.8, "action": "kill-agent", "target": f"h{n}"} for n in range(1, 13)]
    write_documents(run, experiment(fault=faults))
    write_report(run)
    page.open(run)
    boxes = page.script(
        """return [...document.querySelectorAll('[data-fault]')].map((node) => {
            const {left, right, top, bottom} = node.getBoundingClientRect();
            return [left, right, top, bottom, node.ownerSVGElement.getBoundingClientRect().right];
        })"""
    )
    assert len(boxes) >= 4
    assert all(right <= edge for _, right, _, _, edge in boxes)
    for number, (left, right, top, bottom, _) in enumerate(boxes):
        for other_left, other_right, other_top, other_bottom, _ in boxes[:number]:
            is_beside = right <= other_left or other_right <= left
            assert is_beside or bottom - 3 <= other_top or other_bottom - 3 <= top
    assert len(page.find_all("tr[data-moment]")) == 41
