"""Agents of skip-net: their rings equal the truth under churn, and routes equal the oracle's."""

from collections.abc import Iterator
from random import Random

import pytest

from agents.overlays.identifiers import common_bits, identifier_of
from agents.overlays.skip_graph.keys import Key
from agents.overlays.skip_graph.level import Level
from agents.overlays.skip_graph.rings import Rings
from agents.protocol import PeerId, Send
from tests.fixtures.keyed_overlays import KeyedRun, check_routes
from tests.simulation.agents.test_record_schema import faults_of

PEERS = 30
SETTINGS = {"check_s": 3.0}


def levels_of(run: KeyedRun, peer: PeerId) -> list[Level]:
    """The levels of a peer with only one key."""
    (node,) = run.overlays[peer].rings.nodes.values()
    found: list[Level] = node.levels
    return found


def check_rings(run: KeyedRun) -> None:
    """Check that neighbours on each level are the next peers with a common prefix of its length."""
    for me in run.live:
        ring, number, neighbours = run.live, 0, set()
        while len(ring) > 1:
            at, level = ring.index(me), levels_of(run, me)[number]
            ends = ring[at - 1], ring[(at + 1) % len(ring)]
            assert level.left is not None
            assert (level.left.peer, level.right.peer) == ends
            assert [key.peer for key in level.rights] == following(ring, at)[: len(level.rights)]
            assert not level.is_closed or len(level.rights) == len(ring) - 1
            neighbours.update(ends)
            number += 1
            ring = [p for p in ring if common_bits(identifier_of(p), identifier_of(me)) >= number]
        assert all(level.is_alone for level in levels_of(run, me)[number:])
        assert run.listeners[me].roles == dict.fromkeys(neighbours, "level")


def following(ring: list[PeerId], at: int) -> list[PeerId]:
    """The other members of a ring, from the next one on."""
    return ring[at + 1 :] + ring[:at]


@pytest.fixture(scope="module")
def lives() -> Iterator[KeyedRun]:
    """A run in which a third of the peers crashes at 12 s and restarts at 30 s."""
    run = KeyedRun("skip-net", PEERS, **SETTINGS)
    victims = Random(2).sample(sorted(run.address), PEERS // 3)
    run.kill(12, victims)
    run.restart(30, victims)
    yield run
    run.simulator.close()


def test_rings_and_routes_are_true_after_joins(lives: KeyedRun) -> None:
    lives.run(11.9)
    check_rings(lives)
    check_routes(lives)
    assert max(listener.changed_us for listener in lives.listeners.values()) < 6_000_000


def test_rings_and_routes_are_true_after_a_third_crashed(lives: KeyedRun) -> None:
    lives.run(29.9)
    assert len(lives.live) == PEERS - PEERS // 3
    check_rings(lives)
    check_routes(lives)


def test_rings_and_routes_are_true_after_a_restart(lives: KeyedRun) -> None:
    lives.run(46)
    assert len(lives.live) == PEERS
    check_rings(lives)
    check_routes(lives)
    assert not any(faults_of(what, values) for _, _, what, values in lives.records)


def test_a_peer_that_leaves_is_replaced_at_once() -> None:
    run = KeyedRun("skip-net", 12)
    run.stop(9, ["h5"])
    run.run(9.5)
    assert len(run.live) == 11
    check_rings(run)


def test_a_single_peer_is_the_root_of_all_keys() -> None:
    run = KeyedRun("skip-net", 1).run(1)
    assert run.route(run.live[0], 7) == run.live


@pytest.mark.parametrize("seed", range(4))
def test_routes_are_true_after_churn(seed: int) -> None:
    check_after_churn(KeyedRun("skip-net", 20, seed=seed, **SETTINGS), seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_routes_are_true_after_churn_with_loss(seed: int) -> None:
    check_after_churn(KeyedRun("skip-net", 20, seed=seed, loss_percent=1.0, **SETTINGS), seed)


def check_after_churn(run: KeyedRun, seed: int) -> None:
    """Two of the peers crash every 2 s and restart after 0.5 to 6 s; then churn ends."""
    chance = Random(seed)
    for at_s in range(6, 22, 2):
        victims = chance.sample(sorted(run.address), 2)
        run.kill(at_s, victims)
        run.restart(at_s + chance.uniform(0.5, 6), victims)
    run.run(60)
    assert len(run.live) == 20
    check_rings(run)
    check_routes(run)


@pytest.mark.parametrize("seed", range(3))
def test_two_rings_that_meet_are_merged(seed: int) -> None:
    """The peers of two rings have several keys each; the rings are joined by one key."""
    chance = Random(seed)
    keys = chance.sample([Key(t, r, p) for t in range(5) for r in (0, 1) for p in range(1, 7)], 24)
    network = Network({key.peer for key in keys})
    halves = keys[:12], keys[12:]
    for half in halves:
        for key in half:
            network.insert(key, [half[0]] if key != half[0] else [])
    network.settle()
    assert len(network.ring_from(halves[0][0])) == 12
    network.check(halves[0][1], [halves[1][1]])
    network.settle()
    in_order = sorted(keys)
    for key in keys:
        at = in_order.index(key)
        assert network.ring_from(key) == in_order[at:] + in_order[:at]
        level = network.level_zero(key)
        assert level.left == in_order[at - 1]


class Network:
    """Peers whose messages arrive at once, in the order of sending."""

    def __init__(self, peers: set[PeerId]) -> None:
        self.rings = {peer: Rings(peer) for peer in sorted(peers)}
        self._sent: list[tuple[PeerId, Send]] = []
        self._now_us = 0

    def insert(self, key: Key, starts: list[Key]) -> None:
        """Add a key, and let it join."""
        self._send(key.peer, self.rings[key.peer].insert(self._now_us, key, starts))
        self._deliver()

    def check(self, key: Key, starts: list[Key]) -> None:
        """Let the peer of a key check its links after a message about another key."""
        self._send(key.peer, self.rings[key.peer].check(self._now_us, starts))
        self._deliver()

    def settle(self) -> None:
        """Let all peers check their links until nothing changes."""
        for _ in range(30):
            self._now_us += 3_000_000
            for peer, rings in self.rings.items():
                self._send(peer, rings.try_again(self._now_us, []))
                self._deliver()
                self._send(peer, rings.check(self._now_us, []))
                self._deliver()

    def level_zero(self, key: Key) -> Level:
        """The lowest level of a key."""
        return self.rings[key.peer].nodes[key].levels[0]

    def ring_from(self, key: Key) -> list[Key]:
        """The keys of the whole ring, starting at one of them."""
        found = [key]
        while (right := self.level_zero(found[-1]).right) != key and len(found) < 100:
            found.append(right)
        return found

    def _send(self, peer: PeerId, effects: object) -> None:
        assert isinstance(effects, list)
        self._sent += [(peer, effect) for effect in effects]

    def _deliver(self) -> None:
        for _ in range(100_000):
            if not self._sent:
                return
            sender, send = self._sent.pop(0)
            rings = self.rings[send.to]
            self._send(send.to, rings.on_message(self._now_us, sender, send.message))
        raise AssertionError("messages without end")
