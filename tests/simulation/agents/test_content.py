"""The content layer on scripted trees: every owed event arrives once, with few extra messages."""

from collections import Counter
from itertools import groupby, pairwise
from random import Random

import msgspec
import networkx as nx
import pytest

from agents.announcements import Publish
from agents.protocol import Announce
from agents.pubsub.content.messages import (
    MAX_PAYLOAD_BYTES,
    Event,
    Offer,
    SubscriptionUpdate,
)
from agents.routing.similarity import EventWindow, RecentEvents
from agents.routing.tree import Recalculate, Tree
from tests.fixtures.scripted_trees import Edge, Trees
from workloads.churn import draw_churn
from workloads.content.subscription import make_point, subscribe
from workloads.kinds import draw_workload
from workloads.schedule import Schedule

EVERYTHING = subscribe({})


def still(peers: int, seed: int = 1, loss_percent: float = 0.0, **settings: object) -> Trees:
    """Peers on one tree that never changes."""
    net = Trees(peers, seed, loss_percent, **settings)  # type: ignore[arg-type]
    net.tree(0.5, 1, net.random_tree(), over_s=1.0)
    net.use(0.5, 1)
    return net.start()


def moved(net: Trees, at_s: float, version: int, edges: list[Edge]) -> list[Edge]:
    """One link of a tree is replaced within a second; each end changes at a different time."""
    graph = nx.Graph(edges)
    gone = edges[net.chance.randrange(len(edges))]
    graph.remove_edge(*gone)
    a, b = (sorted(nx.node_connected_component(graph, end)) for end in gone)
    graph.add_edge(net.chance.choice(a), net.chance.choice(b))
    return net.tree(at_s, version, list(graph.edges), over_s=1.0)


def assert_exact(net: Trees, settle_s: float = 5.0) -> None:
    found = net.delivery(settle_s)
    assert found.steady.expected > 0
    assert (found.steady.missing, found.steady.duplicates) == ({}, {})
    assert (found.unsteady.missing, found.unsteady.duplicates) == ({}, {})
    assert (found.unasked, found.departures) == ((), ())


def truly_received(net: Trees, edges: list[Edge]) -> Counter[tuple[str, int]]:
    """The peers that must receive each event on a tree: those on paths to subscribers."""
    workload = net.drawn
    paths = dict(nx.all_pairs_shortest_path(nx.Graph(edges)))
    wanted: Counter[tuple[str, int]] = Counter()
    for event_id, (event, owners) in enumerate(
        zip(workload.events, workload.receivers(), strict=True), 1
    ):
        on_path = {peer for owner in owners for peer in paths[event.publisher][owner]}
        wanted.update((net.hosts[peer], event_id) for peer in on_path - {event.publisher})
    return wanted


@pytest.mark.parametrize("distribution", ["uniform", "zipf"])
def test_on_a_constant_tree_events_take_exactly_the_paths_to_subscribers(
    distribution: str,
) -> None:
    for seed in range(5):
        net = Trees(40, seed, distribution=distribution, subscriptions=2)
        edges = net.tree(0.5, 1, net.random_tree(), over_s=1.0)
        net.use(0.5, 1)
        net.start().run(25)
        assert_exact(net)
        received = Counter((row[1], row[3]["event_id"]) for row in net.recorded("event_received"))
        assert received == truly_received(net, edges)
        assert net.sent("Offer") == 0


def test_with_two_percent_loss_on_every_link_no_event_is_missing() -> None:
    for seed in range(10):
        net = still(20, seed, 2.0).run(40)
        assert_exact(net)
        assert sum(agent.counts["resent"] for agent in net.agents.values()) > 0


@pytest.mark.parametrize("seed", range(12))
def test_events_arrive_while_the_tree_changes_in_every_way(seed: int) -> None:
    """Links move, an inner peer crashes, its children rejoin, it restarts, a new tree follows."""
    net = Trees(20, seed, 2.0, events=400)
    edges = net.tree(0.5, 1, net.random_tree(), over_s=1.0)
    net.use(0.5, 1)
    for at_s in (12, 14, 16):
        edges = moved(net, at_s, 1, edges)
    dead, _ = max(nx.Graph(edges).degree, key=lambda item: item[1])
    net.kill(17, dead)
    orphans = sorted(nx.Graph(edges)[dead])
    rest = [edge for edge in edges if dead not in edge]
    joined = [*rest, *((orphans[0], other) for other in orphans[1:])]
    net.tree(20, 1, joined, over_s=2.0)
    net.start(23, dead)
    somebody = net.chance.choice([n for n in range(20) if n != dead])
    net.tree(23.5, 1, [*joined, (dead, somebody)], over_s=0.5)
    second = net.tree(24, 2, net.random_tree(), over_s=1.0)
    net.use(26, 2, over_s=0.5)
    net.drop(28, 1, over_s=1.0)
    moved(net, 28.5, 2, second)
    net.start().run(70)
    assert_exact(net)
    repeated = len(net.recorded("event_repeated"))
    assert repeated < len(net.recorded("event_received")) / 20
    assert all(
        [v.number for v in p._trees.announced()] == [2] and len(p._trees) == 1
        for p in net.protocols.values()
    )


