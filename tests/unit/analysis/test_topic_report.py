"""Topics in a report, compared with a run whose messages are all known."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from analysis.metrics.file import measure_run
from analysis.report.reported_run import ReportedRun
from analysis.report.topics import topic_section
from tests.fixtures.scribe_run import (
    ScribeRun,
    make_scribe_run,
    write_scribe_run,
    write_topic_tables,
)


@pytest.fixture
def run() -> ScribeRun:
    return make_scribe_run(2)


@pytest.fixture
def path(run: ScribeRun, tmp_path: Path) -> Path:
    found = write_scribe_run(run, tmp_path / "run")
    measure_run(found)
    write_topic_tables(run, found)
    return found


def test_topics_have_the_costs_of_their_messages(run: ScribeRun, path: Path) -> None:
    found = topic_section(ReportedRun(path), run.recorder.underlay)
    assert found is not None
    rows = found["rows"]
    sizes = Counter(topic for topics in run.topics.values() for topic in topics)
    topic_of = {event: topic for event, _, topic in run.published}
    overhead = Counter(topic for _, topic, *_ in run.unwanted())
    assert set(rows["topic"]) == set(topic_of.values())
    assert rows["subscribers"] == sorted(rows["subscribers"], reverse=True)
    for at, topic in enumerate(rows["topic"]):
        hops = [hops for event, _, hops in run.delivered if topic_of[event] == topic]
        assert rows["subscribers"][at] == sizes[topic]
        assert rows["events"][at] == list(topic_of.values()).count(topic)
        assert (rows["deliveries"][at], rows["overhead"][at]) == (len(hops), overhead[topic])
        assert rows["path_length"][at] == pytest.approx(sum(hops) / len(hops))
        assert rows["overhead_per_delivery"][at] == pytest.approx(overhead[topic] / len(hops))
        assert rows["rdp"][at] > 0


def test_a_topic_is_drawn_with_all_participating_hosts(run: ScribeRun, path: Path) -> None:
    underlay = run.recorder.underlay
    found = topic_section(ReportedRun(path), underlay)
    assert found is not None
    names = list(underlay.node_names)
    publisher = {event: host for event, host, _ in run.published}
    for topic, drawn in found["drawn"].items():
        messages = [m for m in run.messages if m[1] == int(topic)]
        wants = {name for name, topics in run.topics.items() if int(topic) in topics}
        assert {names[n] for n in drawn["subscribers"]} == wants
        relayed = Counter(
            sender
            for event, _, sender, _, _ in messages
            if sender not in wants and publisher[event] != sender
        )
        relays = [names[node] for node in drawn["relays"]]
        assert dict(zip(relays, drawn["relayed"], strict=True)) == relayed
        steps = Counter(
            step
            for _, _, sender, host, _ in messages
            for step in pairwise(run.recorder.routes.path(sender, host))
        )
        counts = zip(drawn["links"], drawn["ab"], drawn["ba"], strict=True)
        ways = {}
        for number, ab, ba in counts:
            link = underlay.links[number]
            ways |= {(link.a, link.b): ab, (link.b, link.a): ba}
        assert {way: count for way, count in ways.items() if count} == steps


def test_hosts_have_their_forwarding_load(run: ScribeRun, path: Path) -> None:
    found = topic_section(ReportedRun(path), run.recorder.underlay)
    assert found is not None
    hosts = found["hosts"]
    forwarded = Counter(sender for _, _, sender, _, _ in run.messages)
    unwanted = Counter(host for *_, host, _ in run.unwanted())
    assert hosts["host"] == run.recorder.names
    assert hosts["forwarded"] == [forwarded[host] for host in run.recorder.names]
    assert hosts["unwanted"] == [unwanted[host] for host in run.recorder.names]
    assert sum(hosts["received"]) == len(run.messages) - len(run.unwanted())
    assert hosts["topics"] == [len(run.topics[host]) for host in run.recorder.names]


def test_a_run_without_tables_has_no_topics(run: ScribeRun, tmp_path: Path) -> None:
    path = write_scribe_run(run, tmp_path / "bare")
    assert topic_section(ReportedRun(path), run.recorder.underlay) is None
