"""Hosts, anonymous routers and asymmetric delays on top of an underlay."""

import math
from collections import Counter
from dataclasses import replace

import pytest

from topologies.domain_sizes import DomainSizes
from topologies.errors import TopologyError
from topologies.hosts import attach_hosts, make_anonymous, make_asymmetric, make_lossy
from topologies.routes import Routes
from topologies.transit_stub import generate_transit_stub
from topologies.underlay import Channel, Link, Router, Underlay
from topologies.underlay_file import underlay_to_json
from topologies.waxman import generate_waxman

WAXMAN = generate_waxman(60, seed=1)


def test_hosts_are_named_and_each_has_a_last_mile() -> None:
    underlay = attach_hosts(WAXMAN, 40, seed=1)
    assert [host.name for host in underlay.hosts] == [f"h{n}" for n in range(1, 41)]
    assert set(underlay.access_router) == {host.name for host in underlay.hosts}
    assert underlay.routers == WAXMAN.routers
    assert underlay.links[: len(WAXMAN.links)] == WAXMAN.links


def test_hosts_spread_over_all_routers() -> None:
    crowds = Counter(attach_hosts(WAXMAN, 600, seed=1).access_router.values())
    assert len(crowds) == 60
    assert max(crowds.values()) < 30


def test_hosts_are_on_stub_routers_if_there_are_any() -> None:
    network = generate_transit_stub(DomainSizes(2, 3, 1, 2), seed=1)
    underlay = attach_hosts(network, 300, seed=2)
    stubs = {router.name for router in network.routers if router.role == "stub"}
    assert set(underlay.access_router.values()) == stubs


def test_last_miles_are_5_to_10_percent_of_the_mean_delay() -> None:
    underlay = attach_hosts(WAXMAN, 500, seed=3)
    mean_us = Routes(WAXMAN).mean_delay_us()
    shares = sorted(link.ab.delay_us / mean_us for link in underlay.last_mile.values())
    assert shares[0] == pytest.approx(0.05, abs=0.001)
    assert shares[250] == pytest.approx(0.075, abs=0.005)
    assert shares[-1] == pytest.approx(0.10, abs=0.001)
    assert all(link.ab == link.ba for link in underlay.last_mile.values())


def test_coordinates_of_hosts_are_near_their_routers() -> None:
    underlay = attach_hosts(WAXMAN, 20, seed=4)
    place = {router.name: (router.x, router.y) for router in underlay.routers}
    for host in underlay.hosts:
        distance = math.dist((host.x, host.y), place[underlay.access_router[host.name]])
        assert 0 < distance < 20


def test_one_router_is_enough_for_hosts() -> None:
    underlay = attach_hosts(Underlay((Router("r1"),), ()), 3, seed=1)
    assert [link.ab.delay_us for link in underlay.last_mile.values()] == [1, 1, 1]


def test_anonymous_routers_are_the_requested_share_and_nothing_else_changes() -> None:
    underlay = attach_hosts(WAXMAN, 5, seed=1)
    changed = make_anonymous(underlay, 1 / 3, seed=2)
    assert sum(router.anonymous for router in changed.routers) == 20
    assert tuple(replace(router, anonymous=False) for router in changed.routers) == WAXMAN.routers
    assert (changed.links, changed.hosts) == (underlay.links, underlay.hosts)


def test_a_larger_share_includes_the_anonymous_routers_of_a_smaller_one() -> None:
    few, many = (
        {r.name for r in make_anonymous(WAXMAN, share, seed=5).routers if r.anonymous}
        for share in (0.2, 0.5)
    )
    assert few < many
    again = make_anonymous(make_anonymous(WAXMAN, 0.5, seed=5), 0.2, seed=5)
    assert {router.name for router in again.routers if router.anonymous} == few


def test_all_or_no_routers_can_be_anonymous() -> None:
    assert all(router.anonymous for router in make_anonymous(WAXMAN, 1, seed=1).routers)
    assert make_anonymous(WAXMAN, 0, seed=1).routers == WAXMAN.routers


