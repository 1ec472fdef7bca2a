"""Routes to keys: roots, next hops and lengths, by hand, by brute force and by published values."""

import math
from dataclasses import replace
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from topologies.errors import TopologyError
from topologies.overlays.interests import make_interests
from topologies.overlays.key_routes import NOWHERE, KeyRoutes, Targets, walk
from topologies.overlays.keys import common_bits, draw_ids, topic_key
from topologies.overlays.kinds import OVERLAYS, find_overlay, key_routes
from topologies.overlays.overlay import Overlay
from topologies.overlays.overlay_file import load_overlay, save_overlay
from topologies.overlays.ring import count_phases
from topologies.overlays.skip_net import level_rings

RING = 1 << 64


def build(kind: str, nodes: int, topics: int = 50, seed: int = 1, **settings: Any) -> Overlay:
    cls = find_overlay(kind)
    made = cls.make(
        make_interests(nodes, topics, []), cls.Settings(**settings), np.random.default_rng(seed)
    )
    return replace(made, kind=kind, settings=settings)


def route(routes: KeyRoutes, start: int, targets: Targets) -> list[int]:
    """The nodes of one route."""
    nodes = [start]
    walk(routes, np.array([start]), targets, lambda _, at: nodes.extend(at.tolist()))
    return nodes


def test_the_key_of_a_topic_is_blake2b_of_its_decimal_number() -> None:
    assert topic_key(17) == int(blake2b(b"17", digest_size=8).hexdigest(), 16)


def test_common_bits_are_exact_at_every_length() -> None:
    rng = np.random.default_rng(1)
    a = draw_ids(rng, 500)
    b = a ^ (draw_ids(rng, 500) >> rng.integers(0, 64, 500, dtype=np.uint64))
    expected = [64 - (int(x) ^ int(y)).bit_length() for x, y in zip(a, b, strict=True)]
    assert common_bits(a, b).tolist() == expected
    assert common_bits(a, a).tolist() == [64] * 500


