"""No message makes a protocol fail, and every answer can be encoded.

Messages are of all kinds, including kinds that the protocol does not have. They are well-formed
with any content, or have single changed bits.
"""

from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from random import Random
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from msgspec import Struct

from agents.agent import Acknowledgement, Action, Ping, Pong
from agents.kinds import LAYERS, find_protocol, make_agent
from agents.probing.route import Hop, Route
from agents.protocol import CancelTimer, ProbeRoute, SetTimer, Surroundings
from agents.wire.codec import WANTS_ACK, Datagram, encode
from testbed.experiment.file import Experiment, experiment_from_dict
from workloads.kinds import draw_workload
from workloads.share import Share

RUN, ME = 7, 1
PEERS = tuple(range(2, 12))
HOSTS = {f"h{number}": number for number in (ME, *PEERS)}
MESSAGES = 6_000
MUTATED = [300_000, pytest.param(1_000_000, marks=pytest.mark.slow)]  # kinds of all stacks
INTEGERS = {"B": (0, 0xFF), "H": (0, 0xFFFF), "I": (0, 2**32 - 1), "Q": (0, 2**64 - 1)} | {
    "q": (-(2**63), 2**63 - 1)
}
STACKS: dict[str, dict[str, dict[str, Any]]] = {
    "hello": {"overlay": {"kind": "hello"}},
    "gossip": {"overlay": {"kind": "gossip", "epochs": 3}},
    "landmarks": {"overlay": {"kind": "tdo-landmark"}},
    "walks": {"overlay": {"kind": "tdo-walk"}},
    "ring": {"overlay": {"kind": "ring", "fingers": "random"}},
    "pastry": {"overlay": {"kind": "pastry", "leaves": 4}},
    "skip-net": {"overlay": {"kind": "skip-net"}},
    "small world": {
        "overlay": {"kind": "small-world", "fingers": "learned"},
        "pubsub": {"kind": "topic-flood"},
        "workload": {"kind": "topics-zipf", "start_s": 0.0},
    },
    "beaconvey": {
        "overlay": {"kind": "beaconvey"},
        "pubsub": {"kind": "beaconvey", "rule": "pal", "keep_s": 2.0},
        "workload": {"kind": "topics-zipf", "start_s": 0.0},
    },
    "by hand": {
        "overlay": {"kind": "given", "links": "h1-h2 h1-h3"},
        "routing": {"kind": "mst"},
        "workload": {
            "kind": "content-given",
            "start_s": 0.0,
            "subscriptions": "h1: 3<=a0<=7; h2: everything",
        },
    },
    "landmarks, spanning tree": {
        "overlay": {"kind": "tdo-landmark"},
        "routing": {"kind": "mst"},
        "workload": {"kind": "content-uniform", "start_s": 0.0},
    },
    "walks, cores": {
        "overlay": {"kind": "tdo-walk"},
        "routing": {"kind": "cores", "strategy": "spath", "core_paths": "apsp"},
        "workload": {"kind": "content-zipf", "start_s": 0.0, "merging": True},
    },
    "walks, shortest paths": {
        "overlay": {"kind": "tdo-walk", "reverse_routes": False},
        "routing": {"kind": "opt"},
        "workload": {"kind": "content-zipf", "start_s": 0.0},
    },
    "ring, scribe": {
        "overlay": {"kind": "ring"},
        "pubsub": {"kind": "scribe"},
        "workload": {"kind": "topics-zipf", "topics": 5, "start_s": 0.0},
    },
    "ring, scribe with cached roots": {
        "overlay": {"kind": "ring"},
        "pubsub": {"kind": "scribe", "root": "cached", "keep_s": 2.0},
        "workload": {"kind": "topics-zipf", "topics": 5, "start_s": 0.0},
    },
    "ring, nsmf": {
        "overlay": {"kind": "ring"},
        "pubsub": {"kind": "nsmf"},
        "workload": {"kind": "topics-zipf", "topics": 5, "start_s": 0.0},
    },
    "ring, beaconvey": {
        "overlay": {"kind": "ring", "fingers": "random"},
        "pubsub": {"kind": "beaconvey", "rule": "pal", "keep_s": 2.0},
        "workload": {"kind": "topics-zipf", "topics": 5, "start_s": 0.0},
    },
    "ring, iscribe": {
        "overlay": {"kind": "ring"},
        "pubsub": {"kind": "iscribe", "keep_s": 2.0},
        "workload": {"kind": "topics-zipf", "topics": 5, "start_s": 0.0},
    },
    "walks, flooded topics": {
        "overlay": {"kind": "tdo-walk"},
        "pubsub": {"kind": "topic-flood"},
        "workload": {"kind": "topics-zipf", "start_s": 0.0},
    },
}
OF_AGENTS: tuple[type, ...] = (Acknowledgement, Ping, Pong)
KINDS = [find_protocol(layer, kind) for layer, kinds in LAYERS.items() for kind in kinds]
ALL_MESSAGES = tuple(
    dict.fromkeys((*OF_AGENTS, *(one for protocol in KINDS for one in protocol.messages)))
)
TAKEN_OR_COUNTED = (
    "received", "unexpected", "malformed", "of_another_run", "misaddressed", "impostor",
)  # fmt: skip


