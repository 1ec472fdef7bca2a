"""The content layer after a repair or before a new tree: limited rate, few messages."""

from collections import Counter
from itertools import pairwise

from agents.announcements import Publish
from agents.protocol import Announce
from agents.routing.tree import Recalculate
from tests.fixtures.scripted_trees import Trees
from tests.simulation.agents.test_content import EVERYTHING, assert_exact


def healed_chain(peers: int) -> Trees:
    """A chain whose first link is missing from 12 s to 25 s, while all peers subscribe to
    everything.
    """
    net = Trees(peers, subscriptions=0, events=400)
    chain = [(number, number + 1) for number in range(peers - 1)]
    net.tree(0.5, 1, chain)
    net.use(0.5, 1)
    net.tree(12, 1, chain[1:])
    net.tree(25, 1, chain)
    for number in range(peers):
        net.want(number, EVERYTHING)
    return net.start().run(50)


def test_waiting_events_are_sent_at_a_limited_rate_oldest_first() -> None:
    net = healed_chain(2)
    assert_exact(net)
    missed = [
        (row[0], row[3]["published_us"])
        for row in net.recorded("event_received")
        if row[1] == "h1" and 12_000_000 < row[3]["published_us"] < 25_000_000
    ]
    assert len(missed) > 100
    assert missed == sorted(missed, key=lambda pair: pair[1])
    at_once = Counter(time_us for time_us, _ in missed)
    assert max(at_once.values()) <= net.protocols[0].settings.pace_events
    assert all(b - a > 90_000 for a, b in pairwise(sorted(at_once)))


def test_missed_events_are_sent_with_few_offers() -> None:
    net = healed_chain(5)
    assert_exact(net)
    offers = [net.agents[number].figures.get("sent_Offer", 0) for number in range(5)]
    assert min(offers[1:4]) > 0 and max(offers) <= 10  # of the 48 events that the first published


def test_several_publishers_request_a_tree_because_some_may_have_ended() -> None:
    net = Trees(1, recalculate_every_events=100, events=250)
    net.use(0.5, 3)
    peer = net.start().run(9).protocols[0]
    effects = {n: peer.on_announcement(10_000_000, Publish(n, 0)) for n in range(1, 251)}
    asked = [number for number, some in effects.items() if Announce(Recalculate(3)) in some]
    assert asked == [100, 101, 102, 200, 201, 202]


def test_only_the_configured_number_of_trees_is_requested() -> None:
    net = Trees(1, recalculate_every_events=100, recalculations=1, events=250)
    net.use(0.5, 3)
    peer = net.start().run(9).protocols[0]
    effects = {n: peer.on_announcement(10_000_000, Publish(n, 0)) for n in range(1, 251)}
    asked = [number for number, some in effects.items() if Announce(Recalculate(3)) in some]
    assert asked == [100, 101, 102]