@pytest.mark.parametrize("kind", OVERLAYS)
@pytest.mark.parametrize("nodes", [1, 2, 3, 17, 300])
def test_every_route_arrives_over_edges_of_the_overlay(kind: str, nodes: int) -> None:
    overlay = build(kind, nodes)
    routes = key_routes(overlay)
    edges = {tuple(edge) for edge in overlay.fingers.tolist()}
    targets = routes.rendezvous()
    for topic in range(0, 50, 7):
        target = targets.take(np.array([topic]))
        for start in range(0, nodes, 1 + nodes // 20):
            nodes_on_way = route(routes, start, target)
            assert nodes_on_way[-1] == target.root[0]
            assert {*pairwise(nodes_on_way)} <= edges


@pytest.mark.parametrize("kind", OVERLAYS)
def test_routes_are_equal_after_writing_and_reading_the_overlay(kind: str, tmp_path: Path) -> None:
    overlay = build(kind, 200)
    save_overlay(overlay, tmp_path / "o.json")
    starts, topics = np.repeat(np.arange(200), 50), np.tile(np.arange(50), 200)
    hops = []
    for some in (overlay, load_overlay(tmp_path / "o.json")):
        routes = key_routes(some)
        hops.append(walk(routes, starts, routes.rendezvous().take(topics)).hops)
    assert (hops[0] == hops[1]).all()


@pytest.mark.parametrize("kind", OVERLAYS)
def test_a_given_rendezvous_point_is_reached(kind: str) -> None:
    overlay = replace(build(kind, 60, topics=3), rendezvous=np.array([7, 59, 0]))
    routes = key_routes(overlay)
    targets = routes.rendezvous()
    assert targets.root.tolist() == [7, 59, 0]
    for topic in range(3):
        ways = walk(routes, np.arange(60), targets.take(np.full(60, topic)))
        assert ways.has_arrived.all()


# Rings


def test_the_root_on_a_full_ring_is_proportional_to_the_key() -> None:
    overlay = replace(build("ring", 10), position=np.arange(10, dtype=np.uint64)[::-1])
    roots = key_routes(overlay).rendezvous().root
    assert roots.tolist() == [9 - (topic_key(topic) * 10 >> 64) for topic in range(50)]


def test_the_root_on_a_sparse_ring_is_the_first_node_at_or_after_the_key() -> None:
    position = draw_ids(np.random.default_rng(3), 10)
    position[4] = topic_key(8)
    roots = key_routes(replace(build("ring", 10), position=position)).rendezvous().root
    for topic, root in enumerate(roots.tolist()):
        distance = [(int(place) - topic_key(topic)) % RING for place in position]
        assert root == distance.index(min(distance))
    assert roots[8] == 4


def test_chord_routes_are_binary() -> None:
    routes = key_routes(build("ring", 64))
    at = np.arange(64)
    ways = walk(routes, np.zeros(64, dtype=np.int64), routes.node_targets(at))
    assert ways.hops.tolist() == [node.bit_count() for node in range(64)]


@pytest.mark.parametrize("fingers", ["chord", "random"])
@pytest.mark.parametrize(("nodes", "phases"), [(2, "floor"), (23, "floor"), (23, "ceil")])
def test_a_ring_has_one_finger_in_each_phase(nodes: int, phases: Any, fingers: str) -> None:
    overlay = build("ring", nodes, fingers=fingers, phases=phases)
    count = math.floor(math.log2(nodes)) if phases == "floor" else math.ceil(math.log2(nodes))
    assert count_phases(nodes, phases) == count
    distance = (overlay.edges[:, 1] - overlay.edges[:, 0]) % nodes
    for node in range(nodes):
        own = sorted(distance[overlay.edges[:, 0] == node].tolist())
        assert [d.bit_length() - 1 for d in own] == list(range(count))
        assert fingers == "random" or own == [1 << i for i in range(count)]


def test_greedy_routes_by_hand() -> None:
    # Node 1 of 16 has the fingers of the paper's figure; all others have only their successor.
    edges = [[node, (node + 1) % 16] for node in range(16)] + [[1, 4], [1, 7], [1, 11]]
    overlay = Overlay(make_interests(16, 0, []), np.array(edges), directed=True)
    routes = key_routes(overlay)
    assert route(routes, 1, routes.node_targets(np.array([9]))) == [1, 7, 8, 9]
    assert route(routes, 1, routes.node_targets(np.array([0]))) == [1, 11, 12, 13, 14, 15, 0]


def test_a_key_on_a_sparse_ring_goes_to_the_last_finger_before_it() -> None:
    # The key of topic 0 is between nodes 2 and 3; 0 has fingers to 1, 2 and 3.
    key = topic_key(0)
    position = np.array([key - 300, key - 200, key - 100, key + 100], dtype=np.uint64)
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [0, 2], [0, 3]])
    overlay = Overlay(make_interests(4, 1, []), edges, directed=True, position=position)
    routes = key_routes(overlay)
    assert route(routes, 0, routes.rendezvous()) == [0, 2, 3]
    assert route(routes, 0, routes.node_targets(np.array([3]))) == [0, 3]


def test_a_route_without_a_finger_ends() -> None:
    overlay = Overlay(make_interests(4, 0, []), np.array([[0, 1], [1, 2]]), directed=True)
    routes = key_routes(overlay)
    ways = walk(routes, np.array([0, 3, 2]), routes.node_targets(np.array([3, 0, 2])))
    assert ways.has_arrived.tolist() == [False, False, True]
    assert ways.hops.tolist() == [2, 0, 0]


# Pastry


@pytest.mark.parametrize("nodes", [256, 1024, 4096])
def test_hops_of_pastry_are_log16_of_the_nodes(nodes: int) -> None:
    routes = key_routes(build("pastry", nodes, topics=2000))
    rng = np.random.default_rng(2)
    starts = rng.integers(0, nodes, 20_000)
    ways = walk(routes, starts, routes.rendezvous().take(rng.integers(0, 2000, 20_000)))
    assert ways.has_arrived.all()
    assert ways.hops.mean() == pytest.approx(math.log(nodes, 16), rel=0.1)


