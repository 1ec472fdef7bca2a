"""NSMF, Pal and Pie compared with a message-by-message computation on small overlays."""

from collections import Counter
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.overlays.interests import make_interests
from topologies.overlays.kinds import find_overlay
from topologies.overlays.nsmf import BeaConvey, Nsmf, Rule
from topologies.overlays.overlay import Overlay, distinct_edges

TOPICS = 3


@st.composite
def cases(draw: Any) -> tuple[Overlay, list[tuple[int, int]]]:
    """Rings with fingers of any kind, or any graph, and publications."""
    nodes = draw(st.integers(1, 24))
    node = st.integers(0, nodes - 1)
    pairs = draw(st.lists(st.tuples(node, st.integers(0, TOPICS - 1)), max_size=40))
    positions = draw(
        st.one_of(
            st.none(),
            st.permutations(range(nodes)),
            st.lists(st.integers(0, 2**64 - 1), min_size=nodes, max_size=nodes, unique=True),
            st.lists(st.integers(0, 30), min_size=nodes, max_size=nodes, unique=True),
        )
    )
    drawn = draw(st.lists(st.tuples(node, node), max_size=60))
    if draw(st.booleans()):
        order = sorted(range(nodes), key=lambda one: positions[one] if positions else one)
        drawn += zip(order, order[1:] + order[:1], strict=True)
    is_directed = draw(st.booleans())
    edges = distinct_edges([pair for pair in drawn if pair[0] != pair[1]], nodes, is_directed)
    overlay = Overlay(
        make_interests(nodes, TOPICS, pairs),
        edges,
        is_directed,
        None if positions is None else np.array(positions, dtype=np.uint64),
    )
    publication = st.tuples(node, st.integers(0, TOPICS - 1))
    return overlay, draw(st.lists(publication, max_size=6))


class Oracle:
    """A dissemination computed message by message."""

    def __init__(self, overlay: Overlay, rule: str) -> None:
        nodes, self.rule = overlay.nodes, rule
        given = range(nodes) if overlay.position is None else overlay.position.tolist()
        self.place: dict[int, int] = dict(enumerate(given))
        is_full = sorted(given) == list(range(nodes))
        self.modulus = nodes if is_full else 2**64
        self.fingers: dict[int, set[int]] = {node: set() for node in range(nodes)}
        for a, b in overlay.edges.tolist():
            self.fingers[a].add(b)
            if not overlay.directed:
                self.fingers[b].add(a)
        self.topics: dict[int, set[int]] = {topic: set() for topic in range(TOPICS)}
        for node, topic in overlay.interests.pairs().tolist():
            self.topics[topic].add(node)

    def dist(self, node: int, key: int) -> int:
        return (key - self.place[node]) % self.modulus

    def root(self, key: int) -> int:
        return min(self.place, key=lambda node: (self.place[node] - key) % self.modulus)

    def publish(self, publisher: int, topic: int) -> None:
        self.received: list[int] = []
        self.delivered: list[tuple[int, int]] = []
        self.publisher, self.wanted = publisher, self.topics[topic]
        self.handle(publisher, self.modulus, 0)

    def handle(self, at: int, span: int, hops: int) -> None:
        ahead = {node: self.dist(at, self.place[node]) for node in self.place if node != at}
        starts = [ahead[node] for node in self.wanted if node != at]
        if not starts or min(starts) >= span:
            return
        matched = [ahead[node] for node in self.fingers[at] & self.wanted]
        parts = {min(starts), *(start for start in matched if start < span)}
        if self.rule != "po" and all(2 * start < span for start in parts):
            far = [ahead[node] for node in self.fingers[at] if span <= 2 * ahead[node] < 2 * span]
            if far:
                parts.add(min(far))
            elif self.rule == "pal":
                parts.add((span + 1) // 2)
        ends = [*sorted(parts)[1:], span]
        for start, end in zip(sorted(parts), ends, strict=True):
            low = (self.place[at] + start) % self.modulus
            if self.root(low) != at:
                self.send(at, low, end - start, hops)

    def send(self, at: int, low: int, span: int, hops: int) -> None:
        to_key = self.dist(at, low)
        ahead = {node: self.dist(at, self.place[node]) for node in self.fingers[at]}
        before = [node for node in ahead if ahead[node] <= to_key]
        root = self.root(low)
        if before:
            to = max(before, key=lambda node: ahead[node])
        elif root in ahead:
            to = root
        else:
            return
        self.received.append(to)
        if to != root:
            self.send(to, low, span, hops + 1)
            return
        gap = (self.place[to] - low) % self.modulus
        if gap < span:
            if to in self.wanted and to != self.publisher:
                self.delivered.append((to, hops + 1))
            self.handle(to, span - gap, hops + 1)


def send_all(overlay: Overlay, rule: str, publications: list[tuple[int, int]]) -> dict[str, Any]:
    oracle, found, lengths = Oracle(overlay, rule), Counter[str](), []
    for publisher, topic in publications:
        oracle.publish(publisher, topic)
        reached = Counter(node for node, _ in oracle.delivered)
        found["messages"] += len(oracle.received)
        found["pure_forwarding"] += sum(node not in oracle.wanted for node in oracle.received)
        found["deliveries"] += len(reached)
        found["duplicates"] += reached.total() - len(reached)
        found["missed"] += len(oracle.wanted - {publisher} - reached.keys())
        lengths += [hops for _, hops in oracle.delivered]
    names = ("messages", "pure_forwarding", "deliveries", "duplicates", "missed")
    mean = sum(lengths) / len(lengths) if lengths else None
    return {
        "publications": len(publications),
        **{name: found[name] for name in names},
        "path_length": {"mean": mean, "max": max(lengths, default=None)},
    }


@settings(max_examples=400, deadline=None)
@given(cases(), st.sampled_from(get_args(Rule)))
def test_counts_equal_those_of_single_messages(
    case: tuple[Overlay, list[tuple[int, int]]], rule: Rule
) -> None:
    overlay, publications = case
    rows = np.array(publications, dtype=np.int64).reshape(-1, 2)
    counts = BeaConvey.disseminate(overlay, rows, BeaConvey.Settings(rule=rule))
    assert counts.to_dict() == send_all(overlay, rule, publications)
    if rule == "po":
        assert counts == Nsmf.disseminate(overlay, rows, Nsmf.Settings())


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(0, 99), st.data())
def test_all_subscribers_are_reached_once_and_no_other_node_twice(
    nodes: int, seed: int, data: Any
) -> None:
    node, topic = st.integers(0, nodes - 1), st.integers(0, TOPICS - 1)
    interests = make_interests(
        nodes, TOPICS, data.draw(st.lists(st.tuples(node, topic), max_size=60))
    )
    cls = find_overlay("ring")
    overlay = cls.make(interests, cls.Settings(fingers="random"), np.random.default_rng(seed))
    if data.draw(st.booleans()):
        place = st.lists(st.integers(0, 2**64 - 1), min_size=nodes, max_size=nodes, unique=True)
        overlay = replace(overlay, position=np.sort(np.array(data.draw(place), dtype=np.uint64)))
    rows = np.array(data.draw(st.lists(st.tuples(node, topic), min_size=1, max_size=6)))
    for rule in get_args(Rule):
        found = BeaConvey.disseminate(overlay, rows, BeaConvey.Settings(rule=rule))
        assert (found.missed, found.duplicates) == (0, 0)
        if rule == "po":
            assert found.messages == found.deliveries + found.pure_forwarding
