"""Rings of agents: tables are true after failures, and routes follow them."""

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest

from agents.announcements import PeerLost, Place, Settled
from agents.overlays.ring.circle import SPARSE, hash_position, phases_of, rank_circle
from agents.overlays.ring.fingers import FingerRule
from agents.overlays.ring.memory import Memory
from agents.overlays.ring.messages import Leaving, Lookup, Member, Stabilise, Surrounding
from agents.overlays.ring.overlay import RingOverlay
from agents.overlays.ring.ring import Ring
from agents.overlays.ring.settings import RingSettings
from agents.protocol import Effects, Protocol, Record, Send, Surroundings
from tests.fixtures.rings import Rings, S, links_between_halves, underlay_of, with_loss
from tests.simulation.agents.test_record_schema import faults_of
from topologies.overlays.interests import make_interests
from topologies.overlays.key_routes import Targets
from topologies.overlays.overlay import Overlay
from topologies.overlays.position_routes import PositionRoutes

PEERS = 24
REPAIRED_S = 10.0  # detection after 3 s, and the repair


@pytest.mark.parametrize(("seed", "fingers"), [(1, "chord"), (2, "random")])
def test_peers_that_start_together_form_one_ring_that_stays_unchanged(
    seed: int, fingers: str
) -> None:
    rings = Rings(PEERS, seed, fingers=fingers, successors=8).run(S)
    rings.settle(3.0)
    before = [ring.view for ring in rings.alive.values()]
    changes = len(rings.records)
    rings.run_for(10)
    assert [ring.view for ring in rings.alive.values()] == before
    assert len(rings.records) == changes


class SettlingRings(Rings):
    """Rings that record when links are settled at each peer."""

    def above(self, given: Surroundings) -> list[Protocol]:
        """The layer that records it."""
        return [Listener(given)]

    def settled_us(self, peer: int) -> list[int]:
        """The times when a peer was settled, for each of its incarnations."""
        mine = [row for row in self.records if row[1] == self.host[peer] and row[2] == "settled"]
        return [row[0] for row in mine]


class Listener(Protocol):
    """Records when the overlay is settled."""

    def on_announcement(self, now_us: int, content: Any) -> Effects:
        """Record the announcement."""
        return [Record("settled")] if isinstance(content, Settled) else ()


@pytest.mark.parametrize(("seed", "loss_percent"), [(1, 0.0), (2, 0.0), (3, 2.0)])
def test_a_late_peer_is_settled_when_all_others_have_found_it(
    seed: int, loss_percent: float
) -> None:
    underlay = with_loss(underlay_of(48), loss_percent)
    rings = SettlingRings(48, seed, fingers="random", underlay=underlay, successors=8).run(S)
    late = rings.addresses[17]
    rings.kill([late])
    rings.run(20 * S)
    assert all(rings.settled_us(peer) for peer in rings.alive) and not list(rings.wrong())
    rings.start(late)
    rings.run_for(6)
    assert not rings.settled_us(late)
    rings.run_for(9)
    assert rings.settled_us(late)
    changes = [row for row in rings.records if row[2].startswith("neighbour_")]
    assert 20 * S < changes[-1][0] < rings.settled_us(late)[0]
    assert not list(rings.wrong())


def test_records_describe_the_tables() -> None:
    rings = Rings(12, successors=6).run(S)
    rings.settle(3.0)
    rings.kill([rings.addresses[3]])
    rings.settle(REPAIRED_S)
    held: dict[str, Counter[tuple[int, str]]] = {host: Counter() for host in rings.host.values()}
    for _, host, what, values in rings.records:
        if what.startswith("neighbour_"):
            held[host][values["peer"], values["role"]] += 1 if what == "neighbour_added" else -1
    for peer, ring in rings.alive.items():
        expected = {(place.peer, "finger") for place in ring.fingers.places}
        expected.add((ring.near.successors[0].peer, "successor"))
        assert +held[rings.host[peer]] == Counter(expected)
    placed = [(host, v) for _, host, what, v in rings.records if what == "placed"]
    assert dict(placed) == {
        host: {"position": f"{hash_position(peer):016x}"} for peer, host in rings.host.items()
    }
    assert not [row for row in rings.records if faults_of(*row[2:])]


def test_one_seed_twice_gives_the_same_records() -> None:
    runs = [Rings(PEERS, 5, fingers="random").run(4 * S) for _ in range(2)]
    assert runs[0].records == runs[1].records
    assert Rings(PEERS, 6, fingers="random").run(4 * S).records != runs[0].records


