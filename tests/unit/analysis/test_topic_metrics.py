"""Metrics of topic-based runs, compared with a run whose messages are all known."""

from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import pearsonr

from analysis.metrics.evidence import Evidence
from analysis.metrics.file import measure_run
from analysis.metrics.topics import correlate
from analysis.run_directory import open_run
from tests.fixtures.scribe_run import HOSTS, READY_US, make_scribe_run, write_scribe_run
from topologies.overlays.overlay_file import load_overlay
from topologies.overlays.scribe import Scribe
from topologies.overlays.text_files import load_publications

SEEDS = (1, 2, 3)


@pytest.mark.parametrize("seed", SEEDS)
def test_metrics_follow_from_the_messages(seed: int, tmp_path: Path) -> None:
    run = make_scribe_run(seed)
    found = measure_run(write_scribe_run(run, tmp_path / "run"))
    assert found["event_messages"]["total"] == len(run.messages)
    assert found["event_messages"]["per_delivery"] == len(run.messages) / len(run.delivered)
    assert found["routing_overhead"]["total"] == len(run.unwanted())
    lengths = Counter(str(hops) for _, _, hops in run.delivered)
    assert found["hops"]["distribution"] == dict(lengths)
    assert found["hops"]["mean"] == pytest.approx(np.mean([hops for *_, hops in run.delivered]))
    publisher = {event: host for event, host, _ in run.published}
    relays = {
        (sender, topic)
        for event, topic, sender, _, _ in run.messages
        if topic not in run.topics[sender] and publisher[event] != sender
    }
    topics = {topic for _, _, topic in run.published}
    assert found["relays"]["hosts"] == len({host for host, _ in relays})
    assert found["relays"]["per_topic"] == pytest.approx(len(relays) / len(topics))
    assert found["messages_by_role"] is None  # The agents counted no kind.


@pytest.mark.parametrize("seed", SEEDS)
def test_forwarding_is_compared_with_sending_and_receiving(seed: int, tmp_path: Path) -> None:
    run = make_scribe_run(seed)
    found = measure_run(write_scribe_run(run, tmp_path / "run"))["forwarding_correlation"]
    forwarded = Counter(sender for _, _, sender, _, _ in run.messages)
    received = Counter(h for _, topic, _, h, _ in run.messages if topic in run.topics[h])
    names = run.recorder.names  # All subscribe.
    oracle = pearsonr([received[n] for n in names], [forwarded[n] for n in names])
    low, high = oracle.confidence_interval(0.99)
    expected = {"r": oracle.statistic, "low": low, "high": high, "hosts": HOSTS}
    assert found["receiving"] == pytest.approx(expected)
    published = Counter(host for _, host, _ in run.published)
    publishers = sorted(published)
    sent = pearsonr([published[n] for n in publishers], [forwarded[n] for n in publishers])
    assert found["sending"]["r"] == pytest.approx(sent.statistic)
    assert found["sending"]["hosts"] == len(publishers)


@pytest.mark.parametrize("seed", SEEDS)
def test_paths_are_those_of_the_copies_that_were_delivered(seed: int, tmp_path: Path) -> None:
    run = make_scribe_run(seed)
    evidence = Evidence(open_run(write_scribe_run(run, tmp_path / "run")))
    others = evidence.to_others[evidence.to_others["hops"] > 0]
    found = {(row.event_id, row.host): row.path for row in others.itertuples()}
    assert found == {key: way for key, way in run.ways.items() if len(way) > 1}
    first = evidence.measured.receptions.set_index(["event_id", "host"])["hops"]
    later = sum(first[key] < len(way) - 1 for key, way in found.items())
    assert later > 0  # delivered on the way down, after a copy on the way up
    delays = {
        key: sum(run.recorder.routes.path_delay_us(a, b) for a, b in pairwise(way))
        for key, way in found.items()
    }
    assert {(r.event_id, r.host): r.path_us for r in others.itertuples()} == delays


def test_a_constant_has_no_correlation() -> None:
    same, other = pd.Series([2, 2, 2, 2]), pd.Series([1, 2, 3, 4])
    nothing = {"r": None, "low": None, "high": None, "hosts": 4}
    assert correlate(same, other) == correlate(other, same) == nothing
    assert correlate(other[:3], other[:3])["r"] == pytest.approx(1)
    assert correlate(other[:3], -other[:3])["low"] is None  # too few for an interval


