"""NSMF and BeaConvey's rules on rings: offline computation's messages, exactly-once delivery."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, get_args

import numpy as np
import pytest
from msgspec.structs import replace as replace_struct

from agents.announcements import EpochBegun, EpochEnded, Place, Publish, RingView
from agents.overlays.small_world.overlay import SmallWorldOverlay
from agents.protocol import PeerId, Protocol, Send, Surroundings
from agents.pubsub.nsmf.division import Rule
from agents.pubsub.nsmf.forwarder import BeaConvey, Nsmf
from agents.pubsub.nsmf.messages import Lapsed
from agents.pubsub.nsmf.tables import Tables
from analysis.metrics.file import measure_run
from testbed.run.verdict import judge_metrics
from tests.fixtures.content_runs import run_small
from tests.fixtures.oracle_ring import MODULUS, Reader, TopicCrowd, position_of
from tests.fixtures.rings import Rings, links_between_halves, underlay_of
from topologies.overlays.nsmf import walk_ranges
from topologies.overlays.small_world import plan_fingers
from workloads.share import NEVER_US, OwnInterest, Share

REPAIRED_S = 15.0


def tables_of(peers: TopicCrowd, number: int) -> Tables:
    current = peers.pubsubs[number]._current
    assert isinstance(current, Tables)
    return current


def wrong_tables(peers: TopicCrowd, topics: int) -> list[str]:
    """Wrong entries in peers' tables of nearest subscribers and fingers."""
    tables = {number: tables_of(peers, number) for number in peers.agents}
    return list(wrong(tables, {number: peers.topics[number] for number in tables}, topics))


def wrong(
    tables: Mapping[int, Tables], wanted: Mapping[int, frozenset[int]], topics: int
) -> Iterator[str]:
    """Differences from the tables that running peers should have."""
    position = {number: one.view.position for number, one in tables.items()}
    for number, own in tables.items():
        after = {other: own.distance(position[number], position[other]) for other in position}
        for topic in range(topics):
            ways = [after[n] for n in position if topic in wanted[n] and n != number]
            if not own.is_settled or own.nearest(topic) != min(ways, default=None):
                yield f"nearest of {topic} at {number}: {own.nearest(topic)}"
            if own.matched(topic) != [way for way in own.fingers if way in ways]:
                yield f"matched of {topic} at {number}: {own.matched(topic)}"


def table_rows(peers: TopicCrowd) -> Iterator[tuple[int, int, int]]:
    """Each topic with its nearest subscriber and the fingers that subscribe, for each peer."""
    place = {number: position_of(peers.address[number]) for number in peers.agents}
    fingers = {(a, b) for a, b in peers.overlay().edges.tolist()}
    for number in peers.agents:
        others = sorted(place.keys() - {number}, key=lambda n: (place[n] - place[number]) % MODULUS)
        for topic in {topic for topics in peers.topics.values() for topic in topics}:
            wanting = [other for other in others if topic in peers.topics[other]]
            yield from ((topic, number, other) for other in wanting[:1])
            yield from ((topic, number, n) for n in wanting if (number, n) in fingers)


def test_a_new_peer_with_a_wrong_successor_leaves_all_tables_correct() -> None:
    peers = crowd(8).run(9).kill(3).run(6)
    assert wrong_tables(peers, 5) == []
    before = {n: [tables_of(peers, n).nearest(topic) for topic in range(5)] for n in peers.agents}
    view = tables_of(peers.start(3), 3).view
    assert view.predecessor is not None
    peers.tell(3, replace(view, successors=(view.predecessor,), fingers=(view.predecessor,)))
    peers.run(0.5)
    del before[peers.address.index(view.predecessor.peer)]  # The new peer is its successor.
    for n, nearest in before.items():
        assert [tables_of(peers, n).nearest(topic) for topic in range(5)] == nearest
    peers.tell(3, view)
    assert wrong_tables(peers.run(4), 5) == []


def wanted_by(number: int) -> frozenset[int]:
    """Two of five topics."""
    return frozenset(Random(number).sample(range(5), 2))