def test_asymmetric_delays_are_within_the_spread_and_cover_it() -> None:
    changed = make_asymmetric(WAXMAN, 0.3, seed=1)
    factors = []
    for old, new in zip(WAXMAN.links, changed.links, strict=True):
        for before, after in ((old.ab, new.ab), (old.ba, new.ba)):
            assert abs(after.delay_us - before.delay_us) <= 0.3 * before.delay_us + 0.5
            factors.append(after.delay_us / before.delay_us)
    assert min(factors) < 0.75 and max(factors) > 1.25
    assert sum(link.ab != link.ba for link in changed.links) > 110


def test_asymmetric_delays_give_asymmetric_routes() -> None:
    def one_way_pairs(underlay: Underlay) -> int:
        routes = Routes(underlay)
        names = [router.name for router in underlay.routers[:20]]
        paths = {(a, b): routes.path(a, b) for a in names for b in names}
        return sum(paths[a, b] != paths[b, a][::-1] for a, b in paths)

    assert one_way_pairs(WAXMAN) == 0
    assert one_way_pairs(make_asymmetric(WAXMAN, 0.3, seed=1)) > 40


def test_asymmetry_does_not_change_last_miles_rates_and_zero_delays() -> None:
    still = Channel(0, rate_mbit=10.0, loss_percent=1.0, queue_packets=5)
    slow = replace(still, delay_us=1000)
    routers = (Router("r1"), Router("r2"))
    network = Underlay(routers, (Link("r1", "r2", still, slow),))
    changed = make_asymmetric(attach_hosts(network, 2, seed=1), 0.9, seed=1)
    link, *last_miles = changed.links
    assert link.ab == still
    assert link.ba != slow
    assert replace(link.ba, delay_us=1000) == slow
    assert tuple(last_miles) == attach_hosts(network, 2, seed=1).links[1:]


def test_loss_applies_to_all_links_in_both_directions() -> None:
    whole = attach_hosts(WAXMAN, 5, seed=2)
    lossy = make_lossy(whole, 2.5)
    assert {c.loss_percent for link in lossy.links for c in (link.ab, link.ba)} == {2.5}
    assert replace(make_lossy(lossy, 0), source=whole.source) == whole
    assert lossy.source["loss"] == {"percent": 2.5}
    with pytest.raises(TopologyError, match="loss_percent: expected a percentage .*, found 101"):
        make_lossy(WAXMAN, 101)


def test_the_source_describes_all_steps() -> None:
    underlay = attach_hosts(WAXMAN, 5, seed=2)
    underlay = make_asymmetric(make_anonymous(underlay, 0.25, seed=3), 0.5, seed=4)
    assert underlay.source == {
        **WAXMAN.source,
        "hosts": {"count": 5, "seed": 2},
        "anonymous_routers": {"share": 0.25, "seed": 3},
        "asymmetric_delays": {"spread": 0.5, "seed": 4},
    }
    assert "hosts" not in WAXMAN.source


def test_a_seed_determines_the_result() -> None:
    def build(seed: int) -> str:
        underlay = make_anonymous(attach_hosts(WAXMAN, 9, seed), 0.5, seed)
        return underlay_to_json(make_asymmetric(underlay, 0.2, seed))

    assert build(1) == build(1)
    assert build(1) != build(2)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(TopologyError, match="hosts: expected 1 or more, found 0"):
        attach_hosts(WAXMAN, 0, seed=1)
    with pytest.raises(TopologyError, match="hosts: expected an underlay without hosts, found 1"):
        attach_hosts(attach_hosts(WAXMAN, 1, seed=1), 1, seed=1)
    with pytest.raises(
        TopologyError, match=r"anonymous_routers: expected a share from 0 to 1, found 1\.1"
    ):
        make_anonymous(WAXMAN, 1.1, seed=1)
    with pytest.raises(
        TopologyError, match="asymmetry: expected a share from 0 to below 1, found 1"
    ):
        make_asymmetric(WAXMAN, 1, seed=1)
    for change in (attach_hosts, make_anonymous, make_asymmetric):
        with pytest.raises(TopologyError, match="seed: expected a whole number, 0 or more"):
            change(WAXMAN, 0.5 if change is not attach_hosts else 1, seed=-1)