@pytest.mark.parametrize("fingers", ["chord", "random"])
def test_routes_to_keys_are_those_of_the_offline_overlay(fingers: str) -> None:
    rings = Rings(PEERS, 3, fingers=fingers, successors=5).run(S)
    rings.settle(3.0)
    number = {peer: at for at, peer in enumerate(rings.addresses)}
    edges = [
        (number[peer], number[place.peer])
        for peer, ring in rings.alive.items()
        for place in ring.view.fingers
    ]
    positions = np.array([hash_position(peer) for peer in rings.addresses], dtype=np.uint64)
    nothing = make_interests(PEERS, 1, np.empty((0, 2), dtype=np.int64))
    routes = PositionRoutes(Overlay(nothing, np.array(edges), directed=True, position=positions))
    keys = [Random(key).getrandbits(64) for key in range(150)] + positions.tolist()
    for key in keys:
        root = min(range(PEERS), key=lambda at: (int(positions[at]) - key) % (1 << 64))
        targets = Targets(np.array([root]), np.array([key], dtype=np.uint64))
        for at, peer in enumerate(rings.addresses):
            found = rings.protocols[peer].next_hop(key)
            if at == root:
                assert found is None
            else:
                offline = int(routes.next_hops(np.array([at]), targets)[0])
                assert found == rings.addresses[offline]


def test_after_crashes_leaving_and_restarts_tables_are_true() -> None:
    rings = Rings(PEERS, 4, successors=8).run(S)
    rings.settle(3.0)
    order = sorted(rings.alive, key=lambda peer: rings.alive[peer].me.position)
    rings.kill(order[3:5])  # next to each other
    rings.settle(REPAIRED_S)
    rings.stop(order[9])
    rings.settle(3.0)
    third = order[10::3] + order[11::7]
    rings.kill(sorted(set(third)))
    rings.settle(REPAIRED_S)
    for peer in order[3:5] + sorted(set(third)):
        rings.start(peer)
    rings.run_for(0.01)
    rings.settle(REPAIRED_S)
    rings.kill([order[0]])
    rings.start(order[0])  # before any peer detects it
    rings.run_for(0.01)
    rings.settle(REPAIRED_S)
    assert len(rings.alive) == PEERS - 1