def test_after_a_long_partition_of_the_tree_missed_events_are_delivered() -> None:
    for seed in range(5):
        net = Trees(16, seed, events=300)
        edges = net.tree(0.5, 1, net.random_tree())
        net.use(0.5, 1)
        net.tree(12, 1, edges[:-8] + edges[-7:], over_s=1.0)
        net.tree(32, 1, edges, over_s=1.0)
        net.start().run(60)
        assert_exact(net)


def test_a_link_that_temporarily_has_one_end_loses_no_event() -> None:
    net = Trees(6, subscriptions=0)
    chain = [(n, n + 1) for n in range(5)]
    net.tree(0.5, 1, chain, over_s=8.0)
    net.use(0.5, 1)
    for number in range(6):
        net.want(number, EVERYTHING)
    middle = tuple(sorted((net.address[2], net.address[4])))
    net.tell(12, 3, Tree(1, 0, middle[:1]))
    net.tell(14, 3, Tree(1, 0, middle))
    net.start().run(35)
    assert_exact(net)


def test_temporary_cycles_end_in_the_correct_state() -> None:
    for seed in range(3):
        net = Trees(12, seed)
        edges = net.random_tree()
        extra = [(net.chance.randrange(6), net.chance.randrange(6, 12)) for _ in range(3)]
        net.tree(0.5, 1, [*edges, *(e for e in extra if e not in edges and e[::-1] not in edges)])
        net.use(0.5, 1)
        net.tree(15, 1, edges, over_s=2.0)
        net.start().run(40)
        assert_exact(net)
        late = {p for p in truly_received(net, edges) if p[1] > 160}
        received = Counter((r[1], r[3]["event_id"]) for r in net.recorded("event_received"))
        assert {pair for pair in received if pair[1] > 160} == late


def test_late_peers_get_the_events_published_after_their_start() -> None:
    for seed in range(3):
        net = Trees(12, seed)
        net.tree(0.5, 1, net.random_tree(without=range(9)))
        net.tree(14, 1, net.random_tree(), over_s=1.0)
        net.use(0.5, 1)
        net.start(0, *range(9, 12))
        net.start(13, *range(9))
        net.run(40)
        assert_exact(net)
        before = [row for row in net.recorded("event_published") if row[0] < 13_000_000]
        first = {row[3]["event_id"] for row in before}
        late = [row for row in net.recorded("delivered") if row[1] in net.hosts[:9]]
        assert late and not [row for row in late if row[3]["event_id"] in first]


def test_a_late_peer_that_is_only_in_the_new_tree_gets_events_of_the_old_one() -> None:
    net = Trees(6, subscriptions=0, events=100)
    chain = [(0, 1), (1, 2), (2, 3), (3, 4)]
    net.tree(0.5, 1, chain)
    net.use(0.5, 1)
    net.tree(11, 2, [(4, 3), (3, 0), (0, 2), (2, 1), (5, 2)])
    for number in range(6):
        net.want(number, EVERYTHING)
    net.start(0, *range(5))
    net.start(11, 5)
    net.run(30)
    assert_exact(net)
    assert not net.recorded("event_published")[-1][3]["version"] > 1
    assert len([row for row in net.recorded("delivered") if row[1] == "h6"]) > 50


def test_a_publisher_without_links_keeps_its_events_until_it_has_links() -> None:
    net = Trees(4, subscriptions=0)
    for number in range(4):
        net.want(number, EVERYTHING)
    net.tree(30, 1, [(0, 1), (1, 2), (2, 3)], over_s=1.0)
    net.use(30, 1)
    net.start().run(50)
    assert_exact(net, 25)
    assert not [row for row in net.recorded("event_received") if row[0] < 30_000_000]


