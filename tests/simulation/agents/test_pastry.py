"""Agents of Pastry: their tables equal the truth under churn, and routes equal the oracle's."""

from collections.abc import Iterator
from random import Random

import pytest

from agents.overlays.identifiers import KEY_MASK, identifier_of
from agents.overlays.pastry.messages import LeafSet
from agents.overlays.pastry.tables import Tables
from agents.protocol import PeerId
from tests.fixtures.keyed_overlays import KeyedRun, check_routes
from tests.simulation.agents.test_record_schema import faults_of

PEERS = 42
SETTINGS = {"b": 2, "leaves": 6, "upkeep_s": 5.0}


def true_leaves(peers: list[PeerId], me: PeerId, half: int) -> set[PeerId]:
    """The peers next to a peer on the ring of identifiers."""
    others = sorted(
        (peer for peer in peers if peer != me),
        key=lambda peer: identifier_of(peer) - identifier_of(me) & KEY_MASK,
    )
    return {*others[:half], *others[-half:]}


def check_tables(run: KeyedRun, half: int = 3) -> None:
    """Check that leaf sets are exact, an entry is empty only if no peer fits, and no dead peer is
    in.
    """
    for me in run.live:
        tables: Tables = run.overlays[me].tables
        assert set(tables.leaves) == true_leaves(run.live, me, half)
        fitting = {tables.slot_of(peer) for peer in run.live if peer != me}
        assert tables.entries.keys() == fitting
        assert set(tables.delays_us) <= set(run.live)
        assert run.listeners[me].roles == {p: tables.role_of(p) for p in tables.delays_us}


@pytest.fixture(scope="module")
def lives() -> Iterator[KeyedRun]:
    """A run in which a third of the peers crashes at 12 s and restarts at 26 s."""
    run = KeyedRun("pastry", PEERS, **SETTINGS)
    victims = Random(2).sample(sorted(run.address), PEERS // 3)
    run.kill(12, victims)
    run.restart(26, victims)
    yield run
    run.simulator.close()


def test_tables_and_routes_are_true_after_joins(lives: KeyedRun) -> None:
    lives.run(11.9)
    check_tables(lives)
    check_routes(lives)
    assert max(listener.changed_us for listener in lives.listeners.values()) < 8_000_000


def test_tables_and_routes_are_true_after_a_third_crashed(lives: KeyedRun) -> None:
    lives.run(25.9)
    assert len(lives.live) == PEERS - PEERS // 3
    check_tables(lives)
    check_routes(lives)


def test_tables_and_routes_are_true_after_a_restart(lives: KeyedRun) -> None:
    lives.run(38)
    assert len(lives.live) == PEERS
    check_tables(lives)
    check_routes(lives)


def test_a_peer_that_leaves_is_removed_by_its_leaves_at_once() -> None:
    run = KeyedRun("pastry", 12, leaves=4)
    gone = run.address["h5"]
    run.stop(8, ["h5"])
    run.run(9)
    for peer in run.live:
        assert gone not in run.overlays[peer].tables.leaves
    assert sum(what == "placed" for _, _, what, _ in run.records) == 12
    assert not any(faults_of(what, values) for _, _, what, values in run.records)


def test_a_single_peer_is_the_root_of_all_keys() -> None:
    run = KeyedRun("pastry", 1).run(1)
    assert run.route(run.live[0], 7) == run.live


def test_with_proximity_table_entries_are_nearer() -> None:
    def mean_delay_us(proximity: bool) -> float:
        run = KeyedRun("pastry", 40, b=1, leaves=4, proximity=proximity).run(9)
        tables = [run.overlays[peer].tables for peer in run.live]
        delays = [t.delays_us[peer] for t in tables for peer in t.row(0)]
        return sum(delays) / len(delays)

    assert mean_delay_us(proximity=True) < 0.7 * mean_delay_us(proximity=False)


@pytest.mark.parametrize("seed", range(3))
def test_routes_are_true_after_churn(seed: int) -> None:
    check_after_churn(KeyedRun("pastry", 24, seed=seed, **SETTINGS), seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_routes_are_true_after_churn_with_loss(seed: int) -> None:
    check_after_churn(KeyedRun("pastry", 24, seed=seed, loss_percent=1.0, **SETTINGS), seed)


def check_after_churn(run: KeyedRun, seed: int) -> None:
    """Two of the peers crash every 2 s and restart after 0.5 to 6 s; then churn ends."""
    chance = Random(seed)
    for at_s in range(6, 22, 2):
        victims = chance.sample(sorted(run.address), 2)
        run.kill(at_s, victims)
        run.restart(at_s + chance.uniform(0.5, 6), victims)
    run.run(60)
    assert len(run.live) == 24
    check_tables(run)
    check_routes(run)


def test_no_peer_is_sent_leaves_that_it_has() -> None:
    run = KeyedRun("pastry", 20, leaves=6).run(9)
    me, other = run.live[:2]
    overlay = run.overlays[me]
    known = run.overlays[other].tables.leaves
    assert not overlay.on_message(0, other, LeafSet(tuple(known)))
