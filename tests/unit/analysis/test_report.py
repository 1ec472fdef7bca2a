"""The content of a report: self-contained, with notes about missing data."""

import csv
import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.report import write_report
from analysis.report.distributions import cumulate
from analysis.report.explanations import read_groups
from analysis.report.summary import metric_groups, part_words, seconds
from testbed.cli import main
from tests.fixtures.overlay_runs import random_overlay
from tests.fixtures.report_runs import experiment, write_documents, write_run, write_table
from topologies.hosts import attach_hosts
from topologies.underlay import Underlay
from topologies.waxman import generate_waxman

ROOT = Path(__file__).parents[3]


def underlay() -> Underlay:
    return attach_hosts(generate_waxman(20, seed=1), 12, 1)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_run(tmp_path_factory.mktemp("report") / "run", underlay())
    write_report(path)
    return path


class _Reader(HTMLParser):
    """The elements of a page, and the text of its data."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.data = ""
        self._is_data = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._is_data = tag == "script" and dict(attrs).get("id") == "data"

    def handle_endtag(self, tag: str) -> None:
        self._is_data = False

    def handle_data(self, data: str) -> None:
        if self._is_data:
            self.data += data


def read_page(run: Path) -> _Reader:
    reader = _Reader()
    reader.feed((run / "analysis" / "report.html").read_text())
    return reader


def data_of(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(read_page(run).data)
    return found


def test_the_page_is_self_contained(run: Path) -> None:
    page = read_page(run)
    text = (run / "analysis" / "report.html").read_text()
    addresses = set(re.findall(r"https?://[^\s\"'<]+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name that no browser loads
    assert not [attrs for tag, attrs in page.tags if tag == "script" and "src" in attrs]
    links = [attrs.get("href") for _, attrs in page.tags if "href" in attrs]
    assert links == ["data:,", "#main"]
    assert "<!--" not in re.sub(r"(?s)<script.*?</script>", "", text)


def test_names_cannot_break_out_of_the_data(tmp_path: Path) -> None:
    name = "</script><script>alert(1)</script><!--"
    write_documents(tmp_path / "run", experiment(name=name))
    write_report(tmp_path / "run")
    page = read_page(tmp_path / "run")
    assert json.loads(page.data)["title"] == name
    assert sum(tag == "script" for tag, _ in page.tags) == 2


def test_two_reports_of_a_run_are_equal(run: Path) -> None:
    files = [run / "analysis" / "report.html", *(run / "analysis" / "figures").iterdir()]
    before = [file.read_bytes() for file in files]
    write_report(run)
    assert [file.read_bytes() for file in files] == before


def test_printable_figures_have_data_files(run: Path) -> None:
    names = {file.name for file in (run / "analysis" / "figures").iterdir()}
    figures = ("rdp_cdf", "stress_cdf", "timeline", "overlay")
    assert names == {f"{name}{end}" for name in figures for end in (".svg", ".csv")}
    with (run / "analysis" / "figures" / "timeline.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert sum(int(row["events published"]) for row in rows) == 60
    assert {row["second"]: row["faults"] for row in rows}["14"] == "kill-agent h3; kill-agent h5"


def test_the_picture_of_the_overlay_has_a_data_file(run: Path) -> None:
    with (run / "analysis" / "figures" / "overlay.csv").open(newline="") as file:
        lines = Counter(row["what"] for row in csv.DictReader(file))
    picture = (run / "analysis" / "figures" / "overlay.svg").read_text()
    for what, label in (
        ("link discovered", "links discovered"), ("link not discovered", "links not discovered"),
        ("overlay link", "overlay links"), ("distant link", "distant links"),
    ):  # fmt: skip
        assert (f"{lines[what]} {label}" in picture) == (lines[what] > 0)
    assert lines["link discovered"] + lines["link not discovered"] == len(underlay().links)


def test_faults_at_one_time_are_one_row_with_their_metrics(run: Path) -> None:
    moments = data_of(run)["timeline"]["moments"]
    assert [(row["what"], row["is_failure"], row["late"]) for row in moments] == [
        ("kill-agent h3, h5", True, 17),
        ("link-down r1-r2", True, 44),
        ("link-up r1-r2", False, None),
    ]
    assert [row["recovery_s"] for row in moments] == [3.456789, None, None]
    assert moments[1]["note"] == "not recovered before the end"


def test_faults_of_churn_are_listed_and_many_names_are_shortened(tmp_path: Path) -> None:
    played = [{"at_s": 9.0, "action": "kill-agent", "target": f"h{n}"} for n in range(1, 10)]
    played += [{"at_s": 9.0, "action": "restart-agent", "target": "h11"}]
    write_documents(tmp_path / "run", experiment())
    document = json.loads((tmp_path / "run" / "run.json").read_text())
    text = json.dumps(document | {"played_faults": played})
    (tmp_path / "run" / "run.json").write_text(text)
    write_report(tmp_path / "run")
    (row,) = data_of(tmp_path / "run")["timeline"]["moments"]
    assert row["label"] == "kill-agent h1, h2, h3, h4 and 5 more; restart-agent h11"
    assert "h9" in row["what"] and row["recovery_s"] is None


def test_links_have_the_loads_of_the_tables(run: Path) -> None:
    data = data_of(run)
    metrics = json.loads((run / "analysis" / "metrics.json").read_text())
    links = data["links"]
    assert len(links["a"]) == len(underlay().links)
    assert max(links["max_stress_ab"] + links["max_stress_ba"]) == metrics["link_stress"]["max"]
    keys = [measure["key"] for measure in links["measures"]]
    assert keys == ["max_stress", "mean_stress", "event_packets", "packets", "bytes", "overlay_links"]  # fmt: skip  # noqa: E501
    assert all(
        len(links[f"{key}_{way}"]) == len(links["a"]) for key in keys for way in ("ab", "ba")
    )


def test_a_removed_tree_is_shown_with_its_most_links(run: Path) -> None:
    first, second = data_of(run)["trees"]
    hosts = len(underlay().hosts)
    assert len(first["links"]) == len(second["links"]) == 2 * (hosts - 1)
    names = data_of(run)["nodes"]["name"]
    assert [names[core] for core in second["cores"]] == ["h2", "h1", "h4"]


def test_many_types_of_traffic_reuse_colours(run: Path) -> None:
    timeline = data_of(run)["timeline"]
    assert len(timeline["traffic"]) == 8
    assert timeline["traffic"][-1]["label"] == "other"
    assert len(timeline["all_traffic"]) == 10
    few, full = (
        sum(sum(series["counts"]) for series in timeline[name])
        for name in ("traffic", "all_traffic")
    )
    assert few == full


def test_records_have_the_time_of_the_run_for_any_time_scale(tmp_path: Path) -> None:
    recorder = random_overlay(underlay(), 1)
    recorder.record("h1", "event_published", 3_200_000, event_id=1)
    recorder.record("h2", "delivered", 4_100_000, event_id=1)
    run = recorder.write(tmp_path / "run")
    write_documents(run, experiment(time_scale=4.0))
    write_report(run)
    events = data_of(run)["timeline"]["events"]
    assert {series["label"]: series["counts"] for series in events} == {
        "events published": [0, 0, 0, 1, 0], "deliveries": [0, 0, 0, 0, 1],
    }  # fmt: skip


def test_without_events_packets_determine_the_colours_of_links(tmp_path: Path) -> None:
    run = random_overlay(underlay(), 1).write(tmp_path / "run")
    rows = [
        {"link": link.name, "direction": way, "packets": 3, "bytes": 200, "event_packets": 0,
         "max_stress": 0}
        for link in underlay().links
        for way in ("ab", "ba")
    ]  # fmt: skip
    write_table(run, "link_loads", rows)
    write_table(run, "stress", [], ("link", "direction", "copies"))
    write_report(run)
    data = data_of(run)
    keys = [measure["key"] for measure in data["links"]["measures"]]
    assert keys == ["packets", "bytes", "overlay_links"]
    assert [figure["file"] for figure in data["cdfs"]] == ["rdp_cdf", "link_packets_cdf"]
    assert data["trees"] == []


def test_a_damaged_table_is_treated_as_missing(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", underlay(), events=3)
    for table in ("stress", "traffic", "overlay_edges", "tree_edges"):
        (run / "analysis" / "tables" / table / "part-00000.parquet").write_bytes(
            b"PAR1 and no more"
        )
    write_report(run)
    data = data_of(run)
    assert data["overlay"] is not None  # from records of agents
    assert data["trees"] == []
    assert data["cdfs"][1]["file"] == "link_packets_cdf"


def test_every_check_is_documented() -> None:
    checks = {name for group in read_groups() if group.of == "checks" for name in group.metrics}
    text = (ROOT / "docs" / "tables.md").read_text().partition("| check | holds if |")[2]
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == checks


def test_parts_of_a_metric_have_different_names_and_units() -> None:
    entries = {"mean": 4.0, "max": 9, "peers_mean": 3.0, "peers_max": 7, "pubsub": {"mean": 1.0}}
    metrics = {"table_entries": entries, "warm_up": {"until_s": 8.8}, "routing_cost": 2.0}
    words = part_words(metrics)
    assert words["table_entries.peers_mean"] == "different peers, mean"
    assert words["table_entries.pubsub.mean"] == words["table_entries.mean"] == "mean"
    assert seconds(metrics) == ["warm_up.until_s"]
    rows = {row["name"]: row["unit"] for group in metric_groups(metrics) for row in group["rows"]}
    assert rows == {"table_entries": "", "warm_up": "events", "routing_cost": "s"}


def test_a_distribution_is_reduced_but_keeps_its_ends() -> None:
    values = np.random.default_rng(1).exponential(size=50_000)
    series = cumulate("some", "values", values)
    assert 100 < len(series.x) <= 601
    assert series.x == sorted(series.x)
    assert series.y == sorted(series.y)
    assert (series.x[0], series.x[-1]) == pytest.approx((values.min(), values.max()))
    assert series.y[-1] == 1.0
    median = series.x[int(np.searchsorted(series.y, 0.5))]
    assert median == pytest.approx(np.median(values), abs=0.02)
    assert cumulate("few", "values", np.array([2.0, 1.0, 2.0])).y == pytest.approx([1 / 3, 1])


def test_the_command_prints_the_path_of_the_report(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(run), "--json"]) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert first == str(run / "analysis" / "report.html")
    assert json.loads(last)["report"] == first


def test_a_folder_without_a_run_is_one_clear_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "expected a run directory" in line
    assert list(tmp_path.iterdir()) == []
