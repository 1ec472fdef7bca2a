"""Small-world overlays of agents: fingers by every rule, and the effect of learned interests."""

from collections.abc import Sequence
from functools import cache
from random import Random

import numpy as np
import pytest

from agents.announcements import Place
from agents.overlays.ring.circle import RANK_SPACING, phases_of, rank_circle
from agents.overlays.small_world.knowledge import Knowledge, pack
from agents.overlays.small_world.messages import Sample, Samples
from agents.overlays.small_world.overlay import SmallWorldOverlay
from agents.overlays.small_world.settings import SmallWorldSettings
from agents.protocol import WholeNetwork
from agents.wire.codec import HEADER, MAX_DATAGRAM_BYTES, Datagram, encode
from tests.fixtures.rings import Rings, S
from topologies.overlays.interests import make_interests
from topologies.overlays.key_routes import Targets
from topologies.overlays.metrics import describe_overlay
from topologies.overlays.overlay import Overlay
from topologies.overlays.position_routes import PositionRoutes
from topologies.overlays.small_world import plan_fingers
from workloads.share import NEVER_US, OwnInterest, Share

PEERS, TOPICS = 24, 30
CHANCE = Random(1)
WANTED = [sorted(CHANCE.sample(range(TOPICS), 4)) for _ in range(PEERS)]
SHARES = [Share(tuple(OwnInterest(0, t, 0, NEVER_US) for t in own)) for own in WANTED]


def none_asked(count: int) -> Sequence[Sequence[int]]:
    raise AssertionError(f"no targets are wanted, {count} asked for")


@cache
def grown(fingers: str, seed: int = 1) -> Rings:
    """Peers whose tables are true and stay unchanged."""
    whole = WholeNetwork(seed, PEERS, none_asked, none_asked, lambda: WANTED)
    settings = SmallWorldSettings(fingers=fingers)  # type: ignore[arg-type]
    plans = SmallWorldOverlay.plan(settings, whole)
    rings = Rings(
        PEERS, seed, SmallWorldOverlay, shares=SHARES, plans=plans, fingers=fingers,
        successors=6, learn_s=5.0,
    )  # fmt: skip
    rings.run(7 * S).settle(3.0)
    return rings


def overlay_of(rings: Rings) -> Overlay:
    """The tables of a run as an offline overlay."""
    number = {peer: at for at, peer in enumerate(rings.addresses)}
    edges = [
        (number[peer], number[place.peer])
        for peer, ring in rings.alive.items()
        for place in ring.view.fingers
    ]
    pairs = [(node, topic) for node, own in enumerate(WANTED) for topic in own]
    return Overlay(make_interests(PEERS, TOPICS, np.array(pairs)), np.array(edges), directed=True)


def fingers_of(rings: Rings) -> list[set[int]]:
    overlay = overlay_of(rings)
    return [set(overlay.edges[overlay.edges[:, 0] == node, 1].tolist()) for node in range(PEERS)]


def test_chord_fingers_are_those_of_the_paper() -> None:
    expected = [{(node + 2**i) % PEERS for i in range(4)} for node in range(PEERS)]
    assert fingers_of(grown("chord")) == expected


def test_random_fingers_fill_each_phase_once() -> None:
    for node, fingers in enumerate(fingers_of(grown("random"))):
        phases = sorted(int(np.log2((finger - node) % PEERS)) for finger in fingers)
        assert phases == [0, 1, 2, 3]


def test_greedy_fingers_are_planned_from_all_interests_and_the_seed() -> None:
    planned = plan_fingers(WANTED, "greedy", "floor", seed=1)
    assert fingers_of(grown("greedy")) == [set(row) for row in planned]


def test_learned_fingers_connect_nearly_as_many_topics_as_greedy_ones() -> None:
    support = {
        fingers: describe_overlay(overlay_of(grown(fingers))).tco_support
        for fingers in ("random", "greedy", "learned")
    }
    assert support["random"] + 0.2 < support["learned"]
    assert support["learned"] > 0.9 * support["greedy"] > 0.8, support


@pytest.mark.parametrize("fingers", ["chord", "greedy", "learned"])
def test_a_correct_overlay_stays_unchanged(fingers: str) -> None:
    rings = grown(fingers)
    views = [ring.view for ring in rings.alive.values()]
    rings.run_for(4)
    assert [ring.view for ring in rings.alive.values()] == views


def test_routes_to_keys_are_those_of_the_offline_overlay() -> None:
    rings = grown("random")
    routes = PositionRoutes(overlay_of(rings))
    for key in [Random(seed).getrandbits(64) for seed in range(60)]:
        root = key * PEERS >> 64
        target = routes.node_targets(np.array([root]))
        for at, peer in enumerate(rings.addresses):
            found = rings.protocols[peer].next_hop(key)
            if at == root:
                assert found is None
            else:
                offline = routes.next_hops(np.array([at]), Targets(target.root, target.key))
                assert found == rings.addresses[int(offline[0])]


