"""Our generators compared with known properties and files of BRITE and GT-ITM.

Single networks vary randomly, so means over seeds are compared. Margins are about three times the
random variation.
"""

import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from topologies.transit_stub import generate_transit_stub
from topologies.underlay import Underlay
from topologies.waxman import generate_waxman

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "topologies"
BRITE_FILE, GT_ITM_FILE = DATA / "RTWaxman1640.brite", DATA / "ts1584a-0.alt"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="no files of the original generators")

SEEDS = range(5)


@dataclass(frozen=True)
class Network:
    """A network: labels of its routers, and ends and lengths of its links."""

    labels: list[str]
    ends: np.ndarray
    lengths: np.ndarray

    @cached_property
    def degrees(self) -> np.ndarray:
        return np.bincount(self.ends.ravel(), minlength=len(self.labels))

    @cached_property
    def hops(self) -> np.ndarray:
        """Hops to all routers from every third router, which suffice for a mean."""
        count = len(self.labels)
        graph = coo_array((np.ones(len(self.ends)), self.ends.T), shape=(count, count)).tocsr()
        return dijkstra(graph, directed=False, unweighted=True, indices=range(0, count, 3))

    @cached_property
    def mean_hops(self) -> float:
        return self.hops[self.hops > 0].mean()

    @cached_property
    def stub_hops(self) -> np.ndarray:
        is_stub = np.array([label[0] == "S" for label in self.labels])
        hops = self.hops[is_stub[::3]][:, is_stub]
        return hops[hops > 0]

    @cached_property
    def link_kinds(self) -> Counter[str]:
        """Numbers of links inside and between domains: T T, S S, TxT, TxS."""
        kinds: Counter[str] = Counter()
        for a, b in self.ends:
            one, other = self.labels[a], self.labels[b]
            inside = one.rpartition(".")[0] == other.rpartition(".")[0]
            kinds[f"{one[0]}{' ' if inside else 'x'}{other[0]}"] += 1
        return kinds

    def domain_sizes(self, role: str) -> list[int]:
        domains = Counter(label.rpartition(".")[0] for label in self.labels if label[0] == role)
        return sorted(domains.values())

    def later_transit_density(self) -> tuple[int, int]:
        """Numbers of links and of pairs of routers in the transit domains after the first."""
        sizes = Counter(label.partition(".")[0] for label in self.labels if label[0] == "T")
        links = sum(
            self.labels[a].partition(".")[0] == self.labels[b].partition(".")[0] != "T:0"
            for a, b in self.ends
            if self.labels[a][0] == self.labels[b][0] == "T"
        )
        return links, sum(math.comb(size, 2) for name, size in sizes.items() if name != "T:0")


def from_underlay(underlay: Underlay) -> Network:
    index = underlay.router_index
    ends = np.array([(index[link.a], index[link.b]) for link in underlay.links])
    places = np.array([(router.x, router.y) for router in underlay.routers])
    lengths = np.hypot(*(places[ends[:, 0]] - places[ends[:, 1]]).T)
    return Network([router.label for router in underlay.routers], ends, lengths)


def read_table(path: Path, title: str, row: str) -> list[list[str]]:
    """The columns of the lines after a title that match the row."""
    text = path.read_text().partition(title)[2]
    return [line.split() for line in re.findall(row, text, re.MULTILINE)]


@cache
def brite_network() -> Network:
    nodes = read_table(BRITE_FILE, "Nodes:", r"^.*RT_NODE.*$")
    edges = read_table(BRITE_FILE, "Edges:", r"^.*E_RT.*$")
    ends = np.array([edge[1:3] for edge in edges], dtype=int)
    return Network([""] * len(nodes), ends, np.array([float(edge[3]) for edge in edges]))


@cache
def gt_itm_network() -> Network:
    nodes = read_table(GT_ITM_FILE, "VERTICES", r"^\d+ [TS]:.*$")
    edges = read_table(GT_ITM_FILE, "EDGES", r"^\d+ \d+ \d+ .*$")
    ends = np.array([edge[:2] for edge in edges], dtype=int)
    return Network([node[1] for node in nodes], ends, np.array([float(e[2]) for e in edges]))


@cache
def waxman_networks() -> list[Network]:
    return [from_underlay(generate_waxman(seed=seed)) for seed in SEEDS]