class NsmfRings(Rings):
    """Peers with NSMF on an overlay of rings; each has two topics of five."""

    def __init__(self, peers: int, seed: int, **settings: Any) -> None:
        self.pubsubs: dict[PeerId, Nsmf] = {}
        self.topics: dict[PeerId, frozenset[int]] = {}
        super().__init__(peers, seed, **settings)

    def above(self, given: Surroundings) -> list[Protocol]:
        """NSMF and the application."""
        topics = wanted_by(given.number)
        self.topics[given.me] = topics
        self.pubsubs[given.me] = Nsmf(replace(given, settings=Nsmf.Settings()))
        return [self.pubsubs[given.me], Reader(replace(given, settings=Reader.Settings(topics)))]

    def wrong(self) -> Iterator[str]:
        """Differences from the tables of rings and of NSMF that peers should have."""
        yield from super().wrong()
        tables = {peer: self.pubsubs[peer]._current for peer in self.alive}
        yield from wrong({p: one for p, one in tables.items() if one is not None}, self.topics, 5)


def crowd(
    peers: int, seed: int = 1, topics: int = 5, each: int = 2, rule: Rule = "po", loss: float = 0.0
) -> TopicCrowd:
    """Peers that are up and have subscribed."""
    made = TopicCrowd(BeaConvey, peers, seed, loss, rule=rule)
    chance = Random(seed)
    for number in range(peers):
        made.subscribe(number, *chance.sample(range(topics), each))
    return made.start(*range(peers))


@pytest.mark.parametrize("rule", get_args(Rule))
@pytest.mark.parametrize("seed", [1, 2])
def test_events_take_the_messages_of_the_offline_computation(rule: Rule, seed: int) -> None:
    peers, chance = crowd(24, seed, topics=9, each=2, rule=rule).run(9), Random(rule)
    assert len(peers.recorded("ready")) == 24 and wrong_tables(peers, 9) == []
    assert peers.counted() == peers.count_entries(table_rows(peers))
    published = [(chance.randrange(24), chance.randrange(9)) for _ in range(100)]
    for publisher, topic in published:
        peers.publish(publisher, topic)
        peers.run(0.2)
    offline = walk_ranges(peers.run(2).overlay(), np.array(published), rule).total()
    assert peers.counts() == offline
    assert offline.missed == 0 and offline.hops > offline.deliveries > 0
    assert all(pubsub._custody.is_empty for pubsub in peers.pubsubs.values())
    assert len(peers.recorded("event_done")) == 100
    assert peers.sent("Lapsed") + peers.sent("Inquiry") == 0


def test_large_tables_and_interests_are_sent_in_pieces() -> None:
    peers = crowd(4, topics=2_000, each=700).run(9)
    assert wrong_tables(peers, 2_000) == []
    # Each of the four tables has nearly all topics, 80 in a piece.
    assert peers.sent("TablePiece") > 4 * 1_600 // 80
    peers.subscribe(0, *range(500, 1_900))
    assert wrong_tables(peers.run(3), 2_000) == []


def test_tables_follow_interests_that_change_while_events_flow() -> None:
    peers, chance = crowd(16), Random(3)
    peers.run(9)
    steady = [number for number in range(16) if number % 2]
    for _ in range(40):
        mover = 2 * chance.randrange(8)
        peers.subscribe(mover, *chance.sample(range(5), chance.randrange(4)))
        peers.publish(chance.choice(steady), chance.randrange(5))
        peers.run(chance.random() / 3)
    assert peers.run(4).faults(steady) == [] and wrong_tables(peers, 5) == []


def test_after_its_last_subscriber_a_topic_leaves_all_tables() -> None:
    peers = TopicCrowd(Nsmf, 12)
    peers.subscribe(3, 7)
    peers.subscribe(8, 7, 9)
    peers.start(*range(12)).run(9).kill(8)
    assert wrong_tables(peers.run(8), 10) == []
    assert [tables_of(peers, n).nearest(9) for n in peers.agents] == [None] * 11
    assert peers.delivered(peers.publish(0, 7)) == []
    assert peers.run(1).delivered(1) == [3]


