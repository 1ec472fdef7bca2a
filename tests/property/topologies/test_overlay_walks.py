"""Scribe and iScribe compared with a message-by-message computation on small overlays."""

from collections import Counter, deque
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.overlays.interests import make_interests
from topologies.overlays.key_routes import KeyRoutes, Targets
from topologies.overlays.kinds import find_overlay, find_pubsub, key_routes
from topologies.overlays.overlay import Overlay, distinct_edges
from topologies.overlays.scribe import ScribeSettings

TOPICS = 3
KINDS = [
    ("ring", {"fingers": "chord"}),
    ("ring", {"fingers": "random", "phases": "ceil"}),
    ("pastry", {"b": 1, "leaves": 2}),
    ("pastry", {"b": 4, "leaves": 4}),
    ("skip-net", {}),
]


@st.composite
def cases(draw: Any) -> tuple[Overlay, list[tuple[int, int]]]:
    """An overlay of some kind, and publications in any order."""
    nodes = draw(st.integers(1, 24))
    node, topic = st.integers(0, nodes - 1), st.integers(0, TOPICS - 1)
    pairs = draw(st.lists(st.tuples(node, topic), max_size=40))
    overlay = draw(st.one_of(made_overlays(nodes, pairs), foreign_overlays(nodes, pairs)))
    if draw(st.booleans()):
        points = draw(st.lists(node, min_size=TOPICS, max_size=TOPICS))
        overlay = replace(overlay, rendezvous=np.array(points))
    return overlay, draw(st.lists(st.tuples(node, topic), max_size=6))


@st.composite
def made_overlays(draw: Any, nodes: int, pairs: list[tuple[int, int]]) -> Overlay:
    kind, given_settings = draw(st.sampled_from(KINDS))
    cls = find_overlay(kind)
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    made = cls.make(make_interests(nodes, TOPICS, pairs), cls.Settings(**given_settings), rng)
    return replace(made, kind=kind, settings=given_settings)


@st.composite
def foreign_overlays(draw: Any, nodes: int, pairs: list[tuple[int, int]]) -> Overlay:
    """Any graph, with or without a ring, on a full or a sparse ring of positions."""
    node = st.integers(0, nodes - 1)
    drawn = draw(st.lists(st.tuples(node, node), max_size=60))
    edges = distinct_edges([pair for pair in drawn if pair[0] != pair[1]], nodes, directed=False)
    position = draw(
        st.one_of(
            st.permutations(range(nodes)),
            st.lists(st.integers(0, 2**64 - 1), min_size=nodes, max_size=nodes, unique=True),
        )
    )
    return Overlay(
        make_interests(nodes, TOPICS, pairs),
        edges,
        directed=draw(st.booleans()),
        position=np.array(position, dtype=np.uint64),
    )


def route(routes: KeyRoutes, start: int, target: Targets) -> list[int]:
    """The nodes of one route, found hop by hop; it ends early where there is no next hop."""
    way = [start]
    while way[-1] != target.root[0] and len(way) <= routes.overlay.nodes:
        hop = int(routes.next_hops(np.array([way[-1]]), target)[0])
        if hop < 0:
            break
        way.append(hop)
    return way


def tree_of(routes: KeyRoutes, topic: int, is_downward: bool) -> nx.DiGraph:
    """The tree of a topic from its rendezvous point, made by one join after another."""
    target = routes.rendezvous().take(np.array([topic]))
    root, tree = int(target.root[0]), nx.DiGraph()
    tree.add_node(root)
    for node in routes.overlay.interests.subscribers(topic).tolist():
        if is_downward:
            way = route(routes, root, routes.node_targets(np.array([node])))
            end = node
        else:
            way, end = route(routes, node, target), root
        if way[-1] == end:
            nx.add_path(tree, way if is_downward else way[::-1])
    return tree


def send_all(
    overlay: Overlay, publications: list[tuple[int, int]], is_downward: bool, is_cached: bool
) -> dict[str, Any]:
    """The cost of the publications, counted message by message."""
    routes, found, lengths = key_routes(overlay), Counter[str](), []
    for publisher, topic in publications:
        subscribers = {*overlay.interests.subscribers(topic).tolist()}
        target = routes.rendezvous().take(np.array([topic]))
        root = int(target.root[0])
        way = route(routes, publisher, target)
        if is_cached:
            way = [publisher, root] if publisher != root else [root]
        received = way[1:]
        reached: Counter[int] = Counter()
        if way[-1] == root:
            tree = tree_of(routes, topic, is_downward)
            reached[root] += 1
            queue = deque([(root, len(way) - 1)])
            while queue:
                at, hops = queue.popleft()
                if at in subscribers - {publisher}:
                    lengths.append(hops)
                for child in tree.successors(at):
                    received.append(child)
                    reached[child] += 1
                    queue.append((child, hops + 1))
            assert nx.is_arborescence(tree)
            assert set(reached.values()) == {1}
        wanted = subscribers - {publisher}
        found["messages"] += len(received)
        found["pure_forwarding"] += sum(node not in subscribers for node in received)
        found["deliveries"] += len(wanted & reached.keys())
        found["missed"] += len(wanted - reached.keys())
    mean = sum(lengths) / len(lengths) if lengths else None
    return {
        "publications": len(publications),
        **{key: found[key] for key in ("messages", "pure_forwarding", "deliveries", "missed")},
        "duplicates": 0,
        "path_length": {"mean": mean, "max": max(lengths, default=None)},
    }


@settings(max_examples=300, deadline=None)
@given(cases(), st.booleans(), st.sampled_from(["routed", "cached"]))
def test_counts_equal_those_of_single_messages(
    case: tuple[Overlay, list[tuple[int, int]]], is_downward: bool, root: Any
) -> None:
    overlay, publications = case
    is_downward = is_downward and overlay.kind not in ("pastry", "skip-net")
    rows = np.array(publications, dtype=np.int64).reshape(-1, 2)
    pubsub = find_pubsub("iscribe" if is_downward else "scribe")
    found = pubsub.disseminate(overlay, rows, ScribeSettings(root=root)).to_dict()
    assert found == send_all(overlay, publications, is_downward, root == "cached")
    if overlay.kind is not None:
        assert found["missed"] == 0


@settings(max_examples=60, deadline=None)
@given(cases(), st.randoms(use_true_random=False))
def test_counts_do_not_depend_on_the_order_of_publications_and_interests(
    case: tuple[Overlay, list[tuple[int, int]]], chance: Any
) -> None:
    overlay, publications = case
    scribe = find_pubsub("scribe")
    before = scribe.disseminate(
        overlay, np.array(publications, dtype=np.int64).reshape(-1, 2), ScribeSettings()
    )
    pairs = overlay.interests.pairs().tolist()
    chance.shuffle(pairs)
    chance.shuffle(publications)
    shuffled = replace(overlay, interests=make_interests(overlay.nodes, TOPICS, pairs))
    rows = np.array(publications, dtype=np.int64).reshape(-1, 2)
    assert scribe.disseminate(shuffled, rows, ScribeSettings()) == before
