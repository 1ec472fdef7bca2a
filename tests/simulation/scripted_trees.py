"""The content layer on trees that a test makes up: who has which links when."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Address
from random import Random
from typing import Any

from agents.agent import Agent
from agents.content import Content, ContentUniform, ContentZipf
from agents.protocol import Announce, Effects, Protocol, SetTimer, Surroundings
from agents.routing import CurrentTree, Tree
from agents.runtime.simulator import Simulator
from agents.stack import Stack
from testbed.delivery import Delivery, account
from topologies.hosts import attach_hosts
from topologies.underlay import Underlay
from topologies.waxman import generate_waxman

SECOND_US = 1_000_000
Edge = tuple[int, int]
Row = tuple[int, str, str, dict[str, Any]]


class ScriptedTree(Protocol):
    """Announces what it is told to; one that comes up late announces what was before at once."""

    def on_start(self, now_us: int) -> Effects:
        script = self.settings["script"]
        past = [Announce(content) for at_us, content in script if at_us <= now_us]
        ahead = [(i, at_us) for i, (at_us, _) in enumerate(script) if at_us > now_us]
        return [*past, *(SetTimer(i, at_us - now_us) for i, at_us in ahead)]

    def on_timer(self, now_us: int, name: Hashable) -> Effects:
        assert isinstance(name, int)
        return [Announce(self.settings["script"][name][1])]


class Trees:
    """Agents h1, h2 … with numbers 0, 1 … on a random underlay, and their script."""

    def __init__(
        self,
        peers: int,
        seed: int = 1,
        loss_percent: float = 0.0,
        kind: type[Content] = ContentUniform,
        routers: int = 20,
        **settings: Any,
    ) -> None:
        self.peers, self.seed, self.kind = peers, seed, kind
        self.settings = {"start_s": 10.0, "match": 0.2, "ask_after_s": 1.0, **settings}
        self.chance = Random(f"{seed}/script")
        plain = attach_hosts(generate_waxman(routers, seed=seed), peers, seed)
        self.underlay = lossy(plain, loss_percent)
        self.hosts = [f"h{number + 1}" for number in range(peers)]
        self.address = [int(IPv4Address(self.underlay.address[host])) for host in self.hosts]
        self.script: defaultdict[int, list[tuple[int, Any]]] = defaultdict(list)
        self.records: list[Row] = []
        self.ends: list[tuple[int, str]] = []
        self.protocols: dict[int, Content] = {}
        self.agents: dict[int, Agent] = {}
        self.simulator = Simulator(self.underlay, seed=seed, record=self._record)
        for number, host in enumerate(self.hosts):
            self.simulator.add_agent(host, lambda n=number: self._make(n))

    def _record(self, time_us: int, host: str, what: str, values: Mapping[str, Any]) -> None:
        self.records.append((time_us, host, what, dict(values)))

    def _make(self, number: int) -> Agent:
        given = Surroundings(
            self.address[number], (), Random(number), self.settings, (), number, self.peers,
            self.seed,
        )  # fmt: skip
        content = self.protocols[number] = self.kind(given)
        script = sorted(self.script[number], key=lambda item: item[0])
        tree = ScriptedTree(replace(given, settings={"script": script}))
        agent = self.agents[number] = Agent(given.me, 7, Stack([tree, content]))
        return agent

    def start(self, at_s: float = 0.0, *numbers: int) -> "Trees":
        """Start some agents, or all."""
        for number in numbers or range(self.peers):
            self.simulator.start_agent(int(at_s * SECOND_US), self.hosts[number])
        return self

    def kill(self, at_s: float, *numbers: int) -> None:
        for number in numbers:
            self.simulator.kill_agent(int(at_s * SECOND_US), self.hosts[number])
            self.ends.append((int(at_s * SECOND_US), self.hosts[number]))

    def tell(self, at_s: float, number: int, content: Any) -> None:
        """Have something announced to one content layer."""
        self.script[number].append((int(at_s * SECOND_US), content))

    def tree(
        self, at_s: float, version: int, edges: Iterable[Edge], over_s: float = 0.0
    ) -> list[Edge]:
        """The links of a version from a time on, each peer within `over_s` after it."""
        links: defaultdict[int, list[int]] = defaultdict(list)
        made = list(edges)
        for a, b in made:
            links[a].append(self.address[b])
            links[b].append(self.address[a])
        for number in range(self.peers):
            when_s = at_s + self.chance.uniform(0, over_s)
            tree = Tree(version, int(at_s * SECOND_US), tuple(sorted(links[number])))
            self.tell(when_s, number, tree)
        return made

    def use(self, at_s: float, version: int, over_s: float = 0.0) -> None:
        """Publish on a version from a time on."""
        for number in range(self.peers):
            self.tell(at_s + self.chance.uniform(0, over_s), number, CurrentTree(version))

    def drop(self, at_s: float, version: int, over_s: float = 0.0) -> None:
        for number in range(self.peers):
            when_s = at_s + self.chance.uniform(0, over_s)
            self.tell(when_s, number, Tree(version, 0, (), is_dropped=True))

    def random_tree(self, without: Sequence[int] = ()) -> list[Edge]:
        numbers = [number for number in range(self.peers) if number not in without]
        self.chance.shuffle(numbers)
        return [(numbers[i], numbers[self.chance.randrange(i)]) for i in range(1, len(numbers))]

    def run(self, until_s: float) -> "Trees":
        self.simulator.run(int(until_s * SECOND_US))
        return self

    def delivery(self, settle_s: float = 0.0) -> Delivery:
        workload = next(iter(self.protocols.values()))._plan.workload
        end_us = self.simulator.now_us
        settle_us = int(settle_s * SECOND_US)
        return account(workload, self.hosts, self.records, self.ends, end_us, settle_us)

    def recorded(self, what: str) -> list[Row]:
        return [row for row in self.records if row[2] == what]

    def sent(self, kind: str) -> int:
        return sum(agent.figures.get(f"sent_{kind}", 0) for agent in self.agents.values())


def lossy(underlay: Underlay, percent: float) -> Underlay:
    """The underlay with a loss on every link."""
    links = tuple(
        replace(
            link,
            ab=replace(link.ab, loss_percent=percent),
            ba=replace(link.ba, loss_percent=percent),
        )
        for link in underlay.links
    )
    return replace(underlay, links=links) if percent else underlay


__all__ = ["ContentUniform", "ContentZipf", "Edge", "ScriptedTree", "Trees", "lossy"]
