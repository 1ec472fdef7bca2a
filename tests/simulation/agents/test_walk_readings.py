"""Settings for readings of algorithm 1.

They determine which links a walk follows, how targets are used up, how exact MLink is, and where a
peer is placed.
"""

from typing import Any

import pytest

from agents.overlays.random_walk.messages import Walk
from agents.overlays.random_walk.neighbourhood import Neighbour
from agents.overlays.random_walk.overlay import RandomWalk
from agents.overlays.random_walk.targets import dbest, dworst, every, mlink
from agents.protocol import Delay, MeasureDelay, ProbeRoute, Send
from tests.simulation.agents.test_random_walk import Overlay

NEAR, DISTANT = (101, 102, 103), (201, 202)
ORIGIN, SENDER = 7, 8


def peer(**settings: Any) -> RandomWalk:
    """A peer with three near neighbours and two distant ones."""
    protocol = Overlay(hosts=2, routers=4, **settings).run(0.3).protocol("h1")
    protocol.neighbours.clear()
    for number in NEAR:
        protocol.neighbours[number] = Neighbour(1_000, (1, 2), False, 0)
    for number in DISTANT:
        protocol.neighbours[number] = Neighbour(1_000, None, True, 0)
    return protocol


def walk(targets: int, ttl: int = 50, path_us: int = 100_000) -> Walk:
    return Walk(ORIGIN, 1, path_us, targets, ttl)


def visit(protocol: RandomWalk, message: Walk) -> list[Any]:
    """All effects of a walk that arrives, once the delay to its origin is known."""
    effects = [*protocol.on_message(0, SENDER, message)]
    if any(isinstance(effect, MeasureDelay) for effect in effects):
        effects += protocol.on_delay(0, Delay(ORIGIN, (20_000,)))
    return effects


def sent_walks(effects: list[Any]) -> dict[int, Walk]:
    sends = [e for e in effects if isinstance(e, Send) and isinstance(e.message, Walk)]
    return {send.to: send.message for send in sends}


def test_a_walk_follows_near_links_only_or_all_links() -> None:
    near = sent_walks(visit(peer(selectivity=1.0), walk(20)))
    every_link = sent_walks(visit(peer(selectivity=1.0, walk_links="all"), walk(20)))
    assert {*near} == {*NEAR}
    assert {*every_link} == {*NEAR, *DISTANT}


def test_targets_limit_the_selection_except_in_the_literal_algorithm_1() -> None:
    capped = sent_walks(visit(peer(selectivity=1.0), walk(3)))
    literal = sent_walks(visit(peer(selectivity=1.0, target_budget="literal"), walk(3)))
    assert sorted(some.targets for some in capped.values()) == [1, 1]  # one is used up here
    assert sorted(some.targets for some in literal.values()) == [0, 0, 0]


def test_a_walk_without_targets_continues_only_in_the_literal_algorithm() -> None:
    assert visit(peer(), walk(0)) == []
    effects = visit(peer(target_budget="literal"), walk(0))
    assert any(isinstance(effect, ProbeRoute) for effect in effects)
    assert not sent_walks(effects)


def test_the_last_target_ends_a_walk_in_both_readings() -> None:
    for budget in ("capped", "literal"):
        effects = visit(peer(target_budget=budget), walk(1))
        assert any(isinstance(effect, ProbeRoute) for effect in effects)
        assert not sent_walks(effects)


@pytest.mark.parametrize(("tolerance", "is_target"), [(0.0, True), (0.02, False)])
def test_mlink_ignores_differences_below_its_tolerance(tolerance: float, is_target: bool) -> None:
    protocol = peer(mlink_tolerance=tolerance)
    effects = visit(protocol, walk(5, path_us=10_150))
    assert any(isinstance(effect, ProbeRoute) for effect in effects) == is_target


def test_selection_rules_by_hand() -> None:
    assert dworst(15, 0, [10, 20], 0) and not dworst(25, 0, [10, 20], 0)
    assert dbest(5, 0, [10, 20], 0) and not dbest(15, 0, [10, 20], 0)
    assert mlink(99, 100, [], 0) and not mlink(100, 100, [], 0) and not mlink(99, 100, [], 0.02)
    assert every(10**9, 0, [1], 0.02)


def test_every_visited_peer_is_a_target_until_all_targets_are_used() -> None:
    one = Overlay(heuristic="every", targets=3).run(30)
    one.assert_well()
    walks = 24  # one from each peer, each with a join
    assert one.count("route_inferred") >= 0.8 * (3 + 1) * (walks - 4)


def test_direct_placement_forwards_no_peer() -> None:
    cases, direct = (Overlay(placement=placement).run(30) for placement in ("cases", "direct"))
    passed_on = [
        sum(agent.figures.get("sent_Connect", 0) for agent in one.agents.values())
        for one in (cases, direct)
    ]
    assert passed_on[0] > 0 and passed_on[1] == 0
    direct.assert_well()


@pytest.mark.parametrize(
    "settings", [{"walk_links": "all"}, {"target_budget": "literal"}, {"mlink_tolerance": 0.0}]
)
def test_the_overlay_is_correct_under_each_reading(settings: dict[str, Any]) -> None:
    for seed in (1, 2):
        Overlay(seed=seed, degree_limit="lg1", **settings).run(40).assert_well()