def test_subscriptions_to_nothing_and_to_everything() -> None:
    net = Trees(5, subscriptions=0, attributes=2)
    nothing = subscribe({4: (1, 10)})  # an attribute that is 0 in every event
    for number in range(5):
        net.want(number, EVERYTHING if number == 4 else nothing)
    net.tree(0.5, 1, [(n, n + 1) for n in range(4)])
    net.use(0.5, 1)
    net.start().run(30)
    assert_exact(net)
    assert {row[1] for row in net.recorded("delivered")} == {"h5"}
    assert len(net.recorded("delivered")) == 200


def test_without_any_subscription_no_event_is_sent() -> None:
    net = still(8, subscriptions=0).run(30)
    assert len(net.recorded("event_published")) == 200
    assert net.sent("Event") == 0


def test_the_largest_event_fits_in_a_datagram() -> None:
    net = still(6, payload_bytes=MAX_PAYLOAD_BYTES, events=20).run(30)
    assert_exact(net)
    with pytest.raises(msgspec.ValidationError, match="payload_bytes"):
        draw_workload({"kind": "content-zipf", "payload_bytes": MAX_PAYLOAD_BYTES + 1}, 1, ["h1"])


def test_an_event_for_a_peer_that_unsubscribes_meanwhile_is_not_delivered() -> None:
    net = Trees(3, subscriptions=0, events=40)
    net.want(2, EVERYTHING, until_s=10.501)  # an event was published at 10.5
    net.want(2, EVERYTHING, from_s=11.5)
    net.tree(0.5, 1, [(0, 1), (1, 2)])
    net.use(0.5, 1)
    net.start().run(30)
    assert_exact(net, 0.2)
    got = {row[3]["event_id"] for row in net.recorded("delivered")}
    received = [row[3] for row in net.recorded("event_received") if row[1] == "h3"]
    on_its_way = {values["event_id"] for values in received if not values["is_match"]}
    assert on_its_way and not got & on_its_way
    assert not got & set(range(15, 29)) and set(range(31, 41)) <= got


def test_covered_subscriptions_return_when_the_covering_one_is_removed() -> None:
    net = Trees(4, subscriptions=0, events=100)
    narrow = subscribe({0: (0, 5)})
    net.want(2, EVERYTHING, until_s=12)
    net.want(3, narrow)
    net.tree(0.5, 1, [(0, 1), (1, 2), (1, 3)])
    net.use(0.5, 1)
    net.start().run(30)
    assert_exact(net, 2)
    wasted = [r for r in net.recorded("event_received") if r[0] > 12_500_000 and r[1] == "h3"]
    assert not wasted


def test_merging_changes_filters_but_not_the_paths_of_events() -> None:
    known, received = {}, {}
    for merging in (False, True):
        net = still(20, 2, subscriptions=6, attributes=2, merging=merging).run(25)
        assert_exact(net)
        rows = net.recorded("event_received")
        received[merging] = Counter((row[1], row[3]["event_id"]) for row in rows)
        trees = [protocol._trees._versions[1] for protocol in net.protocols.values()]
        known[merging] = sum(len(tree.table.held_of(peer)) for tree in trees for peer in tree.links)
    assert received[True] == received[False]
    assert known[True] < 0.9 * known[False]


def test_a_peer_that_restarts_unnoticed_gets_all_filters_again() -> None:
    for seed in range(5):
        net = still(12, seed, events=300)
        for number in range(0, 12, 3):
            net.kill(15, number)
            net.start(15.4, number)
        net.run(50)
        assert_exact(net)
        assert net.sent("StateWanted") > 0


def test_links_cut_for_longer_than_retransmissions_last_recover() -> None:
    """Every message is given up, and the tree does not change."""
    net = still(6, events=400)
    for host in net.hosts[:3]:
        net.simulator.set_link(11_000_000, host, net.underlay.last_mile[host].b, up=False)
        net.simulator.set_link(40_000_000, host, net.underlay.last_mile[host].b, up=True)
    net.run(110)
    assert sum(agent.counts["given_up"] for agent in net.agents.values()) > 0
    assert_exact(net, 60)