def test_the_root_in_pastry_is_numerically_closest() -> None:
    overlay = build("pastry", 30)
    assert overlay.ids is not None
    ids = overlay.ids.tolist()
    for topic, root in enumerate(key_routes(overlay).rendezvous().root.tolist()):
        away = [
            min((one - topic_key(topic)) % RING, (topic_key(topic) - one) % RING) for one in ids
        ]
        assert root == away.index(min(away))


def test_of_two_equally_close_nodes_the_lower_is_the_root() -> None:
    key = topic_key(0)
    for ids in ([key + 5, key - 5], [key - 5, key + 5]):
        overlay = Overlay(
            make_interests(2, 1, []),
            np.array([[0, 1]]),
            ids=np.array(ids, dtype=np.uint64),
            kind="pastry",
        )
        assert key_routes(overlay).rendezvous().root.tolist() == [ids.index(key - 5)]


def test_slots_hold_all_prefixes_that_exist() -> None:
    overlay = build("pastry", 200, b=2)
    assert overlay.ids is not None
    digits = [f"{int(one):064b}" for one in overlay.ids]
    known: dict[int, set[int]] = {node: set() for node in range(200)}
    for node, peer in overlay.edges.tolist():
        known[node].add(peer)
    for node in range(0, 200, 20):
        for row in range(0, 20, 2):
            for digit in ("00", "01", "10", "11"):
                prefix = digits[node][:row] + digit
                fitting = {p for p in range(200) if digits[p].startswith(prefix)} - {node}
                is_slot = not digits[node].startswith(prefix)
                assert not (is_slot and fitting) or fitting & known[node]


def test_leaf_sets_are_the_next_nodes_on_both_sides() -> None:
    overlay = build("pastry", 50, leaves=6)
    assert overlay.ids is not None
    order = np.argsort(overlay.ids).tolist()
    edges = {tuple(edge) for edge in overlay.edges.tolist()}
    for place, node in enumerate(order):
        leaves = {order[(place + step) % 50] for step in (-3, -2, -1, 1, 2, 3)}
        assert {(node, leaf) for leaf in leaves} <= edges


def next_in_pastry(known: list[int], key: int, root: int = 0, leaves: int = 2) -> int:
    """The next hop among nodes with these top bytes; the first node knows all others."""
    edges = np.array([[0, peer] for peer in range(1, len(known))])
    overlay = Overlay(
        make_interests(len(known), 0, []),
        edges,
        directed=True,
        ids=np.array([byte << 56 for byte in known], dtype=np.uint64),
        kind="pastry",
        settings={"b": 4, "leaves": leaves},
    )
    target = Targets(np.array([root]), np.array([key << 56], dtype=np.uint64))
    hop = int(key_routes(overlay).next_hops(np.array([0]), target)[0])
    return known[hop] if hop != NOWHERE else NOWHERE


def test_the_first_edge_that_fits_a_slot_is_its_entry() -> None:
    # Leaves of 00 are f8 and 10, so the key f4 is routed by the table.
    assert next_in_pastry([0x00, 0xF1, 0xF8, 0x10], key=0xF4) == 0xF1
    assert next_in_pastry([0x00, 0xF8, 0xF1, 0x10], key=0xF4) == 0xF8


def test_a_key_between_leaves_goes_to_the_closest() -> None:
    assert next_in_pastry([0x10, 0x08, 0x1C, 0x50, 0x1A], key=0x18, leaves=4) == 0x1A
    assert next_in_pastry([0x10, 0x08, 0x1C, 0x50], key=0x12) == NOWHERE  # closest to the key


def test_a_node_with_few_others_knows_all() -> None:
    # The entry for digit 1 is 10, but 20 is closer to 1f.
    assert next_in_pastry([0x80, 0x10, 0x20], key=0x1F) == 0x20


