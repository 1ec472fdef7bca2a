"""Probing of routes in simple simulated networks."""

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.probing.host_probing import HostProbing, Mark
from agents.probing.multipath_probe import MultipathProbe, MultipathRoute, stopping_point
from agents.probing.probe import Answer, Probe, ProbeSettings
from agents.probing.route import Hop, Route
from agents.probing.route_probe import RouteProbe

TARGET = 99
STEP_US = 1_000  # one direction over one hop


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of a network: sender, kind, delay, and what it says about the distance."""

    address: int
    answer: Answer
    after_us: int
    ttl_left: int | None = None


Network = Callable[[Probe], Reply | None]


def line(*nodes: int | None, is_open_ended: bool = False, quotes_ttl: bool = True) -> Network:
    """A network whose route to the target is a line of nodes; None is a silent node.

    Unless the line is open-ended, the last node answers all probes that reach it: as the target if
    it is the target, otherwise as a dead end.
    """

    def answer(probe: Probe) -> Reply | None:
        place = min(probe.ttl, len(nodes)) - 1
        address = nodes[place]
        if address is None or (is_open_ended and probe.ttl > len(nodes)):
            return None
        meaning = Answer.PASSING
        if place == len(nodes) - 1 and not is_open_ended:
            meaning = Answer.TARGET if address == TARGET else Answer.DEAD_END
        left = probe.ttl - place if quotes_ttl else None
        return Reply(address, meaning, 2 * STEP_US * (place + 1), left)

    return answer


def losing(network: Network, lost: set[int]) -> Network:
    """The network, without the answers to the probes with these numbers."""
    return lambda probe: None if probe.number in lost else network(probe)


@dataclass
class Drive:
    """Runs a probing through a network to its end; records its probes and its duration."""

    probing: RouteProbe | MultipathProbe
    network: Network
    sent: list[Probe] = field(default_factory=list)
    most_outstanding: int = 0
    now_us: int = 0
    _events: list[tuple[int, int, Reply]] = field(default_factory=list)

    def run(self) -> Route | MultipathRoute:
        self._send(self.probing.start(0))
        while self.probing.result is None:
            assert len(self.sent) < 10_000
            deadline_us = self.probing.next_deadline_us
            if self._events and (deadline_us is None or self._events[0][0] <= deadline_us):
                self._reply(*heapq.heappop(self._events))
            else:
                assert deadline_us is not None, "it waits for nothing and has no result"
                self.now_us = max(self.now_us, deadline_us)
                self._send(self.probing.on_time(self.now_us))
        assert self.probing.next_deadline_us is None
        return self.probing.result

    def _reply(self, at_us: int, number: int, reply: Reply) -> None:
        self.now_us = at_us
        self._send(
            self.probing.on_reply(
                at_us,
                number,
                reply.address,
                reply.answer,
                reply.after_us,
                reply.ttl_left,
            )
        )

    def _send(self, probes: Sequence[Probe]) -> None:
        for probe in probes:
            self.sent.append(probe)
            reply = self.network(probe)
            if reply is not None:
                event = (self.now_us + reply.after_us, probe.number, reply)
                heapq.heappush(self._events, event)
        self.most_outstanding = max(self.most_outstanding, len(self.probing._outstanding))


def probe(network: Network, settings: ProbeSettings | None = None) -> tuple[Route, Drive]:
    drive = Drive(RouteProbe(TARGET, settings), network)
    result = drive.run()
    assert isinstance(result, Route)
    return result, drive


def addresses(route: Route) -> list[int | None]:
    return [hop.address for hop in route.hops]


def test_a_route_has_its_routers_and_their_round_trips() -> None:
    route, _ = probe(line(1, 2, 3, TARGET))
    hops = tuple(Hop(n, (2_000 * at,)) for at, n in enumerate((1, 2, 3, TARGET), start=1))
    assert route == Route(TARGET, hops, is_reached=True)
    assert route.routers == (1, 2, 3)
    assert route.last_mile_us == 1_000


def test_a_route_takes_two_round_trips_and_one_probe_for_each_hop() -> None:
    nodes = (*range(1, 13), TARGET)
    _, drive = probe(line(*nodes))
    assert len(drive.sent) == len(nodes)
    assert drive.now_us <= 2 * 2 * STEP_US * len(nodes)


def test_with_unknown_distance_few_probes_exceed_the_route() -> None:
    nodes = (*range(1, 13), TARGET)
    route, drive = probe(line(*nodes, quotes_ttl=False))
    assert addresses(route) == list(nodes)
    assert len(drive.sent) <= len(nodes) + 1 + ProbeSettings().ahead


def test_all_probes_are_of_one_flow() -> None:
    _, drive = probe(line(1, None, 3, TARGET), ProbeSettings(flow=7))
    assert {sent.flow for sent in drive.sent} == {7}
    assert len({sent.number for sent in drive.sent}) == len(drive.sent)


@pytest.mark.parametrize("left", [0, -1, 31, 255])
def test_an_impossible_quoted_ttl_is_ignored(left: int) -> None:
    def network(sent: Probe) -> Reply | None:
        reply = line(1, 2, TARGET, quotes_ttl=False)(sent)
        return reply and Reply(reply.address, reply.answer, reply.after_us, left)

    assert addresses(probe(network)[0]) == [1, 2, TARGET]


def test_silent_routers_are_kept_and_cost_less_than_a_second() -> None:
    nodes = (None, 2, None, None, 5, None, TARGET)
    route, drive = probe(line(*nodes))
    assert addresses(route) == list(nodes)
    assert route.hops[0].round_trips_us == ()
    assert route.last_mile_us is None
    assert drive.now_us < 1_000_000
    assert Counter(sent.ttl for sent in drive.sent)[1] == ProbeSettings().attempts


def test_probing_behind_the_last_answer_ends_at_the_gap_limit() -> None:
    given = ProbeSettings(gap_limit=4)
    route, drive = probe(line(1, None, 3, is_open_ended=True), given)
    assert (addresses(route), route.is_reached) == ([1, None, 3], False)
    assert max(sent.ttl for sent in drive.sent if sent.number > 0) == 3 + 4


def test_a_gap_longer_than_the_limit_is_crossed_if_the_target_is_known_to_exist() -> None:
    nodes = (1, *[None] * 6, TARGET)
    route, _ = probe(line(*nodes), ProbeSettings(gap_limit=4))
    assert addresses(route) == list(nodes)


def test_without_answers_the_route_is_empty() -> None:
    route, drive = probe(lambda _: None)
    assert route == Route(TARGET, (), is_reached=False)
    assert drive.now_us < 6_000_000


def test_a_route_to_an_unused_address_ends_at_the_router_that_reports_it() -> None:
    route, drive = probe(line(1, 2, 3))
    assert (addresses(route), route.is_reached) == ([1, 2, 3], False)
    assert len(drive.sent) <= 3 + 1 + ProbeSettings().ahead


def test_probing_ends_at_the_largest_ttl() -> None:
    route, drive = probe(line(*range(1, 41), TARGET), ProbeSettings(max_ttl=10))
    assert (addresses(route), route.is_reached) == (list(range(1, 11)), False)
    assert max(sent.ttl for sent in drive.sent) == 10


def test_a_target_on_the_first_hop() -> None:
    assert addresses(probe(line(TARGET))[0]) == [TARGET]
    assert addresses(probe(line(TARGET), ProbeSettings(max_ttl=1))[0]) == [TARGET]


def test_probes_with_lost_answers_are_repeated() -> None:
    route, drive = probe(losing(line(1, 2, 3, TARGET), {1, 3, 4}))
    assert addresses(route) == [1, 2, 3, TARGET]
    assert all(len(hop.round_trips_us) == 1 for hop in route.hops)
    assert len(drive.sent) == 4 + 3


def test_a_lost_first_probe_costs_only_time() -> None:
    route, _ = probe(losing(line(*range(1, 13), TARGET), {0}))
    assert addresses(route) == [*range(1, 13), TARGET]


def test_a_late_answer_has_its_own_round_trip() -> None:
    def network(sent: Probe) -> Reply | None:
        reply = line(1, 2, 3, TARGET)(sent)
        is_slow = sent.ttl == 2
        return Reply(2, Answer.PASSING, 250_000) if is_slow else reply

    route, drive = probe(network)
    assert route.hops[1] == Hop(2, (250_000,))
    assert Counter(sent.ttl for sent in drive.sent)[2] == 2
    assert drive.now_us == 250_000


def test_several_samples_at_each_hop() -> None:
    given = ProbeSettings(samples=3)
    route, drive = probe(line(1, None, TARGET), given)
    assert [len(hop.round_trips_us) for hop in route.hops] == [3, 0, 3]
    # A silent hop is not probed for three samples.
    assert Counter(sent.ttl for sent in drive.sent)[2] == given.attempts


def test_repeated_and_unknown_answers_have_no_effect() -> None:
    probing = RouteProbe(TARGET, ProbeSettings(samples=2))
    sent = probing.start(0)
    first = next(one for one in sent if one.ttl == 1)
    probing.on_reply(500, first.number, 1, Answer.PASSING, 500)
    assert probing.on_reply(600, first.number, 1, Answer.PASSING, 600) == []
    assert probing.on_reply(600, 77, 1, Answer.TARGET, 600) == []
    assert probing.result is None


def test_another_router_at_the_same_hop_does_not_cause_endless_probing() -> None:
    seen = iter(range(1, 10_000))

    def network(sent: Probe) -> Reply | None:
        reply = line(1, 2, TARGET)(sent)
        return Reply(next(seen), Answer.PASSING, 2_000) if sent.ttl == 2 else reply

    route, drive = probe(network, ProbeSettings(samples=5))
    assert route.is_reached
    assert len(drive.sent) < 30


def test_a_target_that_moves_closer_is_the_last_hop() -> None:
    def network(sent: Probe) -> Reply | None:
        is_early = sent.number < 4
        return line(1, 2, 3, TARGET)(sent) if is_early else line(1, TARGET)(sent)

    route, _ = probe(network, ProbeSettings(samples=3))
    assert route.is_reached
    assert route.hops[-1].address == TARGET


NODE = st.one_of(st.none(), st.integers(1, 50))


@given(
    nodes=st.lists(NODE, max_size=12),
    is_open_ended=st.booleans(),
    quotes_ttl=st.booleans(),
    settings=st.builds(
        ProbeSettings,
        max_ttl=st.integers(1, 15),
        samples=st.integers(1, 3),
        attempts=st.integers(1, 3),
        ahead=st.integers(1, 6),
        gap_limit=st.integers(1, 6),
        first_outstanding=st.integers(1, 10),
        max_outstanding=st.integers(1, 10),
    ),
    seed=st.integers(0, 1_000),
    loss=st.sampled_from([0.0, 0.2, 0.9]),
)
def test_probing_is_bounded_under_loss_delay_and_reordering(
    nodes: list[int | None],
    is_open_ended: bool,
    quotes_ttl: bool,
    settings: ProbeSettings,
    seed: int,
    loss: float,
) -> None:
    chance = Random(seed)
    network = line(*nodes, TARGET, is_open_ended=is_open_ended, quotes_ttl=quotes_ttl)

    def unreliable(sent: Probe) -> Reply | None:
        reply = network(sent)
        if reply is None or chance.random() < loss:
            return None
        after_us = chance.choice((0, 1, 10_000, 900_000))
        return Reply(reply.address, reply.answer, after_us, reply.ttl_left)

    route, drive = probe(unreliable, settings)
    assert len(drive.sent) <= 1 + settings.max_ttl * (settings.attempts + settings.samples)
    assert drive.most_outstanding <= settings.max_outstanding
    assert len(route.hops) <= settings.max_ttl
    assert not route.is_reached or route.hops[-1].address == TARGET
    assert not route.hops or route.hops[-1].address is not None
    for found, true in zip(addresses(route), [*nodes, TARGET], strict=False):
        assert found in (None, true)


def test_many_targets_share_one_limit_and_all_end() -> None:
    """Twenty targets in a row, most with silent routers, share the probe limit of one host."""
    events: list[tuple[int, int, Mark, Reply]] = []
    now_us = outstanding = most = 0
    settings = ProbeSettings(first_outstanding=3, max_outstanding=6)

    def send(target: int, mark: Mark, sent: Probe) -> int:
        nodes = [None if n % 3 == 0 else n for n in range(1, target)]
        reply = line(*nodes, TARGET)(sent)
        if reply is not None:
            heapq.heappush(events, (now_us + reply.after_us, len(events), mark, reply))
        return now_us

    probing = HostProbing(RouteProbe, send, settings)
    for target in range(1, 21):
        probing.probe(0, target)
        probing.probe(0, target)
    assert probing._allowance.used == settings.first_outstanding
    found: list[Route] = []
    while not probing.is_idle:
        outstanding = probing._allowance.used
        most = max(most, outstanding)
        deadline_us = probing.next_deadline_us
        if events and (deadline_us is None or events[0][0] <= deadline_us):
            now_us, _, mark, reply = heapq.heappop(events)
            found += probing.on_reply(
                now_us, mark, reply.address, reply.answer, now_us, reply.ttl_left
            )
            found += probing.use_room(now_us)
        else:
            assert deadline_us is not None
            now_us = max(now_us, deadline_us)
            found += probing.on_time(now_us)
    assert sorted(route.target for route in found) == list(range(1, 21))
    assert all(route.is_reached and len(route.hops) == route.target for route in found)
    assert most == settings.max_outstanding
    assert probing._allowance.used == 0
    for target in range(1, 21):
        probing.probe(now_us, target)
    assert probing._allowance.used == settings.first_outstanding  # slow start again


def test_the_stopping_points_are_those_of_the_paper() -> None:
    assert [stopping_point(k) for k in range(2, 9)] == [6, 11, 16, 21, 27, 33, 38]


def balanced(layers: Sequence[Sequence[int | None]]) -> Network:
    """A network of layers: a flow has one router in each; other flows are spread evenly."""

    def answer(sent: Probe) -> Reply | None:
        if sent.ttl > len(layers):
            return Reply(TARGET, Answer.TARGET, 2 * STEP_US * len(layers))
        layer = layers[sent.ttl - 1]
        address = Random(f"{sent.flow} {sent.ttl}").choice(layer)
        if address is None:
            return None
        return Reply(address, Answer.PASSING, 2 * STEP_US * sent.ttl)

    return answer


def probe_all(network: Network) -> tuple[MultipathRoute, Drive]:
    drive = Drive(MultipathProbe(TARGET), network)
    result = drive.run()
    assert isinstance(result, MultipathRoute)
    return result, drive


def test_a_single_route_takes_six_flows_for_each_hop() -> None:
    route, drive = probe_all(balanced([[1], [2], [3]]))
    assert not route.is_balanced and route.is_reached
    assert [branching.next_hops for branching in route.branchings] == [{1}, {2}, {3}, {TARGET}]
    assert Counter(sent.ttl for sent in drive.sent) == {1: 6, 2: 6, 3: 6, 4: 6}


def test_all_branches_are_found() -> None:
    route, _ = probe_all(balanced([[1], [2, 3, 4], [5, 6], [7]]))
    assert route.is_balanced and route.is_reached
    assert route.next_hops(0, None) == {1}
    assert route.next_hops(1, 1) == {2, 3, 4}
    assert all(route.next_hops(2, router) == {5, 6} for router in (2, 3, 4))
    assert all(route.next_hops(3, router) == {7} for router in (5, 6))
    assert route.next_hops(4, 7) == {TARGET}


def test_branches_that_are_silent_or_end_are_kept() -> None:
    route, _ = probe_all(balanced([[1], [None, 2], [3]]))
    assert route.next_hops(1, 1) == {None, 2}
    assert route.next_hops(2, None) == route.next_hops(2, 2) == {3}
    nobody, drive = probe_all(lambda _: None)
    assert nobody == MultipathRoute(TARGET, (), is_reached=False)
    assert max(sent.ttl for sent in drive.sent) == ProbeSettings().gap_limit


@given(seed=st.integers(0, 10_000), loss=st.sampled_from([0.0, 0.3, 1.0]))
def test_probing_of_many_routes_ends_under_loss(seed: int, loss: float) -> None:
    chance = Random(seed)
    network = balanced([[1], [2, 3], [4, None]])
    route, drive = probe_all(lambda sent: None if chance.random() < loss else network(sent))
    assert len(drive.sent) <= 256 * 12 * 3
    assert loss == 1.0 or route.branchings
