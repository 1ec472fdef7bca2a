"""Scribe and iScribe on a ring: trees, their repair, and exactly-once delivery under failures."""

from itertools import pairwise
from random import Random
from typing import Literal

import numpy as np
import pytest

from agents.pubsub.scribe.inverse_scribe import InverseScribe
from agents.pubsub.scribe.scribe import Scribe
from tests.fixtures.oracle_ring import TopicCrowd, position_of
from topologies.overlays.scribe import InverseScribe as OfflineInverseScribe
from topologies.overlays.scribe import Scribe as OfflineScribe
from topologies.overlays.scribe import ScribeSettings
from topologies.overlays.topic_keys import topic_key

KINDS: dict[type[Scribe], type[OfflineScribe]] = {
    Scribe: OfflineScribe, InverseScribe: OfflineInverseScribe,
}  # fmt: skip


def crowd(peers: int, subscribers: list[int], topic: int = 5, **settings: object) -> TopicCrowd:
    """Peers that are up, some of which subscribe to a topic."""
    made = TopicCrowd(Scribe, peers, **settings)  # type: ignore[arg-type]
    for number in subscribers:
        made.subscribe(number, topic)
    return made.start(*range(peers)).run(6)


def test_every_subscriber_gets_an_event_once_and_no_other_peer_does() -> None:
    peers = crowd(12, [1, 3, 4, 8, 11])
    event = peers.publish(0, 5)
    own = peers.publish(3, 5)
    peers.run(1)
    assert peers.delivered(event) == [1, 3, 4, 8, 11]
    assert peers.delivered(own) == [1, 4, 8, 11]
    assert {values["event_id"] for _, values in peers.recorded("event_done")} == {event, own}
    assert len(peers.recorded("ready")) == 12
    assert peers.sent("Leave") + peers.sent("Confirm") + peers.sent("Inquiry") == 0


def tree_links(peers: TopicCrowd, kind: type[Scribe]) -> set[tuple[int, int, int]]:
    """The links of all trees, as rows (topic, upper peer, lower peer)."""
    links = set()
    for number, topics in peers.topics.items():
        for topic in topics:
            way = peers.route(number, topic_key(topic))[::-1]
            if kind is InverseScribe:
                way = peers.route(way[0], position_of(peers.address[number]))
            links |= {(topic, upper, lower) for upper, lower in pairwise(way)}
    return links


@pytest.mark.parametrize("root", ["routed", "cached"])
@pytest.mark.parametrize("kind", KINDS)
def test_events_take_the_messages_of_the_offline_computation(
    kind: type[Scribe], root: Literal["routed", "cached"]
) -> None:
    chance, peers = Random(root), TopicCrowd(kind, 24, root=root)
    for number in range(24):
        peers.subscribe(number, *chance.sample(range(9), chance.randrange(4)))
    peers.start(*range(24)).run(8)
    published = [(chance.randrange(24), chance.randrange(9)) for _ in range(100)]
    for publisher, topic in published:
        peers.publish(publisher, topic)
        peers.run(0.2)
    settings = ScribeSettings(root=root)
    overlay = peers.run(2).overlay()
    offline = KINDS[kind].disseminate(overlay, np.array(published), settings)
    assert peers.counts() == offline
    assert offline.missed == 0 and offline.hops > offline.deliveries > 0
    links = tree_links(peers, kind)
    # A subscriber of iScribe does not store the origin of its own branch.
    passes_on = {(topic, upper) for topic, upper, _ in links} if kind is InverseScribe else None
    ups = {(t, low, up) for t, up, low in links if passes_on is None or (t, low) in passes_on}
    assert peers.counted() == peers.count_entries(links | ups)


@pytest.mark.parametrize("kind", KINDS)
def test_cached_addresses_follow_rendezvous_points_that_change(kind: type[Scribe]) -> None:
    peers = TopicCrowd(kind, 24, root="cached")
    topics = range(9)
    for number in range(8):
        peers.subscribe(number, *topics)
    peers.start(*range(8)).run(8)
    before = [peers.root(topic) for topic in topics]
    peers.start(*range(8, 24)).run(40)  # iScribe ends old branches after three refreshes
    assert before != [peers.root(topic) for topic in topics]
    published = [(number, topic) for number in range(8) for topic in topics]
    for publisher, topic in published:
        peers.publish(publisher, topic)
        peers.run(0.2)
    settings = ScribeSettings(root="cached")
    overlay = peers.run(2).overlay()
    assert peers.counts() == KINDS[kind].disseminate(overlay, np.array(published), settings)


@pytest.mark.parametrize("root", ["routed", "cached"])
def test_the_root_can_crash_before_and_after_an_event(root: str) -> None:
    subscribers = [0, 2, 3, 5, 7, 8, 9, 12]
    peers = crowd(14, subscribers, root=root)
    for _ in range(3):
        victim = peers.root(5)
        publisher = next(n for n in (1, 4, 6) if n in peers.agents and n != victim)
        peers.publish(publisher, 5)
        peers.run(0.05).kill(victim)
        peers.publish(publisher, 5)
        peers.run(8)
    stayed = [number for number in subscribers if number in peers.agents]
    assert len(stayed) >= 5 and peers.faults(stayed) == []
    done = [values["event_id"] for _, values in peers.recorded("event_done")]
    assert sorted(done) == sorted(peers.published)


@pytest.mark.parametrize(("kind", "seed"), [(Scribe, 1), (Scribe, 2), (InverseScribe, 3)])
def test_peers_that_stay_get_every_event_once_under_churn(kind: type[Scribe], seed: int) -> None:
    chance = Random(seed)
    peers = TopicCrowd(kind, 16, seed, loss_percent=5.0)
    stay = chance.sample(range(16), 8)
    movers = [number for number in range(16) if number not in stay]
    for number in range(16):
        peers.subscribe(number, *chance.sample(range(3), 2))
    peers.start(*range(16)).run(8)
    for _ in range(30):
        mover = chance.choice(movers)
        if mover in peers.agents:
            chance.choice([peers.kill, peers.leave])(mover)
        else:
            peers.start(mover)
        for _ in range(2):
            peers.publish(chance.choice(stay), chance.randrange(3))
            peers.run(chance.random())
    peers.run(30)
    assert peers.faults(stay) == []
