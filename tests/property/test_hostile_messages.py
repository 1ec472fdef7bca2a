"""Well-formed messages with any content, against every protocol: what it answers can be sent."""

from functools import cache
from random import Random
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from msgspec import Struct

from agents.agent import Action, Ping, Pong
from agents.codec import Datagram, encode
from agents.gossip import Pull, Push
from agents.hello import Hello, Welcome
from agents.kinds import find_protocol, make_agent
from agents.protocol import CancelTimer, ProbeRoute, SetTimer, Surroundings
from agents.route import Hop, Route

RUN, ME = 7, 1
PEERS = tuple(range(2, 12))
MESSAGES = 6_000
INTEGERS = {"B": (0, 0xFF), "H": (0, 0xFFFF), "I": (0, 2**32 - 1), "Q": (0, 2**64 - 1)} | {
    "q": (-(2**63), 2**63 - 1)
}
STACKS: dict[str, dict[str, dict[str, Any]]] = {
    "hello": {"overlay": {"kind": "hello"}},
    "gossip": {"overlay": {"kind": "gossip", "epochs": 3}},
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
}
ALONE = {"hello": [Hello, Welcome], "gossip": [Push, Pull]}


class Hostile:
    """Draws values of any type that messages have; often such as the protocol knows."""

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


class Victim:
    """An agent whose timers run out, probes are answered and datagrams are encoded."""

    def __init__(self, layers: dict[str, dict[str, Any]], hostile: Hostile) -> None:
        defaults = {
            section: {**find_protocol(section, settings["kind"]).defaults, **settings}
            for section, settings in layers.items()
        }
        given = Surroundings(ME, PEERS[:3], Random(1), peers=len(PEERS) + 1)
        self.hostile = hostile
        self.sent = 0
        self.timers: dict[Any, None] = {}
        self.agent = make_agent(defaults, RUN, given)
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
        self.now_us += 1_000
        message_id = self.now_us // 1_000
        data = encode(Datagram(content, message_id % 2, RUN, sender, ME, message_id, self.now_us))
        self.do(self.agent.on_bytes(self.now_us, sender, data))

    def let_a_timer_run_out(self) -> None:
        if self.timers:
            name = self.hostile.chance.choice(list(self.timers))
            del self.timers[name]
            self.do(self.agent.on_timer(self.now_us, name))


@pytest.mark.parametrize("name", STACKS)
def test_whatever_a_peer_says_the_answer_can_be_sent(name: str) -> None:
    hostile = Hostile(1)
    victim = Victim(STACKS[name], hostile)
    kinds = ALONE.get(name) or [
        kind
        for section, settings in STACKS[name].items()
        for kind in find_protocol(section, settings["kind"]).messages
    ]
    refused = 0
    for number in range(MESSAGES):
        try:
            content = hostile.draw(hostile.chance.choice(kinds))
        except ValueError:  # the message itself does not allow such values
            refused += 1
            continue
        victim.take(hostile.chance.choice(PEERS), content)
        if number % 20 == 0:
            victim.let_a_timer_run_out()
    assert refused < MESSAGES / 2
    assert victim.agent.figures["received"] >= MESSAGES - refused
    assert victim.sent > 0