@pytest.mark.parametrize("loss_percent", [0.0, 2.0])
def test_a_healed_partition_becomes_one_ring(loss_percent: float) -> None:
    underlay = with_loss(underlay_of(PEERS), loss_percent)
    rings = Rings(PEERS, 2, underlay=underlay, successors=8).run(S)
    rings.settle(REPAIRED_S)
    for a, b in (cut := links_between_halves(underlay)):
        rings.simulator.set_link(rings.simulator.now_us, a, b, False)
    rings.run_for(20)
    assert len(list(rings.wrong())) > PEERS
    for a, b in cut:
        rings.simulator.set_link(rings.simulator.now_us, a, b, True)
    rings.settle(REPAIRED_S)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_after_crashes_of_a_third_one_ring_remains(seed: int) -> None:
    rings = Rings(64, seed, fingers=("chord", "random")[seed % 2]).run(S)
    rings.settle(3.0)
    rings.run_for(Random(seed).uniform(0, 5))
    rings.kill(Random(seed).sample(rings.addresses, 64 // 3))
    rings.settle(REPAIRED_S)


def ring_of(*others: Place, contacts: tuple[int, ...] = ()) -> Ring:
    """Peer 1 at position 100 of 1,000 ranks, next to some others."""
    circle = rank_circle(1000)
    memory = Memory(contacts, Random(1), 5 * S)
    ring = Ring(Place(1, 100 << 40), circle, FingerRule(phases_of(circle)), memory, RingSettings())
    ring.start(0, 1)
    for place in others:
        tell(ring, place)
    return ring


def tell(ring: Ring, place: Place, *named: Place) -> list[object]:
    """Let a peer send its position and its successors."""
    after = tuple(Member(*one) for one in named)
    own = Surrounding(place.position, (), after)
    return [
        e.to
        for e in ring.on_message(1, place.peer, Stabilise(0, False, own))
        if isinstance(e, Send)
    ]


def at(rank: int) -> Place:
    return Place(rank, rank << 40)


def test_a_peer_without_neighbours_contacts_all_contacts_in_each_period() -> None:
    """Most contacts may be dead, and a lookup may be lost."""
    ring = ring_of(contacts=(7, 8, 9))
    for second in range(1, 4):
        sent = [e for e in ring.on_timer(second * S, ("tick", 0)) if isinstance(e, Send)]
        assert [(e.to, type(e.message)) for e in sent] == [(peer, Lookup) for peer in (7, 8, 9)]
    tell(ring, at(300))
    sent = [e for e in ring.on_timer(4 * S, ("tick", 0)) if isinstance(e, Send)]
    assert len([e for e in sent if e.to in (7, 8, 9)]) == 1


def test_a_peer_known_from_others_becomes_a_neighbour_only_after_it_answers() -> None:
    ring = ring_of(at(300))
    assert tell(ring, at(300), at(500), at(900)) == [900]  # it may be the predecessor
    assert ring.near.successors == [at(300), at(500), at(900)]
    assert tell(ring, at(400), at(250)) == [250]
    assert ring.near.successors[0] == at(300)
    tell(ring, at(250), at(300))
    assert ring.near.successors == [at(250), at(300), at(500), at(900)]


def test_a_possible_neighbour_is_contacted_until_it_answers() -> None:
    ring = ring_of(at(300))
    for period in range(2, 5):
        assert tell(ring, at(300), at(900)) == [900]
        assert tell(ring, at(300), at(900)) == []  # once in a period
        ring.on_timer(period, ("tick", 0))
    tell(ring, at(900))
    assert tell(ring, at(300), at(900)) == []


def test_a_lost_peer_is_not_added_from_lists_of_others_for_a_while() -> None:
    ring = ring_of(at(300))
    tell(ring, at(300), at(400), at(500))
    ring.lose(S, 400)
    assert ring.near.successors == [at(300), at(500)]
    tell(ring, at(300), at(400), at(500), at(600))
    assert ring.near.successors == [at(300), at(500), at(600)]
    tell(ring, at(400), at(500))  # It is alive.
    tell(ring, at(300), at(400), at(500), at(600))
    assert at(400) in ring.near.successors


def test_without_successors_the_nearest_known_peer_is_the_successor() -> None:
    ring = ring_of(at(300), at(50))
    ring.lose(S, 300)
    assert ring.near.successors == [at(50)]
    ring.lose(S, 50)
    assert ring.near.successors == [] and ring.next_hop(5) is None


@pytest.mark.parametrize(
    ("rank", "sender"), [(100, 7), (1000, 7), (5000, 7)], ids=["same", "modulus", "beyond"]
)
def test_invalid_positions_are_ignored(rank: int, sender: int) -> None:
    ring = ring_of()
    assert tell(ring, Place(sender, rank << 40)) == []
    assert ring.near.successors == []
    lookup = Lookup(0, 1000 << 40, 9, 1, False, 0)
    assert ring.on_message(1, 9, lookup) == []


def test_lookups_end_after_a_number_of_hops() -> None:
    ring = ring_of(at(300))
    lookup = Lookup(0, 200 << 40, 9, 1, False, 255)
    assert ring.on_message(1, 9, lookup) == []
    passed = ring.on_message(1, 9, Lookup(0, 200 << 40, 9, 1, False, 3))
    assert passed == [Send(300, Lookup(0, 200 << 40, 9, 1, True, 4))]


def test_a_leaving_peer_names_the_peers_that_close_the_gap() -> None:
    ring = ring_of(at(300))
    own = Surrounding(300 << 40, (), (Member(600, 600 << 40),))
    asked = [e.to for e in ring.on_message(2, 300, Leaving(0, own)) if isinstance(e, Send)]
    assert asked == [600] and ring.near.successors == []


def test_an_overlay_ignores_other_epochs_and_reports_lost_peers() -> None:
    overlay = RingOverlay(Surroundings(1, (), Random(1)))
    overlay.on_start(0)
    own = Surrounding(hash_position(2), (), ())
    assert overlay.on_message(1, 2, Stabilise(3, False, own)) == []
    overlay.on_message(1, 2, Stabilise(0, False, own))
    lost = overlay.on_announcement(2, PeerLost(2))
    removed = [e.values for e in lost if isinstance(e, Record) and e.what == "neighbour_removed"]
    assert {values["role"] for values in removed} == {"successor", "finger"}
    assert {values["peer"] for values in removed} == {2}


@pytest.mark.parametrize(
    ("peers", "rounding", "count"),
    [(1, "floor", 0), (2, "floor", 1), (16, "floor", 4), (17, "floor", 4), (17, "ceil", 5)],
)
def test_phases_of_ranks(peers: int, rounding: str, count: int) -> None:
    phases = phases_of(rank_circle(peers), rounding)  # type: ignore[arg-type]
    assert len(phases) == count
    assert all(phase.start < phase.end <= peers << 40 for phase in phases)


def test_keys_on_both_kinds_of_ring() -> None:
    assert SPARSE.place_key(12345) == 12345
    circle = rank_circle(10)
    assert circle.place_key((1 << 64) - 1) == 9 << 40
    assert circle.place_key(1 << 63) == 5 << 40
