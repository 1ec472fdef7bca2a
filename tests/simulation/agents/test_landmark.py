"""The landmark approach: the trees are trees for many seeds and under failures."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from ipaddress import IPv4Address
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from agents.agent import Agent
from agents.overlays.gossip import Push
from agents.overlays.landmark.election import LandmarkGossip, LandmarkSet
from agents.overlays.landmark.messages import (
    Accept,
    Connect,
    Exchange,
    Heartbeat,
    Join,
    Landmark,
    NewParent,
)
from agents.overlays.landmark.overlay import LandmarkOverlay
from agents.overlays.landmark.settings import LandmarkSettings
from agents.overlays.landmark.tree import Tree, parcels
from agents.probing.prefix import is_prefix
from agents.protocol import (
    Announce,
    Delay,
    MeasureDelay,
    Neighbours,
    PeerId,
    Record,
    Send,
    Surroundings,
)
from agents.runtime.simulator import Simulator
from testbed.errors import ExperimentError
from testbed.experiment.settings import read_settings
from topologies.hosts import attach_hosts, make_anonymous
from topologies.underlay import Channel, Host, Link, Router, Underlay
from topologies.waxman import generate_waxman

pytestmark = pytest.mark.slow

PEERS = 40
UNDERLAY = attach_hosts(generate_waxman(30, seed=1), PEERS, seed=1)
SETTINGS = {"targets": 5, "heartbeat_us": 1_000_000}
S = 1_000_000
ELECTED = 11 * S  # after the first draw of all peers


def with_loss(underlay: Underlay, percent: float) -> Underlay:
    def spoil(channel: Channel) -> Channel:
        return replace(channel, loss_percent=percent)

    links = (replace(link, ab=spoil(link.ab), ba=spoil(link.ba)) for link in underlay.links)
    return replace(underlay, links=tuple(links))


class Wood:
    """Peers on a network, each with a few contacts, and their records."""

    def __init__(
        self, underlay: Underlay = UNDERLAY, seed: int = 1, over_us: int = S, **settings: Any
    ) -> None:
        self.records: list[tuple[int, str, str, dict[str, Any]]] = []
        self.protocols: dict[PeerId, LandmarkOverlay] = {}
        self.simulator = Simulator(
            underlay, seed=seed, record=lambda *row: self.records.append((*row[:3], dict(row[3])))
        )
        self.address = {h.name: int(IPv4Address(underlay.address[h.name])) for h in underlay.hosts}
        self.host = {address: host for host, address in self.address.items()}
        self._settings = LandmarkSettings(**{**SETTINGS, **settings})
        self._seed = seed
        chance = Random(seed)
        for host, me in self.address.items():
            others = [address for address in self.address.values() if address != me]
            contacts = tuple(chance.sample(others, min(3, len(others))))
            self.simulator.add_agent(host, lambda me=me, them=contacts: self._make(me, them))
            self.simulator.start_agent(chance.randrange(over_us), host)

    def _make(self, me: PeerId, contacts: tuple[PeerId, ...]) -> Agent:
        given = Surroundings(me, contacts, Random(f"{self._seed}/{me}"), self._settings)
        self.protocols[me] = LandmarkOverlay(given)
        return Agent(me, 1, self.protocols[me])

    def run(self, until_us: int) -> "Wood":
        self.simulator.run(until_us)
        return self

    def grow(self, from_us: int, until_us: int, *, is_best: bool = True) -> "Wood":
        """Run to a time, and on until all trees are correct, which may take longer after an
        election.
        """
        for at_us in range(from_us, until_us, 4 * S):
            if is_whole(self.run(at_us), is_best):
                return self
        check(self.run(until_us), is_best)
        return self

    def kill(self, *peers: PeerId) -> None:
        for peer in peers:
            self.simulator.kill_agent(self.simulator.now_us, self.host[peer])
            del self.protocols[peer]

    def landmarks(self) -> list[PeerId]:
        """The peers that the first peer regards as landmarks."""
        protocol = next(iter(self.protocols.values()))
        return [landmark.peer for landmark in protocol.gossip.landmarks.alive()]

    def tree(self, root: PeerId) -> dict[PeerId, Tree]:
        return {peer: protocol.forest.trees[root] for peer, protocol in self.protocols.items()}

    def recorded(self, what: str) -> list[dict[str, Any]]:
        return [values for _, _, done, values in self.records if done == what]

    def recorded_neighbours(self, peer: PeerId) -> set[PeerId]:
        """The neighbours of a peer at the end of its records, since its last start."""
        neighbours: set[PeerId] = set()
        for _, host, what, values in self.records:
            if host == self.host[peer]:
                if what == "agent_started":
                    neighbours.clear()
                elif what == "neighbour_added":
                    assert values["peer"] not in neighbours
                    neighbours.add(values["peer"])
                elif what == "neighbour_removed":
                    neighbours.remove(values["peer"])
        return neighbours


def check_tree(root: PeerId, tree: dict[PeerId, Tree]) -> None:
    """Check for one root, no cycles, agreement of both link ends, and parents on the route."""
    assert tree[root].parent is None and tree[root].route == ()
    for peer, place in tree.items():
        for child, route in place.children.items():
            assert tree[child].parent == peer and tree[child].route == route
        if peer == root:
            continue
        assert place.parent is not None
        assert peer in tree[place.parent].children
        assert is_prefix(tree[place.parent].route, place.route) and place.route
        assert root in ancestors(tree, peer)


def ancestors(tree: dict[PeerId, Tree], peer: PeerId) -> list[PeerId]:
    found: list[PeerId] = []
    parent = tree[peer].parent
    while parent is not None:
        assert parent not in found, "a cycle"
        found.append(parent)
        parent = tree[parent].parent
    return found


def check_best_places(root: PeerId, tree: dict[PeerId, Tree]) -> None:
    """Check that every peer's parent has the longest route that is a prefix of the peer's own."""
    lengths = defaultdict(set)
    for peer, place in tree.items():
        lengths[place.route].add(peer)
    for peer, place in tree.items():
        if peer != root:
            parent = place.parent
            assert parent is not None
            ends = (place.route[:end] for end in range(len(place.route)))
            longest = max(len(end) for end in ends if lengths[end])
            twins = lengths[place.route] - {peer}
            assert parent in twins or len(tree[parent].route) == longest
            # One of several twins is the parent of the others.
            assert parent not in twins or tree[parent].parent not in twins


def components(wood: Wood) -> int:
    links = {peer: protocol.forest.neighbours() for peer, protocol in wood.protocols.items()}
    unseen, count = set(links), 0
    while unseen:
        count += 1
        reached = [unseen.pop()]
        while reached:
            near = links[reached.pop()] & unseen
            unseen -= near
            reached += near
    return count


def check(wood: Wood, is_best: bool = True) -> None:
    """Check that all peers are in all trees, that these are trees, and that records agree."""
    landmarks = wood.landmarks()
    assert landmarks and set(landmarks) <= set(wood.protocols)
    for protocol in wood.protocols.values():
        assert [landmark.peer for landmark in protocol.gossip.landmarks.alive()] == landmarks
        assert set(protocol.forest.trees) == set(landmarks)
    for root in landmarks:
        check_tree(root, wood.tree(root))
        if is_best:
            check_best_places(root, wood.tree(root))
    assert components(wood) == 1
    for peer, protocol in wood.protocols.items():
        assert wood.recorded_neighbours(peer) == protocol.forest.neighbours()


def is_whole(wood: Wood, is_best: bool) -> bool:
    try:
        check(wood, is_best)
    except (AssertionError, KeyError):
        return False
    return True


@pytest.mark.parametrize("seed", range(8))
def test_every_peer_finds_the_best_position_in_every_tree(seed: int) -> None:
    wood = Wood(seed=seed).grow(24 * S, 84 * S)
    sizes = [values["size"] for values in wood.recorded("size_estimated")]
    assert len(sizes) >= PEERS and all(abs(size / PEERS - 1) < 0.1 for size in sizes)
    # Only landmarks infer, and once for each peer.
    assert len(wood.recorded("route_inferred")) == len(wood.landmarks()) * (PEERS - 1)


def test_the_number_of_landmarks_is_about_the_configured_one() -> None:
    woods = [Wood(seed=seed, targets=8).run(ELECTED) for seed in range(12)]
    counts = [len(wood.recorded("landmark_elected")) for wood in woods]
    assert 6 < sum(counts) / len(counts) < 10


@pytest.mark.parametrize("factor", [0.5, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_wrong_estimates_change_only_the_number_of_landmarks(seed: int, factor: float) -> None:
    wood = Wood(seed=seed, size_factor=factor).grow(70 * S, 130 * S)
    assert 1 <= len(wood.landmarks()) <= 4 * SETTINGS["targets"]


@pytest.mark.parametrize("seed", range(4))
def test_peers_that_start_at_any_time_find_their_position(seed: int) -> None:
    wood = Wood(seed=seed, over_us=40 * S).grow(100 * S, 160 * S)
    assert len(wood.landmarks()) < 15


@pytest.mark.parametrize("seed", range(5))
def test_lost_messages_are_repeated(seed: int) -> None:
    wood = Wood(with_loss(UNDERLAY, 5), seed)
    wood.grow(40 * S, 300 * S, is_best=False)


@pytest.mark.parametrize("seed", range(4))
def test_a_third_of_the_routers_can_be_silent(seed: int) -> None:
    wood = Wood(make_anonymous(UNDERLAY, 0.33, seed), seed).grow(60 * S, 120 * S)
    assert any(0 in place.route for place in wood.tree(wood.landmarks()[0]).values())


@pytest.mark.parametrize("seed", range(5))
def test_children_of_a_crashed_parent_rejoin_without_new_inference(seed: int) -> None:
    wood = Wood(seed=seed).grow(24 * S, 48 * S)
    before = wood.recorded("route_inferred")
    landmarks = wood.landmarks()
    parents = {place.parent for root in landmarks for place in wood.tree(root).values()}
    wood.kill(*sorted(p for p in parents if p is not None and p not in landmarks)[:6])
    wood.grow(60 * S, 120 * S)
    assert wood.recorded("route_inferred") == before
    assert any(values["reason"] == "failed" for values in wood.recorded("neighbour_removed"))


@pytest.mark.parametrize("at_us", [10_900_000, 11_300_000, 12_000_000])
def test_a_landmark_that_crashes_while_peers_join_is_replaced(at_us: int) -> None:
    for seed in range(2):
        wood = Wood(seed=seed).run(at_us)
        elected = [host for _, host, what, _ in wood.records if what == "landmark_elected"]
        wood.kill(wood.address[elected[0]])
        wood.grow(60 * S, 210 * S)
        assert wood.address[elected[0]] not in wood.landmarks()


@pytest.mark.parametrize("seed", range(2))
def test_when_all_landmarks_crash_new_ones_are_elected(seed: int) -> None:
    wood = Wood(seed=seed).grow(24 * S, 48 * S)
    old = wood.landmarks()
    wood.kill(*old)
    wood.grow(90 * S, 220 * S)
    assert not set(old) & set(wood.landmarks())


@pytest.mark.parametrize("seed", range(3))
def test_a_landmark_that_is_wrongly_reported_dead_refutes_it(seed: int) -> None:
    wood = Wood(seed=seed).grow(24 * S, 48 * S)
    landmarks = wood.landmarks()
    before = len(wood.recorded("route_inferred"))
    slanderer = wood.protocols[next(p for p in wood.protocols if p not in landmarks)]
    slanderer.gossip.landmarks.bury(landmarks[0])
    wood.grow(70 * S, 130 * S)
    assert set(landmarks) <= set(wood.landmarks())
    assert wood.recorded("death_refuted")
    new = len(wood.landmarks()) - len(landmarks)
    assert len(wood.recorded("route_inferred")) == before + new * (PEERS - 1)


@pytest.mark.parametrize("seed", range(3))
def test_a_landmark_that_restarts_remains_a_landmark(seed: int) -> None:
    wood = Wood(seed=seed).grow(24 * S, 48 * S)
    landmarks = wood.landmarks()
    wood.simulator.start_agent(wood.simulator.now_us, wood.host[landmarks[0]])
    wood.grow(90 * S, 150 * S)
    assert set(landmarks) <= set(wood.landmarks())


@pytest.mark.parametrize("seed", range(4))
def test_when_a_peer_leaves_its_children_move_before_a_timeout(seed: int) -> None:
    wood = Wood(seed=seed).grow(24 * S, 34 * S).run(35 * S)
    leaving = [peer for peer in wood.host if peer not in wood.landmarks()][:8]
    inferred = wood.recorded("route_inferred")
    for number, peer in enumerate(leaving):
        wood.simulator.stop_agent(35 * S + number * S // 8, wood.host[peer])
    wood.run(37 * S)
    for peer in leaving:
        del wood.protocols[peer]
    wood.grow(39 * S, 49 * S)
    assert not any(values["reason"] == "failed" for values in wood.recorded("neighbour_removed"))
    assert wood.recorded("route_inferred") == inferred
    assert len(wood.recorded("agent_left")) == len(leaving)


def test_a_landmark_that_leaves_is_replaced() -> None:
    wood = Wood(seed=1).run(25 * S)
    gone = wood.landmarks()[0]
    wood.simulator.stop_agent(25 * S, wood.host[gone])
    del wood.protocols[gone]
    wood.run(27 * S)
    heard = [p for p in wood.protocols.values() if gone not in p.forest.trees]
    assert heard  # by its own message, before any timeout
    wood.grow(100 * S, 200 * S)
    assert gone not in wood.landmarks()


@pytest.mark.parametrize("seed", range(4))
def test_loss_churn_and_late_peers_at_once(seed: int) -> None:
    chance = Random(seed)
    wood = Wood(with_loss(UNDERLAY, 2), seed, over_us=20 * S)
    wood.run(30 * S)
    for _ in range(10):
        peer = chance.choice(sorted(wood.protocols))
        if chance.random() < 0.5:
            wood.kill(peer)
        else:
            wood.simulator.start_agent(wood.simulator.now_us, wood.host[peer])
        wood.run(wood.simulator.now_us + chance.randrange(5 * S))
    wood.grow(100 * S, 400 * S, is_best=False)


def star(peers_on: Sequence[int]) -> Underlay:
    """Routers in a row, each with the given number of peers."""
    routers = [f"r{number}" for number in range(len(peers_on))]
    rows = [Link.symmetric(a, b, 1_000) for a, b in pairwise(routers)]
    hosts = [f"h{number}" for number in range(sum(peers_on))]
    access = [router for router, count in zip(routers, peers_on, strict=True) for _ in range(count)]
    miles = [Link.symmetric(h, r, 100) for h, r in zip(hosts, access, strict=True)]
    return Underlay(tuple(map(Router, routers)), (*rows, *miles), tuple(map(Host, hosts)))


@pytest.mark.parametrize("seed", range(4))
def test_one_of_the_peers_on_a_router_is_the_parent_of_the_others(seed: int) -> None:
    wood = Wood(star([6, 6, 6]), seed, targets=3).grow(60 * S, 120 * S)
    for root in wood.landmarks():
        routes = defaultdict(list)
        for peer, place in wood.tree(root).items():
            routes[place.route].append(peer)
        assert max(len(peers) for peers in routes.values()) == 6
        # A peer and its twin on each of three routers; no peer is further away.
        assert max(len(ancestors(wood.tree(root), peer)) for peer in wood.protocols) <= 4


@pytest.mark.parametrize("seed", range(3))
def test_twins_whose_parents_all_crash_do_not_form_a_chain(seed: int) -> None:
    wood = Wood(star([2, 8]), seed, targets=2).run(60 * S)
    landmarks = wood.landmarks()
    wood.kill(*[p for p in sorted(wood.protocols) if p not in landmarks][:4])
    wood.grow(100 * S, 160 * S)


def test_two_peers_suffice() -> None:
    Wood(star([1, 1]), targets=1).grow(100 * S, 160 * S)


def test_one_seed_gives_the_same_records_twice() -> None:
    first, second = (Wood(with_loss(UNDERLAY, 1), 3).run(40 * S) for _ in range(2))
    assert first.records == second.records
    assert first.records != Wood(with_loss(UNDERLAY, 1), 4).run(40 * S).records


# The following tests need no network.

ME, ROOT, CHILD, OTHER = 10, 20, 30, 40


def protocol(**settings: Any) -> LandmarkOverlay:
    made = LandmarkOverlay(
        Surroundings(ME, (ROOT,), Random(1), LandmarkSettings(**{**SETTINGS, **settings}))
    )
    made.on_start(0)
    return made


def in_tree(route: tuple[int, ...] = (1, 2)) -> LandmarkOverlay:
    """A peer in the tree of ROOT, as a child of ROOT."""
    made = protocol()
    told = Exchange(0, 0, None, (Landmark(ROOT, 0, 1),), ())
    effects = made.on_message(0, ROOT, told)
    join = next(sent.message for sent in sends(effects) if isinstance(sent.message, Join))
    made.on_message(0, ROOT, Accept(ROOT, join.attempt, route, 0, ()))
    assert made.forest.trees[ROOT].parent == ROOT
    return made


def sends(effects: Any) -> list[Send]:
    return [effect for effect in effects if isinstance(effect, Send)]


def test_the_three_cases_of_a_join() -> None:
    tree = Tree(ROOT, 0, route=(1,), children={30: (1, 2), 31: (1, 3, 4), 32: (1, 3, 5), 33: (1,)})
    assert tree.nearer((1, 2, 9)) == 30
    assert tree.nearer((1, 2)) == 30  # twins
    assert tree.nearer((1, 3)) is None and tree.farther((1, 3)) == [31, 32]
    assert tree.nearer((1, 9)) is None and tree.farther((1, 9)) == []
    assert tree.farther((1,)) == []


def test_children_are_handed_over_in_messages_that_fit_in_datagrams() -> None:
    children = {peer: (1, *range(peer, peer + 9)) for peer in range(100)}
    sent = list(parcels(list(children), children, 1))
    assert len(sent) > 1
    assert {a.peer: (1, *a.rest) for parcel in sent for a in parcel} == children
    assert list(parcels([], {}, 0)) == [()]


def test_a_peer_leaves_a_parent_that_denies_it() -> None:
    made = in_tree()
    told = Heartbeat(False, (ROOT,), (), ())
    denials = [sent.message for sent in sends(made.on_message(1, CHILD, told))]
    assert [(denial.landmark, denial.from_child) for denial in denials] == [(ROOT, False)]
    again = sends(made.on_message(2, ROOT, denials[0]))
    assert [(sent.to, sent.message.route) for sent in again] == [(ROOT, (1, 2))]
    assert made.forest.trees[ROOT].parent is None


def test_a_parent_is_not_accepted_as_a_child() -> None:
    made = in_tree()
    assert not sends(made.on_message(1, ROOT, Connect(ROOT, ROOT, 1, (1, 2), 3)))
    (refusal,) = sends(made.on_message(1, OTHER, Connect(ROOT, ROOT, 1, (1, 2), 3)))
    assert refusal.to == OTHER and refusal.message.from_child


def test_a_request_after_too_many_hops_is_dropped() -> None:
    made = in_tree()
    assert sends(made.on_message(1, ROOT, Connect(ROOT, CHILD, 1, (1, 2, 3), 60)))
    assert not sends(made.on_message(1, ROOT, Connect(ROOT, OTHER, 1, (1, 2, 4), 61)))


def test_a_peer_leaves_a_chain_of_twins() -> None:
    made = in_tree()
    made.on_message(1, ROOT, NewParent(ROOT, ROOT, (1, 2)))  # repeats known information
    made.on_message(1, OTHER, NewParent(ROOT, ROOT, (1, 2)))
    tree = made.forest.trees[ROOT]
    assert tree.parent == OTHER and tree.is_under_twin
    made.on_message(2, OTHER, Heartbeat(False, (), (ROOT,), ()))
    assert tree.parent == OTHER
    made.on_message(3, OTHER, Heartbeat(False, (), (), (ROOT,)))
    assert tree.parent is None


@pytest.mark.parametrize("route", [(1, 3), (1, 2, 3), (2,)])
def test_a_parent_that_is_not_on_the_route_is_refused(route: tuple[int, ...]) -> None:
    made = in_tree()
    (refusal,) = sends(made.on_message(1, OTHER, NewParent(ROOT, ROOT, route)))
    assert refusal.to == OTHER and refusal.message.from_child
    assert made.forest.trees[ROOT].parent == ROOT


def test_neighbours_are_announced_when_their_delay_is_known() -> None:
    made = in_tree()
    assert MeasureDelay(ROOT) in made.on_timer(1, "heartbeat")
    assert MeasureDelay(ROOT) not in made.on_timer(2, "heartbeat")
    assert not made.on_delay(3, Delay(ROOT, ()))[0].content.delays_us  # repeated: no answer
    assert MeasureDelay(ROOT) in made.on_timer(4, "heartbeat")
    added, announced = made.on_delay(5, Delay(ROOT, (900, 800)))
    values = {"peer": ROOT, "delay_us": 400, "is_distant": False}
    assert (added, announced) == (
        Record("neighbour_added", values),
        Announce(Neighbours({ROOT: 400})),
    )


def test_a_landmark_that_never_answered_is_regarded_as_dead() -> None:
    made = protocol()
    effects = made.on_message(0, OTHER, Exchange(0, 0, None, (Landmark(ROOT, 0, 1),), ()))
    join = next(sent.message for sent in sends(effects) if isinstance(sent.message, Join))
    made.on_timer(5 * S, ("join", ROOT))
    assert ROOT in made.forest.trees
    made.on_give_up(60 * S, ROOT, join)
    assert ROOT not in made.forest.trees
    assert made.gossip.exchange(OTHER).landmarks == (Landmark(ROOT, 0, 1, is_dead=True),)
    settled = in_tree()
    settled.on_give_up(60 * S, ROOT, join)
    assert ROOT in settled.forest.trees


def test_an_incarnation_reported_dead_stays_dead() -> None:
    known = LandmarkSet()
    known.add(Landmark(5, 1, 1))
    known.bury(5)
    known.add(Landmark(5, 1, 1))
    assert known.alive() == []
    known.add(Landmark(5, 2, 1))
    assert [landmark.peer for landmark in known.alive()] == [5]
    known.add(Landmark(5, 1, 1, is_dead=True))
    assert known.alive()


def test_a_late_peer_is_counted_from_the_next_epoch_on() -> None:
    gossip = LandmarkGossip(ME, (ROOT,), Random(1), LandmarkSettings())
    gossip.on_exchange(ROOT, Exchange(3, 12, None, (), ()))
    assert gossip.exchange(ROOT).share is None
    gossip.on_exchange(ROOT, Exchange(4, 2, None, (), ()))
    share = gossip.exchange(ROOT).share
    assert share is not None and share.value == 0


def test_the_number_drawn_does_not_depend_on_earlier_messages() -> None:
    """Number and order of messages differ between emulated runs of one seed."""

    def is_elected(seed: int, messages: int) -> bool:
        gossip = LandmarkGossip(ME, (ROOT,), Random(seed), LandmarkSettings(targets=1))
        gossip.on_exchange(ROOT, Exchange(1, 1, Push(1, ROOT, 0.5), (), (OTHER,)))
        for _ in range(messages):
            gossip.on_exchange(OTHER, Exchange(1, 1, None, (), (CHILD,)))
        ended = gossip.on_exchange(ROOT, Exchange(2, 1, None, (), ()))
        return any(isinstance(e, Record) and e.what == "landmark_elected" for e in ended)

    alone = [is_elected(seed, 0) for seed in range(50)]
    assert 0 < sum(alone) < 50
    assert all([is_elected(seed, n) for seed in range(50)] == alone for n in range(1, 5))


@pytest.mark.parametrize(
    ("key", "value"),
    [("targets", 0), ("targets", 201), ("size_factor", 0.0)],
)
def test_invalid_settings_are_refused(key: str, value: float) -> None:
    read_settings(LandmarkSettings, "overlay.", {})
    with pytest.raises(ExperimentError, match=f"overlay.{key}: expected .* found {value}"):
        read_settings(LandmarkSettings, "overlay.", {key: value})
