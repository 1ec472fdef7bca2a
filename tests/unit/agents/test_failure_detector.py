"""Failure detectors on peers that watch each other over a network with packet loss."""

from collections.abc import Mapping
from functools import partial
from ipaddress import IPv4Address
from random import Random
from typing import Annotated, Any

import pytest
from msgspec import Meta

from agents import kinds
from agents.agent import Agent
from agents.announcements import PeerLost, PeerRestarted, Watch
from agents.failure_detector import (
    Alive,
    FailureDetector,
    FailureDetectorSettings,
    Heartbeat,
)
from agents.kinds import make_agent, messages_of
from agents.protocol import Announce, Effects, PeerId, Protocol, Record, Send, Surroundings
from agents.runtime.simulator import Simulator
from agents.stack import Stack
from tests.fixtures.static_overlay import make_underlay

RUN = 3


class Dependent(Protocol):
    """Watches the given peers, and records announcements about them."""

    def __init__(self, given: Surroundings, watcher: str = "test") -> None:
        super().__init__(given)
        self.watcher = watcher

    def on_start(self, now_us: int) -> Effects:
        return [self.watch(*self.contacts)]

    def watch(self, *peers: PeerId) -> Announce:
        return Announce(Watch(self.watcher, frozenset(peers)))

    def on_announcement(self, now_us: int, content: Any) -> Effects:
        if isinstance(content, PeerLost | PeerRestarted):
            values = {"by": self.watcher, "peer": content.peer}
            return [Record(f"told_{type(content).__name__}", values)]
        return ()


class Crowd:
    """Peers, identified by number, that watch each other as given."""

    def __init__(self, peers: int, watched: Mapping[int, list[int]], loss_percent: float = 0.0):
        underlay = make_underlay(peers, seed=1, loss_percent=loss_percent)
        self.records: list[tuple[float, str, str, Any]] = []
        self.simulator = Simulator(underlay, seed=1, record=self._record)
        self.hosts = [host.name for host in underlay.hosts]
        self.peers = [int(IPv4Address(underlay.address[name])) for name in self.hosts]
        self.agents: dict[int, Agent] = {}
        for number, host in enumerate(self.hosts):
            contacts = tuple(self.peers[other] for other in watched.get(number, []))
            self.simulator.add_agent(host, partial(self._make, number, contacts))
            self.simulator.start_agent(0, host)

    def _make(self, number: int, contacts: tuple[PeerId, ...]) -> Agent:
        given = Surroundings(self.peers[number], contacts, Random(number))
        layers = [FailureDetector(given), Dependent(given), Dependent(given, "second")]
        self.agents[number] = Agent(given.me, RUN, Stack(layers))
        return self.agents[number]

    def _record(self, time_us: int, host: str, what: str, values: Mapping[str, Any]) -> None:
        self.records.append((time_us / 1e6, host, what, values))

    def run(self, until_s: float) -> "Crowd":
        self.simulator.run(int(until_s * 1e6))
        return self

    def told(self, what: str, by: str = "test") -> list[tuple[float, int, int]]:
        """Announcements as (time, peer, subject), with peers by number."""
        return [
            (at_s, self.hosts.index(host), self.peers.index(values["peer"]))
            for at_s, host, said, values in self.records
            if said == f"told_{what}" and values["by"] == by
        ]

    def sent(self, number: int, kind: str) -> int:
        return self.agents[number].figures.get(f"sent_{kind}", 0)


def test_a_silent_peer_is_lost_for_all_layers_after_the_configured_time() -> None:
    crowd = Crowd(3, {0: [1, 2], 2: [0]})
    crowd.simulator.kill_agent(10_000_000, crowd.hosts[1])
    crowd.run(20)
    ((at_s, watcher, lost),) = crowd.told("PeerLost")
    assert (watcher, lost) == (0, 1) and 12.0 <= at_s <= 13.1
    assert crowd.told("PeerLost", "second") == [(at_s, watcher, lost)]
    assert crowd.told("PeerRestarted") == []


def test_a_peer_that_leaves_is_lost_at_once_also_if_only_it_was_watched() -> None:
    crowd = Crowd(2, {0: [1]})
    crowd.simulator.stop_agent(10_000_000, crowd.hosts[1])
    crowd.run(11)
    ((at_s, _, lost),) = crowd.told("PeerLost")
    assert lost == 1 and at_s < 10.5