def test_a_node_without_a_fitting_entry_takes_a_closer_one_of_the_same_prefix() -> None:
    # Slot f of row 1 is empty. 20 is closer to 1f than 18, but shares no digit with it.
    assert next_in_pastry([0x10, 0x11, 0x0F, 0x18, 0x20], key=0x1F) == 0x18
    assert next_in_pastry([0x18, 0x19, 0x17, 0x10, 0x50], key=0x1F) == 0x19
    assert next_in_pastry([0x18, 0x17, 0x16, 0x10, 0x50], key=0x1F, leaves=2) == NOWHERE


@pytest.mark.parametrize("kind", ["pastry", "skip-net"])
def test_routing_by_identifier_needs_identifiers(kind: str) -> None:
    overlay = replace(build("ring", 4), kind=kind)
    with pytest.raises(TopologyError, match="ids: expected one for each node .* found none"):
        key_routes(overlay)


def test_wrong_settings_of_pastry_are_refused() -> None:
    overlay = replace(build("pastry", 4), settings={"b": 3})
    with pytest.raises(TopologyError, match="settings: .*3"):
        key_routes(overlay)


# Skip-net


def test_rings_of_all_levels_follow_the_vectors() -> None:
    ids = draw_ids(np.random.default_rng(5), 40)
    bits = [f"{int(one):064b}" for one in ids]
    for level, pairs in enumerate(level_rings(ids)[1:]):
        expected = set()
        for node in range(40):
            others = [(node + step) % 40 for step in range(1, 40)]
            ring = [other for other in others if bits[other][:level] == bits[node][:level]]
            expected |= {(node, other) for other in ring[:1]}
        assert {tuple(pair) for pair in pairs.tolist()} == expected


def test_routes_of_skip_net_equal_brute_force() -> None:
    overlay = build("skip-net", 60, topics=20)
    assert overlay.ids is not None
    routes, bits = key_routes(overlay), [f"{int(one):064b}" for one in overlay.ids]
    roots = routes.rendezvous().root.tolist()
    for topic in range(20):
        key = f"{topic_key(topic):064b}"
        shared = [next(i for i in range(65) if b[:i] != key[:i]) - 1 for b in bits]
        best = [node for node in range(60) if shared[node] == max(shared)]
        away = [abs(int(bits[node], 2) - int(key, 2)) for node in best]
        assert roots[topic] == best[away.index(min(away))]
        for start in range(0, 60, 11):
            way, at = [start], start
            while at != roots[topic]:
                c = shared[at]
                at = next(
                    other
                    for other in ((at + step) % 60 for step in range(1, 61))
                    if bits[other][:c] == key[:c]
                )
                way.append(at)
            assert route(routes, start, routes.rendezvous().take(np.array([topic]))) == way


@pytest.mark.parametrize(("nodes", "hops"), [(1_000, 9.0), (10_000, 12.5)])
def test_hops_of_skip_net_equal_an_independent_implementation(nodes: int, hops: float) -> None:
    routes = key_routes(build("skip-net", nodes, topics=400))
    starts = np.random.default_rng(1).integers(0, nodes, 40_000)
    ways = walk(routes, starts, routes.rendezvous().take(np.arange(40_000) % 400))
    assert ways.hops.mean() == pytest.approx(hops, abs=0.4)


def test_hops_are_at_least_those_of_shortest_paths() -> None:
    for kind in OVERLAYS:
        overlay = build(kind, 80, topics=5)
        graph = nx.DiGraph(overlay.fingers.tolist())
        routes = key_routes(overlay)
        targets = routes.rendezvous()
        for topic, root in enumerate(targets.root.tolist()):
            ways = walk(routes, np.arange(80), targets.take(np.full(80, topic)))
            shortest = nx.shortest_path_length(graph, target=root)
            assert all(ways.hops[node] >= shortest[node] for node in range(80))