def test_after_crashes_of_a_third_one_ring_with_planned_fingers_remains() -> None:
    plan = dict(enumerate(plan_fingers(WANTED, "greedy", "floor", seed=2)))
    rings = Rings(PEERS, 2, SmallWorldOverlay, plans=plan, fingers="greedy", successors=8).run(S)
    rings.settle(3.0)
    rings.kill(Random(3).sample(rings.addresses, PEERS // 3))
    rings.settle(10.0)


def test_learned_fingers_are_chosen_again_after_failures() -> None:
    rings = Rings(
        PEERS, 2, SmallWorldOverlay, shares=SHARES, fingers="learned", successors=8, learn_s=4.0
    ).run(5 * S)
    rings.settle(3.0)
    rings.kill(Random(4).sample(rings.addresses, PEERS // 3))
    rings.settle(12.0)


def knowledge(per_phase: int = 4) -> Knowledge:
    """The knowledge of peer 100 at rank 0 of 64, which subscribes to topics 1 to 6."""
    circle = rank_circle(64)
    made = Knowledge(Place(100, 0), circle, phases_of(circle), per_phase, Random(1))
    made.want(0, frozenset(range(1, 7)))
    return made


def sample(rank: int, *topics: int, age_s: int = 0) -> Sample:
    return Sample(rank, rank * RANK_SPACING, 1, age_s, 0, 1, topics)


def test_the_peer_that_covers_most_is_chosen_first_and_each_topic_counts_once() -> None:
    known = knowledge()
    for one in (sample(2, 1, 2, 3), sample(9, 1, 2, 3, 4), sample(33, 5), sample(5, 1, 2)):
        assert known.take(S, one)
    chosen = {index: place.peer for index, place in known.choose().items()}
    assert chosen == {3: 9, 5: 33}  # 2 and 5 subscribe to nothing that 9 does not.


def test_the_successor_is_always_a_finger() -> None:
    known = knowledge()
    for one in (sample(1, 1, 2, 3), sample(9, 1, 2, 3, 4), sample(17, 1, 2, 3, 5, 6)):
        known.take(S, one)
    assert {i: place.peer for i, place in known.choose().items()} == {0: 1, 4: 17, 3: 9}


def test_peers_with_most_common_topics_are_kept() -> None:
    known = knowledge(per_phase=2)
    assert [known.take(S, sample(32 + i, *range(i))) for i in (3, 2, 1, 5)] == [
        True, True, False, True,
    ]  # fmt: skip
    assert known.choose()[5].peer == 37


def test_interests_in_pieces_are_known_when_all_pieces_have_arrived() -> None:
    teller = knowledge()
    teller.want(1, frozenset(range(600)))
    pieces = teller.samples(S, 1)
    assert len(pieces) == 3
    circle = rank_circle(64)
    other = Knowledge(Place(5, 5 * RANK_SPACING), circle, phases_of(circle), 4, Random(1))
    other.want(0, frozenset({599}))
    assert [other.take(S, one) for one in (pieces[2], pieces[0], pieces[0], pieces[1])] == [
        False, False, False, True,
    ]  # fmt: skip
    assert [place.peer for place in other.choose().values()] == [100]


def test_a_lost_peer_is_added_again_only_by_a_newer_sample() -> None:
    known = knowledge()
    known.take(10 * S, sample(9, 1))
    known.forget(12 * S, 9)
    assert known.choose() == {}
    assert not known.take(14 * S, sample(9, 1, age_s=3))
    assert known.take(14 * S, sample(9, 1, age_s=1))
    assert known.choose()


@pytest.mark.parametrize(
    "bad",
    [
        Sample(100, 0, 1, 0, 0, 1, (1,)),
        Sample(9, 64 * RANK_SPACING, 1, 0, 0, 1, (1,)),
        Sample(9, 9 * RANK_SPACING, 1, 0, 1, 1, (1,)),
        Sample(9, 9 * RANK_SPACING, 1, 0, 0, 0, (1,)),
        Sample(9, 9 * RANK_SPACING, 1, 0, 0, 65_000, (1,)),
    ],
    ids=["this peer", "no position", "no such piece", "no pieces", "too many pieces"],
)
def test_invalid_samples_are_ignored(bad: Sample) -> None:
    known = knowledge()
    assert not known.take(S, bad)
    assert known.peers == [] and known.choose() == {}


def test_samples_fill_datagrams_without_exceeding_them() -> None:
    chance = Random(1)
    samples = [sample(rank % 64, *range(chance.randrange(250))) for rank in range(200)]
    room = MAX_DATAGRAM_BYTES - HEADER.size - 3
    groups = pack(samples, room, lambda one: 24 + 4 * len(one.topics))
    assert [one for group in groups for one in group] == samples
    sizes = [len(encode(Datagram(Samples(True, g), 0, 1, 1, 2, 3, 4))) for g in groups]
    assert max(sizes) <= MAX_DATAGRAM_BYTES and len(groups) < len(samples) * 0.6