class Hostile:
    """Draws values of any message type, often values that the protocol has seen."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.seen: list[int] = [ME, *PEERS]

    def draw(self, kind: Any) -> Any:
        chance = self.chance
        if isinstance(kind, type) and issubclass(kind, Struct):
            hints = hints_of(kind)
            return kind(*(self.draw(hints[name]) for name in kind.__struct_fields__))
        if hasattr(kind, "__metadata__"):
            return self._number(kind.__metadata__[0])
        if kind is bool:
            return chance.random() < 0.5
        if kind in (str, bytes):
            return kind() if chance.random() < 0.5 else {str: "text", bytes: b"bytes"}[kind]
        inner = get_args(kind)
        if get_origin(kind) is tuple:
            count = chance.choice((0, 1, 2, 3))
            return tuple(self.draw(inner[0]) for _ in range(count))
        return None if kind is NoneType else self.draw(chance.choice(inner))

    def _number(self, code: str) -> int | float:
        if code == "d":
            return self.chance.choice((0.0, 1.0, -1.0, 1e300, float("nan"), float("inf")))
        low, high = INTEGERS[code]
        known = [value for value in self.seen if low <= value <= high]
        return self.chance.choice((low, high, *known, self.chance.randint(low, high)))


@cache
def hints_of(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def experiment_of(name: str) -> Experiment:
    """An experiment with one of the stacks."""
    document = {"name": "victim", **STACKS[name], "topology": {"hosts": len(HOSTS)}}
    return experiment_from_dict(document, "test")


class Victim:
    """An agent whose timers expire, probes are answered and datagrams are encoded."""

    def __init__(self, name: str, hostile: Hostile) -> None:
        experiment = experiment_of(name)
        share = Share()
        if experiment.workload:
            share = draw_workload(experiment.workload, 1, list(HOSTS)).shares(len(HOSTS))[0]
        given = Surroundings(
            ME, PEERS[:3], Random(1), peers=len(HOSTS), hosts=HOSTS, workload=share
        )
        self.hostile = hostile
        self.sent = self.taken = 0
        self.timers: dict[Any, None] = {}
        self.agent = make_agent(experiment.layers, RUN, given)
        self.now_us = 0
        self.do(self.agent.start(0))

    def do(self, actions: list[Action]) -> None:
        answers: list[tuple[int, Pong]] = []
        for action in actions:
            if isinstance(action, Datagram):
                encode(action)
                self.sent += 1
                if isinstance(action.content, Ping):
                    answers.append((action.receiver, Pong(action.content.token)))
            elif isinstance(action, SetTimer):
                self.timers[action.name] = None
            elif isinstance(action, CancelTimer):
                self.timers.pop(action.name, None)
            elif isinstance(action, ProbeRoute):
                routers = tuple(Hop(1_000 + n, (10 * n,)) for n in range(1, 4))
                route = Route(action.target, (*routers, Hop(action.target, (50,))), True)
                self.do(self.agent.on_route(self.now_us, route))
        for peer, pong in answers:
            self.take(peer, pong)

    def take(self, sender: int, content: Any) -> None:
        message_id = self.taken + 1
        flags = WANTS_ACK if message_id % 2 else 0
        data = encode(Datagram(content, flags, RUN, sender, ME, message_id, self.now_us))
        self.take_bytes(sender, data)

    def take_bytes(self, sender: int, data: bytes) -> None:
        self.taken += 1
        self.now_us += 1_000
        self.do(self.agent.on_bytes(self.now_us, sender, data))

    def let_a_timer_run_out(self) -> None:
        if self.timers:
            name = self.hostile.chance.choice(list(self.timers))
            del self.timers[name]
            self.do(self.agent.on_timer(self.now_us, name))


def draw_messages(name: str, hostile: Hostile, count: int) -> Iterator[Any]:
    """Messages with any content; every second one is of a kind in the stack."""
    layers = experiment_of(name).layers.items()
    protocols = [find_protocol(layer, settings["kind"]) for layer, settings in layers]
    own = [kind for protocol in protocols for kind in protocol.messages]
    for number in range(count):
        with suppress(ValueError):  # The message type refuses such values.
            yield hostile.draw(hostile.chance.choice(own if number % 2 else ALL_MESSAGES))


@pytest.mark.parametrize("name", STACKS)
def test_the_answer_to_any_message_can_be_sent(name: str) -> None:
    hostile = Hostile(1)
    victim = Victim(name, hostile)
    for number, content in enumerate(draw_messages(name, hostile, MESSAGES)):
        victim.take(hostile.chance.choice(PEERS), content)
        if number % 20 == 0:
            victim.let_a_timer_run_out()
    figures = victim.agent.figures
    assert victim.taken > MESSAGES / 2
    assert figures["received"] + figures["unexpected"] == victim.taken
    assert figures["received"] > victim.taken / 3
    assert victim.sent > 0


@pytest.mark.parametrize("mutated", MUTATED)
@pytest.mark.parametrize("name", STACKS)
def test_mutated_datagrams_are_counted_and_do_not_end_the_agent(name: str, mutated: int) -> None:
    hostile = Hostile(2)
    chance, victim = hostile.chance, Victim(name, hostile)
    good: list[tuple[int, bytes]] = []
    for content in draw_messages(name, hostile, MESSAGES):
        peer = chance.choice(PEERS)
        good.append((peer, encode(Datagram(content, 0, RUN, peer, ME, len(good), 0))))
    for number in range(mutated // len(STACKS)):
        peer, data = chance.choice(good)
        junk = bytearray(data)
        junk[chance.randrange(len(junk))] ^= 1 << chance.randrange(8)
        victim.take_bytes(peer, bytes(junk))
        if number % 20 == 0:
            victim.let_a_timer_run_out()
    figures = victim.agent.figures
    assert sum(figures[reason] for reason in TAKEN_OR_COUNTED) == victim.taken
    assert all(figures[reason] > 0 for reason in TAKEN_OR_COUNTED)
    assert figures["received"] > victim.taken / 4  # so many reached the protocol
