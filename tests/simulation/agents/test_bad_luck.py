"""Rare failures: the winner of a vote crashes while votes are counted; an event is too large."""

import networkx as nx
import pytest

from agents.pubsub.content.messages import MAX_PAYLOAD_BYTES, Event
from agents.wire.codec import MAX_DATAGRAM_BYTES, Datagram, encode
from tests.fixtures.static_overlay import Crowd, make_overlay, make_underlay
from workloads.content.subscription import make_point


def test_a_core_that_crashes_while_votes_are_counted_is_not_in_the_tree() -> None:
    checked = 0
    for seed in range(3):
        underlay = make_underlay(24, seed)
        graph = make_overlay(underlay, seed)
        winner = Crowd(underlay, graph, seed).run(12).cores()[0]
        crowd, at_s = Crowd(underlay, graph, seed).run(4.5), 4.5
        while not any(r.selection._round is not None for r in crowd.routing.values()):
            at_s += 0.001
            crowd.run(at_s)
        assert not crowd.recorded("cores_selected")
        crowd.kill(winner).run(45)
        if nx.is_connected(graph.subgraph(crowd.routing)):
            crowd.check_tree()
            checked += 1
    assert checked >= 2


def test_an_event_of_the_largest_size_fits_and_one_byte_more_is_refused() -> None:
    point = make_point([1]).number
    largest = Event(1, 0, 1, 1, point, bytes(MAX_PAYLOAD_BYTES))
    assert len(encode(Datagram(largest, 0, 1, 2, 3, 4, 5))) == MAX_DATAGRAM_BYTES
    larger = Event(1, 0, 1, 1, point, bytes(MAX_PAYLOAD_BYTES + 1))
    with pytest.raises(ValueError, match="expected"):
        encode(Datagram(larger, 0, 1, 2, 3, 4, 5))
