"""Gossip-based counting: the estimate converges, and the sum of values is constant."""

from ipaddress import IPv4Address
from random import Random
from statistics import mean
from typing import Any

from agents.agent import Agent
from agents.overlays.gossip import GossipSize
from agents.protocol import Surroundings
from agents.runtime.simulator import Simulator
from topologies.hosts import attach_hosts
from topologies.underlay import Underlay
from topologies.waxman import generate_waxman

PEERS = 60
UNDERLAY = attach_hosts(generate_waxman(30, seed=1), PEERS, seed=1)


class Crowd:
    """Gossiping peers on a network, each with a few contacts."""

    def __init__(self, underlay: Underlay, seed: int, **settings: Any) -> None:
        self.estimates: list[tuple[int, str, int, float]] = []
        self.protocols: dict[str, GossipSize] = {}
        self.simulator = Simulator(underlay, seed=seed, record=self._record)
        addresses = {h.name: int(IPv4Address(underlay.address[h.name])) for h in underlay.hosts}
        chance, chosen = Random(seed), GossipSize.Settings(**settings)
        for host, address in addresses.items():
            contacts = tuple(a for a in chance.sample(list(addresses.values()), 8) if a != address)
            given = Surroundings(address, contacts, Random(f"{seed}/{host}"), chosen)
            self.simulator.add_agent(host, lambda given=given, host=host: self._make(given, host))
            self.simulator.start_agent(chance.randrange(2_000_000), host)

    def _make(self, given: Surroundings, host: str) -> Agent:
        self.protocols[host] = GossipSize(given)
        return Agent(given.me, 1, self.protocols[host])

    def _record(self, time_us: int, host: str, what: str, values: Any) -> None:
        assert what == "size_estimated"
        self.estimates.append((time_us, host, values["epoch"], values["size"]))

    @property
    def mass(self) -> float:
        """The sum of the values of all peers that joined the same initiator."""
        lowest = min(protocol.initiator for protocol in self.protocols.values())
        return sum(p.value for p in self.protocols.values() if p.initiator == lowest)


def test_every_peer_estimates_the_number_of_peers_within_a_few_percent() -> None:
    for seed in range(10):
        crowd = Crowd(UNDERLAY, seed)
        crowd.simulator.run(60_000_000)
        sizes = [size for _, _, _, size in crowd.estimates]
        assert len(sizes) == PEERS
        assert all(abs(size / PEERS - 1) < 0.05 for size in sizes)


def test_the_sum_is_one_whenever_no_exchange_is_in_progress() -> None:
    crowd = Crowd(UNDERLAY, 1, rounds=10)
    crowd.simulator.run(30_000_000)
    assert len({protocol.initiator for protocol in crowd.protocols.values()}) == 1
    assert abs(crowd.mass - 1) < 1e-12


def test_every_epoch_counts_again_without_peers_that_left() -> None:
    crowd = Crowd(UNDERLAY, 2, rounds=30, epochs=2)
    gone = [host.name for host in UNDERLAY.hosts[:20]]
    for host in gone:
        crowd.simulator.kill_agent(28_000_000, host)
    crowd.simulator.run(120_000_000)
    first = [size for _, _, epoch, size in crowd.estimates if epoch == 0]
    second = [size for _, host, epoch, size in crowd.estimates if epoch == 1 and host not in gone]
    assert abs(mean(first) / PEERS - 1) < 0.05
    assert len(second) == PEERS - 20
    assert abs(mean(second) / (PEERS - 20) - 1) < 0.05


def test_a_peer_without_contacts_counts_itself() -> None:
    given = Surroundings(5, (), Random(1), GossipSize.Settings(rounds=0, period_us=10))
    protocol = GossipSize(given)
    assert [effect.values for effect in protocol.on_timer(0, "round")] == [{"epoch": 0, "size": 1}]
