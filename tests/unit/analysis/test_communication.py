"""The cost of subscriptions and events, and messages by layer and role, computed by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from analysis.metrics.communication import METRICS, subscription_cost
from analysis.metrics.evidence import Evidence
from analysis.run_directory import open_run
from tests.fixtures.event_frames import evidence_of
from tests.fixtures.overlay_runs import Recorder
from topologies.underlay import Channel, Host, Link, Router, Underlay

KINDS = [
    {"number": 1, "name": "Acknowledgement", "layer": "agent", "role": "upkeep"},
    {"number": 42, "name": "Walk", "layer": "overlay", "role": "control"},
    {"number": 80, "name": "TreeHello", "layer": "routing", "role": "upkeep"},
    {"number": 85, "name": "CoreList", "layer": "routing", "role": "control"},
    {"number": 120, "name": "SubscriptionUpdate", "layer": "pubsub", "role": "control"},
    {"number": 122, "name": "Event", "layer": "pubsub", "role": "event"},
]
COUNTS = {
    "a": {"sent_Acknowledgement": 1000, "sent_Walk": 500, "sent_TreeHello": 50, "sent_CoreList": 7,
          "sent_SubscriptionUpdate": 3, "sent_Event": 1},
    "b": {"sent_TreeHello": 60, "sent_SubscriptionUpdate": 5, "sent_Event": 1},
    "c": {"sent_SubscriptionUpdate": 2},
}  # fmt: skip
# Both go to c; b only forwards.
RECEPTIONS: list[dict[str, Any]] = [
    {"event_id": event, "host": host, "is_match": host == "c", "published_us": 0}
    for event in (1, 2)
    for host in ("b", "c")
]
DELIVERIES: list[dict[str, Any]] = [
    {"event_id": event, "host": "c", "publisher": "a", "path_us": 60, "copy": 1} for event in (1, 2)
]


@pytest.fixture
def recorder() -> Recorder:
    """Hosts a, b and c in a row: 20 us from a to b and 30 back, 40 us from b to c and back."""
    links = (
        Link("ra", "rb", Channel(18), Channel(28)),
        Link.symmetric("rb", "rc", 38),
        *(Link.symmetric(host, f"r{host}", 1) for host in "abc"),
    )
    routers = tuple(Router(f"r{host}") for host in "abc")
    recorder = Recorder(Underlay(routers, links, tuple(Host(host) for host in "abc")))
    recorder.start()
    for host, counts in COUNTS.items():
        recorder.end([host], sent=sum(counts.values()), **counts)
    return recorder


def evidence_in(recorder: Recorder, path: Path) -> Evidence:
    (recorder.write(path) / "run.json").write_text(json.dumps({"format": 2, "messages": KINDS}))
    events = [{"event_id": event, "publisher": "a"} for event in (1, 2)]
    return evidence_of(open_run(path), events=events, receptions=RECEPTIONS, deliveries=DELIVERIES)


def link(recorder: Recorder, host: str, peer: str, version: int = 1) -> None:
    recorder.record(host, "tree_link_added", 5, version=version, peer=recorder.address(peer))


def measured(evidence: Evidence) -> dict[str, Any]:
    return {metric.name: metric.evaluate(evidence)[0] for metric in METRICS}


def test_messages_count_by_layer_and_subscriptions_by_delay(
    recorder: Recorder, tmp_path: Path
) -> None:
    for host, peer in (("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")):
        link(recorder, host, peer)
    evidence = evidence_in(recorder, tmp_path / "run")
    # 3 messages of a over 20 us, 5 of b over 30 or 40, and 2 of c over 40.
    subscriptions_us = 3 * 20 + 5 * (30 + 40) / 2 + 2 * 40
    assert subscription_cost(evidence) == pytest.approx(subscriptions_us / 1e6)
    cost_us = {"events": 120, "subscriptions": subscriptions_us, "total": 120 + subscriptions_us}
    assert measured(evidence) == {
        "control_efficiency_without_discovery": (50 + 60 + 7 + 10 + 2) / 2,
        "communication_messages": (10 + 2) / 2,
        "communication_cost": pytest.approx({name: us / 1e6 for name, us in cost_us.items()}),
        "communication_cost_per_delivery": pytest.approx(
            {name: us / 2e6 for name, us in cost_us.items()}
        ),
    }


def test_every_version_of_a_tree_has_equal_weight(recorder: Recorder, tmp_path: Path) -> None:
    for host, peer, version in (("a", "b", 1), ("a", "c", 2), ("b", "c", 1)):
        link(recorder, host, peer, version)
    # c recorded no link and takes the mean of a's 39 and b's 40 us.
    expected_us = 3 * (20 + 58) / 2 + 5 * 40 + 2 * (39 + 40) / 2
    evidence = evidence_in(recorder, tmp_path / "run")
    assert subscription_cost(evidence) == pytest.approx(expected_us / 1e6)


def test_without_a_tree_messages_have_no_cost(recorder: Recorder, tmp_path: Path) -> None:
    found = measured(evidence_in(recorder, tmp_path / "run"))
    assert found["communication_cost"] is found["communication_cost_per_delivery"] is None
    assert found["communication_messages"] == 6