@cache
def transit_stub_networks() -> list[Network]:
    return [from_underlay(generate_transit_stub(seed=seed)) for seed in SEEDS]


def test_waxman_has_the_known_properties_of_brite() -> None:
    networks = waxman_networks()
    assert all(len(network.ends) == 3280 for network in networks)
    assert all(network.degrees.mean() == 4 for network in networks)
    assert 18 <= np.mean([network.degrees.max() for network in networks]) <= 23
    assert np.mean([network.mean_hops for network in networks]) == pytest.approx(5.23, abs=0.04)
    assert 8 <= np.mean([network.hops.max() for network in networks]) <= 9.5


@needs_data
def test_waxman_resembles_a_file_of_brite() -> None:
    real, ours = brite_network(), waxman_networks()
    assert len(real.ends) == len(ours[0].ends)
    assert np.mean([n.mean_hops for n in ours]) == pytest.approx(real.mean_hops, abs=0.05)
    for percent in (5, 25, 50, 75, 95):
        found = np.mean([np.percentile(network.lengths, percent) for network in ours])
        assert found == pytest.approx(np.percentile(real.lengths, percent), rel=0.06)
    shares = [np.bincount(np.minimum(n.degrees, 10)) / 1640 for n in (real, *ours)]
    assert np.mean(shares[1:], axis=0) == pytest.approx(shares[0], abs=0.025)


def test_transit_stub_has_the_known_properties_of_gt_itm() -> None:
    networks = transit_stub_networks()
    assert np.mean([len(network.ends) for network in networks]) == pytest.approx(2813, abs=60)
    assert np.mean([n.degrees.mean() for n in networks]) == pytest.approx(3.55, abs=0.08)
    assert 13 <= np.mean([network.degrees.max() for network in networks]) <= 16
    # The random variation is large: the six transit domains may form anything from a row to a mesh.
    assert np.mean([network.mean_hops for network in networks]) == pytest.approx(8.34, abs=0.6)
    quantiles = [np.percentile(n.stub_hops, (5, 25, 50, 75, 95)) for n in networks]
    assert np.mean(quantiles, axis=0) == pytest.approx([5, 7, 8, 10, 12], abs=1)


@needs_data
def test_transit_stub_resembles_a_file_of_gt_itm() -> None:
    real, ours = gt_itm_network(), transit_stub_networks()
    for kind, margin in (("S S", 0.04), ("TxS", 0), ("TxT", 0.5), ("T T", 0.3)):
        found = np.mean([network.link_kinds[kind] for network in ours])
        assert found == pytest.approx(real.link_kinds[kind], rel=margin), kind
    for percent in (5, 25, 50, 75, 95):
        found = np.mean([np.percentile(network.lengths, percent) for network in ours])
        assert found == pytest.approx(np.percentile(real.lengths, percent), rel=0.1, abs=1)
    shares = [np.bincount(np.minimum(n.degrees, 9)) / 1584 for n in (real, *ours)]
    assert np.mean(shares[1:], axis=0) == pytest.approx(shares[0], abs=0.03)


@needs_data
def test_sizes_of_domains_vary_as_in_gt_itm() -> None:
    real, ours = gt_itm_network(), transit_stub_networks()
    assert np.mean(real.domain_sizes("S")) == np.mean(ours[0].domain_sizes("S")) == 8
    found = np.mean([np.std(network.domain_sizes("S")) for network in ours])
    assert found == pytest.approx(np.std(real.domain_sizes("S")), rel=0.15)


@needs_data
def test_properties_of_gt_itms_program_are_in_its_file_and_in_our_networks() -> None:
    for network in (gt_itm_network(), *transit_stub_networks()):
        joined: defaultdict[frozenset[str], int] = defaultdict(int)
        for a, b in network.ends:
            names = {network.labels[end].partition(".")[0] for end in (a, b)}
            if len(names) == 2 and all(name[0] == "T" for name in names):
                joined[frozenset(names)] += 1
        assert set(joined.values()) == {2}
    links, pairs = np.sum([n.later_transit_density() for n in transit_stub_networks()], axis=0)
    real_links, real_pairs = gt_itm_network().later_transit_density()
    assert links / pairs == pytest.approx(real_links / real_pairs, abs=0.1)
    assert links / pairs == pytest.approx(0.44, abs=0.05)