def test_a_peer_that_restarts_within_the_time_is_a_new_incarnation() -> None:
    crowd = Crowd(2, {0: [1], 1: [0]})
    crowd.simulator.kill_agent(10_000_000, crowd.hosts[1])
    crowd.simulator.start_agent(10_400_000, crowd.hosts[1])
    crowd.run(30)
    assert [told[1:] for told in crowd.told("PeerRestarted")] == [(0, 1)]
    assert crowd.told("PeerLost") == []


def test_a_peer_that_wrongly_dropped_this_one_counts_as_restarted() -> None:
    one, other = (FailureDetector(Surroundings(peer, (), Random(1))) for peer in (1, 2))
    one.on_announcement(0, Watch("test", frozenset({2})))
    other.on_announcement(0, Watch("test", frozenset({1})))
    (first,) = other.on_message(10, 1, Heartbeat(0, wants_answer=True))
    assert first == Send(1, Alive(0))
    assert Announce(PeerLost(2)) in one.on_timer(3_000_000, 2)
    (answer,) = one.on_message(3_000_100, 2, Heartbeat(0, wants_answer=False))
    assert answer == Send(2, Alive(3_000_000))
    told = other.on_message(3_000_200, 1, answer.message)
    assert Announce(PeerRestarted(1, 3_000_000)) in told
    assert not other.on_message(3_000_300, 1, Heartbeat(0, wants_answer=False))
    assert not other.on_message(3_000_400, 1, answer.message)


def test_peers_that_watch_each_other_send_no_answers_to_heartbeats() -> None:
    mutual = Crowd(2, {0: [1], 1: [0]}).run(60)
    one_way = Crowd(2, {0: [1]}).run(60)
    assert mutual.sent(0, "Alive") == mutual.sent(1, "Alive") == 1
    assert 75 < mutual.sent(0, "Heartbeat") < 85
    assert one_way.sent(1, "Alive") == one_way.sent(0, "Heartbeat") > 75


def test_lost_packets_are_not_mistaken_for_lost_peers() -> None:
    everyone = range(12)
    watched = {a: [b for b in everyone if b != a and (a + b) % 3] for a in everyone}
    crowd = Crowd(12, watched, loss_percent=15.0).run(300)
    assert crowd.told("PeerLost") == crowd.told("PeerRestarted") == []


def test_a_peer_that_no_layer_depends_on_is_no_longer_watched() -> None:
    detector = FailureDetector(Surroundings(1, (), Random(1)))
    detector.on_announcement(0, Watch("low", frozenset({1, 2, 3})))
    detector.on_announcement(0, Watch("high", frozenset({3, 4})))
    assert sorted(detector._watched) == [2, 3, 4]
    detector.on_announcement(0, Watch("low", frozenset()))
    assert sorted(detector._watched) == [3, 4]


def test_a_lost_peer_is_watched_again_when_a_layer_requests_it() -> None:
    detector = FailureDetector(Surroundings(1, (), Random(1)))
    detector.on_announcement(0, Watch("low", frozenset({2, 3})))
    lost = detector.on_timer(3_000_000, 2)
    assert Announce(PeerLost(2)) in lost
    assert sorted(detector._watched) == [3]
    detector.on_announcement(4_000_000, Watch("low", frozenset({2, 3})))
    assert sorted(detector._watched) == [2, 3]
    assert Announce(PeerLost(2)) not in detector.on_timer(6_900_000, 2)
    assert Announce(PeerLost(2)) in detector.on_timer(7_000_000, 2)


class NeedyOverlay(Dependent):
    """An overlay that requires a failure detector."""

    class Settings(FailureDetectorSettings, frozen=True, kw_only=True):
        links: Annotated[int, Meta(ge=1, description="how many")] = 2

    needs_failure_detector = True


def test_an_overlay_that_requires_a_detector_has_one_below_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(kinds.LAYERS, "overlay", {"needy": f"{__name__}.NeedyOverlay"})
    monkeypatch.setattr(kinds, "find_protocol", lambda _section, _kind: NeedyOverlay)
    layers = {"overlay": {"kind": "needy", "detect_s": 1.5, "links": 3}}
    names = [kind.name for kind in messages_of(layers)]
    assert names == ["Acknowledgement", "Ping", "Pong", "Heartbeat", "Alive", "Farewell"]
    agent = make_agent(layers, RUN, Surroundings(1, (2,), Random(1)))
    detector, overlay = agent._protocol._layers  # type: ignore[attr-defined]
    assert isinstance(detector, FailureDetector) and isinstance(overlay, NeedyOverlay)
    assert detector.settings.detect_s == 1.5 and overlay.settings.links == 3
    assert [type(action).__name__ for action in agent.start(0)] == ["Datagram", "SetTimer"]