def test_reports_to_the_peer_that_is_read_are_repeated_if_lost() -> None:
    """The peer that is read stops to send changes when it hears nothing for some time."""
    successor = Place(7, 700)
    view = RingView(100, MODULUS, successor, (successor,), (successor,), 0, 1)
    tables = Tables(0, 1, view, frozenset())
    (follow,) = (one for one in tables.start(0) if isinstance(one, Send))
    (report,) = (one for one in tables.on_timer(6_000_000, "tick") if isinstance(one, Send))
    unknown = replace_struct(follow.message, pieces=3)
    (lapsed,) = tables.on_message(6_000_000, 9, unknown)
    assert isinstance(lapsed, Send) and isinstance(lapsed.message, Lapsed)
    assert follow.reliable and report.reliable and lapsed.reliable


def test_events_survive_crashes_of_a_third_of_the_peers_at_once() -> None:
    peers = crowd(30, seed=4).run(10)
    victims = Random(4).sample(range(30), 10)
    stay = [number for number in range(30) if number not in victims]
    before = [peers.publish(number, number % 5) for number in stay]
    peers.run(0.02).kill(*victims)
    assert wrong_tables(peers.run(10), 5) == []
    after = [peers.publish(number, number % 5) for number in stay]
    assert peers.run(20).faults(stay, [*before, *after]) == []


def test_a_peer_that_its_predecessor_does_not_know_yet_drops_no_event() -> None:
    peers = crowd(8).run(9)
    view = tables_of(peers, 3).view
    peers.tell(3, replace(view, predecessor=view.successors[0]))  # like a peer that has just joined
    for topic in range(5):
        peers.publish(3, topic)
    assert len(peers.run(0.3).recorded("event_done")) < 5
    peers.tell(3, view)
    assert peers.run(2).faults(range(8)) == []
    assert len(peers.recorded("event_done")) == 5