def test_stale_and_reordered_updates_change_nothing() -> None:
    net = still(2, subscriptions=0).run(5)
    one, other = net.protocols[0], net.address[1]
    wanted = [subscribe({0: (n, n)}).number for n in range(4)]

    def update(epoch: int, serial: int, added: int, complete: bool = True) -> None:
        told = SubscriptionUpdate(1, epoch, serial, complete, (wanted[added],), (), ())
        one.on_message(5_000_000, other, told)

    def held() -> set[int]:
        return set(one._trees._versions[1].table.held_of(other))

    epoch = 10_000_000
    update(epoch, 1, 1)
    assert held() == set()
    update(epoch, 0, 0, complete=False)
    assert held() == {wanted[0], wanted[1]}
    update(epoch, 0, 3)
    update(epoch - 1, 0, 3)
    assert held() == {wanted[0], wanted[1]}
    update(epoch + 1, 0, 2, complete=False)
    assert held() == {wanted[0], wanted[1], wanted[2]}
    update(epoch + 1, 1, 3)
    assert held() == {wanted[2], wanted[3]}


def test_one_seed_twice_gives_the_same_records() -> None:
    runs = [still(15, 3, 2.0).run(30).records for _ in range(2)]
    assert runs[0] == runs[1]


def test_malformed_messages_have_no_effect() -> None:
    net = still(4).run(12)
    protocol, chance = net.protocols[0], Random(1)
    point = make_point([1, 2, 3]).number
    for _ in range(2_000):
        version, event_id = chance.randrange(1 << 32), chance.choice([0, 201, 1 << 60])
        sender = chance.randrange(1, 1 << 32)
        numbers = tuple(chance.randrange(66**5) for _ in range(3))
        update = SubscriptionUpdate(version, chance.randrange(1 << 60), 0, True, numbers, (), ())
        protocol.on_message(12_000_000, sender, update)
        update = SubscriptionUpdate(1, 1, chance.randrange(9), True, numbers, (), ())
        protocol.on_message(12_000_000, sender, update)
        event = Event(event_id, 255, version, chance.randrange(1 << 60), point, b"")
        assert protocol.on_message(12_000_000, sender, event) == ()
    assert len(protocol._trees) < 10
    assert len(protocol._trees._versions[1].links) < 300
    net.run(30)
    assert_exact(net)


def test_the_history_is_announced_and_a_new_tree_requested() -> None:
    net = Trees(1, recalculate_every_events=20, events=50, history_every_events=5)
    net.use(0.5, 3)
    peer = net.start().run(9).protocols[0]
    events = [Publish(number, 0) for number in range(1, 51)]
    effects = [e for event in events for e in peer.on_announcement(10_000_000, event)]
    announced = [effect.content for effect in effects if isinstance(effect, Announce)]
    assert announced.count(Recalculate(3)) == 6
    history = [content for content in announced if isinstance(content, RecentEvents)]
    assert len(history) == 10
    assert history[-1].window() == EventWindow(50, ((1 << 50) - 1).to_bytes(7))


def test_many_peers_and_a_new_tree_under_churn() -> None:
    net = Trees(150, 4, events=600, match=0.05, rate_per_s=20.0, routers=60)
    edges = net.tree(0.5, 1, net.random_tree(), over_s=1.0)
    net.use(0.5, 1)
    plan = draw_churn(4, net.hosts, 600, Schedule(10.0, 20.0), 0.05, 100)
    away: list[int] = []
    for at_s, steps in groupby(plan, key=lambda step: step.at_s):
        for _, action, host in steps:
            number = net.hosts.index(host)
            if action == "kill-agent":
                net.kill(at_s, number)
                away.append(number)
            else:
                net.start(at_s, number)
                away.remove(number)
        edges = mended(net, at_s + 1.0, edges, away)
    net.tree(42, 2, net.random_tree(without=away), over_s=1.0)
    net.use(44, 2, over_s=0.5)
    net.drop(50, 1, over_s=1.0)
    net.start().run(80)
    assert_exact(net)


def mended(net: Trees, at_s: float, edges: list[Edge], away: list[int]) -> list[Edge]:
    """The tree without some peers, its parts joined again at random."""
    graph = nx.Graph(edges)
    graph.add_nodes_from(range(net.peers))
    graph.remove_nodes_from(away)
    pieces = [sorted(piece) for piece in nx.connected_components(graph)]
    for one, other in pairwise(pieces):
        graph.add_edge(net.chance.choice(one), net.chance.choice(other))
    return net.tree(at_s, 1, list(graph.edges), over_s=1.0)


def test_the_number_of_a_subscription_is_checked() -> None:
    with pytest.raises(ValueError, match="subscriptions"):
        SubscriptionUpdate(1, 1, 0, True, (66**5,), (), ())
    with pytest.raises(ValueError, match="point"):
        Event(1, 0, 1, 0, 11**5, b"")
    with pytest.raises(ValueError, match="offer"):
        Offer(1, True, (1, 2), (5,), (0, 0))