@pytest.mark.parametrize("seed", SEEDS)
def test_tdo_overlay_can_route_over_the_overlay_of_a_run(seed: int, tmp_path: Path) -> None:
    run = make_scribe_run(seed)
    path = write_scribe_run(run, tmp_path / "run")
    found = measure_run(path)
    overlay = load_overlay(path / "analysis" / "overlay.json")
    names = run.recorder.names
    assert overlay.names == names and overlay.directed and overlay.kind == "ring"
    assert overlay.position is not None
    assert overlay.position.tolist() == [run.position[name] for name in names]
    edges = {(names.index(h), names.index(f)) for h in names for f in run.fingers[h]}
    assert {(a, b) for a, b in overlay.edges.tolist()} == edges
    publications = load_publications(
        path / "analysis" / "publications.txt", overlay.nodes, overlay.topics
    )
    counts = Scribe.disseminate(overlay, publications, Scribe.Settings())
    assert found["offline_walk"] == counts.to_dict()
    assert counts.messages == len(run.messages)
    assert counts.deliveries == len(run.delivered)
    check = found["checks"]["offline_walk_agrees"]
    assert check == {"ok": True, "expected": len(run.messages), "found": len(run.messages)}
    assert found["tables"] == {
        "at_s": READY_US / 1e6, "all_ready": True, "nodes": HOSTS, "edges": len(edges)
    }  # fmt: skip


def test_a_run_with_other_messages_fails_the_check(tmp_path: Path) -> None:
    run = make_scribe_run()
    found = measure_run(write_scribe_run(run, tmp_path / "run", lost=1))
    check = found["checks"]["offline_walk_agrees"]
    assert not check["ok"] and check["found"] == check["expected"] - 1
    assert "offline_walk_agrees: expected" in found["notes"]["checks"]


@pytest.mark.parametrize(
    ("what", "values", "why"),
    [
        ("neighbour_removed", {"reason": "lost"}, "agents changed their tables after all were"),
        ("unsubscribed", {"interest": 0}, "subscriptions changed after all agents were ready"),
        ("agent_left", {}, "agents ended or faults happened"),
    ],
)
def test_a_run_with_changes_is_not_compared(
    what: str, values: dict[str, object], why: str, tmp_path: Path
) -> None:
    run = make_scribe_run()
    host = run.recorder.names[0]
    if what == "neighbour_removed":
        values = {**values, "peer": run.recorder.address(run.fingers[host][0])}
    run.recorder.record(host, what, READY_US + 500_000, **values)
    found = measure_run(write_scribe_run(run, tmp_path / "run"))
    assert found["offline_walk"] is None and found["notes"]["offline_walk"].startswith(why)
    assert "offline_walk_agrees" not in found["checks"]


def test_links_of_a_directed_overlay_belong_to_their_owners(tmp_path: Path) -> None:
    run = make_scribe_run()
    found = measure_run(write_scribe_run(run, tmp_path / "run"))
    links = {(host, finger) for host in run.fingers for finger in run.fingers[host]}
    assert found["overlay_links"] == len(links)
    assert found["degree"]["mean"] == len(links) / HOSTS
    assert found["one_sided_links"] is None
    entries = found["table_entries"]
    assert entries["mean"] == entries["by_role"]["finger"] + entries["by_role"]["successor"] == 2
    assert entries["peers_mean"] == len(links) / HOSTS


def test_connected_subscribers_equal_a_search(tmp_path: Path) -> None:
    run = make_scribe_run(2)
    found = measure_run(write_scribe_run(run, tmp_path / "run"))
    ends = {frozenset((host, f)) for host in run.fingers for f in run.fingers[host]}
    wanted = defaultdict(set)
    for host, topics in run.topics.items():
        for topic in topics:
            wanted[topic].add(host)
    pieces = {topic: _pieces(hosts, ends) for topic, hosts in wanted.items()}
    alone = sum(map(len, wanted.values()))
    support = (alone - sum(pieces.values())) / (alone - len(wanted))
    assert found["tco_support"] == pytest.approx(support)
    connected = sum(count == 1 for count in pieces.values()) / len(wanted)
    assert found["topic_connected"] == pytest.approx(connected)


def _pieces(hosts: set[str], ends: set[frozenset[str]]) -> int:
    left, count = set(hosts), 0
    while left:
        count += 1
        reached = {left.pop()}
        while grown := {h for h in left for g in reached if frozenset((h, g)) in ends}:
            reached |= grown
            left -= grown
    return count
