"""Flooding of topics: whole runs with drawn workloads, and a peer's handling of copies."""

from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from agents.announcements import Interests, Publish
from agents.protocol import Announce, Deliver, Neighbours, Record, Send, Surroundings
from agents.pubsub.topic_flood import FloodedEvent, FloodSettings, TopicFlood
from analysis.metrics.file import measure_run
from testbed.run.verdict import judge_metrics
from tests.fixtures.content_runs import run_small
from workloads.number_range import WholeRange
from workloads.topics.interests import draw_interests
from workloads.topics.popularity import Popularity

TOPICS = {
    "kind": "topics-zipf", "topics": 8, "topics_per_peer": [1, 3], "events": 60,
    "rate_per_s": 10.0, "start_s": 12.0,
}  # fmt: skip


def run_topics(folder: Path, **changes: Any) -> tuple[Path, dict[str, Any]]:
    run = run_small(
        folder, routing={}, pubsub={"kind": "topic-flood"}, workload={**TOPICS, **changes}
    )
    return run, measure_run(run)


def test_a_run_with_drawn_topics_is_valid_and_measured(tmp_path: Path) -> None:
    run, metrics = run_topics(tmp_path)
    verdict = judge_metrics(run, metrics)
    assert verdict is not None and verdict.verdict == "valid", verdict
    delivery = metrics["delivery"]
    assert delivery["expected"] == delivery["delivered"] > 60
    assert delivery["duplicates"] == delivery["unasked"] == 0
    assert metrics["routing_overhead"]["total"] > 0
    assert metrics["routing_overhead"]["per_delivery"] > 0
    assert 1 <= metrics["hops"]["mean"] <= metrics["hops"]["max"] <= 5
    assert metrics["warm_up"]["events"] == 0


def test_overhead_is_all_copies_at_peers_that_do_not_subscribe(tmp_path: Path) -> None:
    run, metrics = run_topics(tmp_path)
    records = pq.read_table(run / "agents" / "records.parquet").to_pandas()
    copies = records[records["what"].isin(["event_received", "event_repeated"])]
    tables = {
        name: pq.read_table(run / "workload" / f"{name}.parquet").to_pandas()
        for name in ("interests", "publications")
    }
    topic_of = tables["publications"].set_index("event_id")["content"]
    wanted = set(zip(tables["interests"]["host"], tables["interests"]["content"], strict=True))
    events = copies["values"].str.extract(r'"event_id":\s*(\d+)')[0].astype(int).map(topic_of)
    unwanted = [pair for pair in zip(copies["host"], events, strict=True) if pair not in wanted]
    assert metrics["routing_overhead"]["total"] == len(unwanted)


def test_a_run_has_the_interests_of_an_offline_computation(tmp_path: Path) -> None:
    run, _ = run_topics(tmp_path)
    found = pq.read_table(run / "workload" / "interests.parquet").to_pydict()
    offline = draw_interests(6, 8, WholeRange(1, 3), Popularity("zipf"), seed=3)
    hosts = [f"h{peer + 1}" for peer in offline.peer.tolist()]
    assert (found["host"], found["content"]) == (hosts, offline.topic.tolist())


def test_changed_interests_are_used(tmp_path: Path) -> None:
    run, metrics = run_topics(tmp_path, changes_per_s=2.0)
    records = pq.read_table(run / "agents" / "records.parquet").column("what").to_pylist()
    assert records.count("unsubscribed") == 12
    delivery = metrics["delivery"]
    assert delivery["expected"] == delivery["delivered"] > 0 == delivery["unasked"]


def test_crashed_peers_restart(tmp_path: Path) -> None:
    run, metrics = run_topics(tmp_path, crashes_per_min=5.0, return_after_s=[1, 2])
    assert metrics["delivery"]["unsteady_expected"] > 0
    records = pq.read_table(run / "agents" / "records.parquet").column("what").to_pylist()
    assert records.count("agent_started") > 6


def peer(keep_s: float = 60.0) -> TopicFlood:
    """Peer 1 with neighbours 2, 3 and 4, which subscribes to topic 7."""
    settings = FloodSettings(keep_s=keep_s)
    made = TopicFlood(Surroundings(1, (), Random(1), peers=9, settings=settings))
    (ready,) = made.on_announcement(0, Neighbours({4: 10, 2: 10, 3: 10}))
    assert isinstance(ready, Announce)
    made.on_announcement(0, Interests(frozenset({7})))
    return made


def sent_to(effects: Any) -> list[int]:
    return [effect.to for effect in effects if isinstance(effect, Send)]


def test_a_peer_forwards_once_to_all_but_the_sender() -> None:
    flood, event = peer(), FloodedEvent(5, 1, 7, b"")
    first = list(flood.on_message(10, 3, event))
    assert sent_to(first) == [2, 4]
    assert [effect for effect in first if isinstance(effect, Deliver)] == [Deliver(5, 3, 2)]
    (again,) = flood.on_message(20, 2, event)
    assert isinstance(again, Record) and again.what == "event_repeated"


def test_an_event_without_a_local_subscription_is_forwarded_and_not_delivered() -> None:
    effects = list(peer().on_message(10, 3, FloodedEvent(5, 1, 8, b"")))
    assert sent_to(effects) == [2, 4]
    assert not any(isinstance(effect, Deliver) for effect in effects)


def test_the_publisher_recognises_its_own_event() -> None:
    flood = peer()
    assert sent_to(flood.on_announcement(0, Publish(0, 7))) == [2, 3, 4]
    (again,) = flood.on_message(10, 2, FloodedEvent(0, 1, 7, b""))
    assert isinstance(again, Record) and again.what == "event_repeated"


@pytest.mark.parametrize(("at_us", "is_known"), [(999_999, True), (2_000_002, False)])
def test_events_are_remembered_for_a_while(at_us: int, is_known: bool) -> None:
    flood, event = peer(keep_s=1.0), FloodedEvent(0, 1, 8, b"")
    flood.on_message(1, 2, event)
    flood.on_message(at_us, 2, FloodedEvent(6, 1, 8, b""))
    assert (sent_to(flood.on_message(at_us + 1, 2, event)) == []) == is_known


def test_hop_counts_do_not_exceed_the_header_field() -> None:
    effects = peer().on_message(1, 2, FloodedEvent(5, 255, 7, b""))
    assert {e.message.hop_count for e in effects if isinstance(e, Send)} == {255}