@pytest.mark.parametrize("peers", [24, pytest.param(64, marks=pytest.mark.slow)])
def test_after_crashes_of_a_third_one_ring_and_true_tables_remain(peers: int) -> None:
    rings = NsmfRings(peers, 1, fingers="random").run(1_000_000)
    rings.settle(REPAIRED_S)
    rings.kill(Random(1).sample(rings.addresses, peers // 3))
    rings.settle(REPAIRED_S)
    assert len(rings.alive) == peers - peers // 3


def small_world(peers: int, seed: int, fingers: str) -> NsmfRings:
    """Peers on a small-world overlay with true tables."""
    wanted = [sorted(wanted_by(number)) for number in range(peers)]
    shares = [Share(tuple(OwnInterest(0, t, 0, NEVER_US) for t in own)) for own in wanted]
    plans = dict(enumerate(plan_fingers(wanted, "greedy", "floor", seed)))
    rings = NsmfRings(
        peers, seed, kind=SmallWorldOverlay, fingers=fingers, shares=shares, learn_s=5.0,
        plans=plans if fingers == "greedy" else None,
    )  # fmt: skip
    rings.run(8_000_000).settle(REPAIRED_S)
    return rings


@pytest.mark.parametrize("fingers", ["greedy", "learned"])
@pytest.mark.parametrize("peers", [24, pytest.param(64, marks=pytest.mark.slow)])
def test_small_worlds_have_true_tables_again_after_failures_and_a_partition(
    peers: int, fingers: str
) -> None:
    rings = small_world(peers, 2, fingers)
    rings.kill(Random(2).sample(rings.addresses, peers // 3))
    rings.settle(REPAIRED_S)
    for a, b in (cut := links_between_halves(underlay_of(peers))):
        rings.simulator.set_link(rings.simulator.now_us, a, b, False)
    rings.run_for(20)
    assert len(list(rings.wrong())) > peers // 2
    for a, b in cut:
        rings.simulator.set_link(rings.simulator.now_us, a, b, True)
    rings.settle(REPAIRED_S)
    assert len(rings.alive) == peers - peers // 3


@pytest.mark.parametrize(("rule", "seed"), [("po", 1), ("pie", 2), ("pal", 3)])
def test_peers_that_stay_get_every_event_once_under_churn(rule: Rule, seed: int) -> None:
    chance, peers = Random(seed), crowd(16, seed, topics=3, rule=rule, loss=5.0)
    stay = chance.sample(range(16), 8)
    movers = [number for number in range(16) if number not in stay]
    peers.run(9)
    for _ in range(30):
        mover = chance.choice(movers)
        if mover in peers.agents:
            chance.choice([peers.kill, peers.leave])(mover)
        else:
            peers.start(mover)
        for _ in range(2):
            peers.publish(chance.choice(stay), chance.randrange(3))
            peers.run(chance.random())
    assert peers.run(30).faults(stay) == []
    assert wrong_tables(peers, 3) == []


def planned_view(peers: TopicCrowd, ranks: list[int], number: int, epoch: int) -> RingView:
    """The view of a peer on a full ring of ranks with Chord's fingers."""
    count = len(ranks)

    def place(steps: int) -> Place:
        rank = (ranks[number] + steps) % count
        return Place(peers.address[ranks.index(rank)], rank << 40)

    fingers = tuple(place(1 << phase) for phase in range(count.bit_length() - 1))
    after = tuple(place(steps) for steps in (1, 2, 3))
    return RingView(ranks[number] << 40, count << 40, place(-1), after, fingers, epoch, 1 << 40)


def test_a_new_epoch_while_events_flow_loses_and_repeats_nothing() -> None:
    peers, chance, everybody = crowd(16, rule="pal"), Random(5), list(range(16))
    peers.run(9)
    ranks = chance.sample(everybody, 16)

    def tell_all(content: Callable[[int], Any]) -> None:
        for number in chance.sample(everybody, 16):
            peers.tell(number, content(number))
            peers.publish(chance.choice(everybody), chance.randrange(5))
            peers.run(chance.random() / 50)

    tell_all(lambda number: planned_view(peers, ranks, number, 1))
    peers.run(9)
    assert peers.recorded("EpochPrepared").count((3, {"epoch": 1})) == 1
    assert {number for number, values in peers.recorded("EpochPrepared")} == {*everybody}
    tell_all(lambda _: EpochBegun(1))
    peers.run(3)
    assert sorted(n for n, _ in peers.recorded("EpochDrained")) == everybody
    tell_all(lambda _: EpochEnded(0))
    tell_all(lambda _: None)
    assert peers.run(3).faults(everybody) == []
    assert {tables_of(peers, n).epoch for n in everybody} == {1}
    assert wrong_tables(peers, 5) == []


def test_events_published_before_the_ring_exists_are_sent_later() -> None:
    pubsub = Nsmf(Surroundings(1, (), Random(1), Nsmf.Settings()))
    assert list(pubsub.on_announcement(1, Publish(7, 3, b""))) == []
    view = RingView(0, 2 << 40, Place(2, 1 << 40), (Place(2, 1 << 40),), (), 4, 1 << 40)
    pubsub.on_announcement(2, replace(view, epoch=3))
    pubsub.on_announcement(2, EpochEnded(3))  # The epoch was given up before it began.
    pubsub.on_announcement(2, view)
    assert not list(pubsub._custody.open_messages())
    pubsub.on_announcement(3, EpochBegun(4))
    held = list(pubsub._custody.open_messages())
    assert [(event.event_id, event.topic, event.epoch) for event in held] == [(7, 3, 4)]
    assert pubsub._early == []


def run_on_ring(folder: Path, **changes: Any) -> tuple[Path, dict[str, Any]]:
    workload = {
        "kind": "topics-zipf", "topics": 12, "topics_per_peer": [1, 4], "events": 60,
        "rate_per_s": 10.0, "start_s": 15.0,
    }  # fmt: skip
    document = {
        "duration_s": 24.0, "topology": {"kind": "waxman", "routers": 12, "hosts": 20},
        "overlay": {"kind": "ring", "fingers": "random"}, "routing": None, "workload": workload,
        "pubsub": {"kind": "nsmf"},
    }  # fmt: skip
    run = run_small(folder, **{**document, **changes})
    return run, measure_run(run)


@pytest.mark.parametrize("pubsub", [{"kind": "nsmf"}, {"kind": "beaconvey", "rule": "pal"}])
def test_a_run_on_a_ring_agrees_with_the_offline_computation_over_its_overlay(
    pubsub: dict[str, Any], tmp_path: Path
) -> None:
    run, metrics = run_on_ring(tmp_path, pubsub=pubsub)
    verdict = judge_metrics(run, metrics)
    assert verdict is not None and verdict.verdict == "valid", verdict
    checked = metrics["checks"]["offline_walk_agrees"]
    assert checked["expected"] == checked["found"] > 100 and checked["ok"] is True
    assert metrics["guarantee"]["missing"] == metrics["guarantee"]["repeated"] == 0
