"""The contract of a protocol: what it is told, and what it can ask for.

A protocol is a class with the handlers below. It opens no socket, reads no clock and rolls no
dice of its own: time comes in as whole microseconds, randomness as a seeded generator, and
what it wants done goes out as a list of effects. So it runs unchanged on emulated hosts and
in the simulator. `docs/writing-a-protocol.md` shows one from start to finish.
"""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar, Literal, final

import msgspec

from agents.probing.route import Route
from workloads.share import Share

# A peer is known by the IPv4 address of its host, as a number.
PeerId = int
Value = int | float | str | bool


@final
class Send(msgspec.Struct, frozen=True):
    """Send a message to a peer; a reliable one is repeated until acknowledged or given up."""

    to: PeerId
    message: Any
    reliable: bool = False


@final
class SetTimer(msgspec.Struct, frozen=True):
    """Call `on_timer` with this name after a while; a timer of the same name is replaced."""

    name: Hashable
    delay_us: int


@final
class CancelTimer(msgspec.Struct, frozen=True):
    """Forget a timer, if it is set."""

    name: Hashable


@final
class ProbeRoute(msgspec.Struct, frozen=True):
    """Find out which routers lie between here and a peer; the answer is `on_probe_result`."""

    target: PeerId


@final
class MeasureDelay(msgspec.Struct, frozen=True):
    """Measure the round-trip time to a peer some times; the answer is `on_delay`."""

    target: PeerId
    samples: int = 3


@final
class Deliver(msgspec.Struct, frozen=True):
    """An event has arrived where somebody wants it; the application is told.

    `hop_count` counts the overlay links that it came over, the one from `sender` included.
    """

    event_id: int
    sender: PeerId
    hop_count: int


@final
class Record(msgspec.Struct, frozen=True):
    """Something worth knowing after the run: what happened (in the past tense), and its figures."""

    what: str
    values: Mapping[str, Value] = msgspec.field(default_factory=dict)


@final
class Announce(msgspec.Struct, frozen=True):
    """Tell the other protocols of this agent something; each picks what it cares for by type."""

    content: Any


Effect = Send | SetTimer | CancelTimer | ProbeRoute | MeasureDelay | Deliver | Record | Announce
Effects = Sequence[Effect]


@dataclass(frozen=True, slots=True)
class Delay:
    """Round-trip times to a peer; without any sample the peer did not answer."""

    target: PeerId
    samples_us: tuple[int, ...]

    @property
    def min_us(self) -> int:
        """The smallest sample: the path without queues."""
        return min(self.samples_us)

    @property
    def median_us(self) -> int:
        """The sample in the middle."""
        return sorted(self.samples_us)[len(self.samples_us) // 2]


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Announced by an overlay: the peers it links this one to, and the one-way delay to each.

    An overlay may tell apart what its links are for, as in `successor` or `finger`: `roles`.
    """

    delays_us: Mapping[PeerId, int]
    roles: Mapping[PeerId, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Surroundings:
    """What an agent is given: who it is, whom it may ask first, its dice, and its settings.

    `targets` are peers chosen by somebody who knows the whole network, for baselines that need
    it. `number` counts the agents of a run from 0 to `peers` - 1, and `run_seed` is the same for
    all, so that they can agree on what is drawn from it. `hosts` has the name and address of every
    agent's host in the order of their numbers, where a protocol of the run says `names_hosts`.
    `workload` is this peer's share of the workload, so that an overlay knows its interests before
    the application announces them. The agents of a process have `shared` in common, for caches that
    do not change what they do. `settings` are the protocol's own `Settings`; without any, it has
    its defaults.
    """

    me: PeerId
    contacts: tuple[PeerId, ...]
    random: Random
    settings: msgspec.Struct | None = None
    targets: tuple[PeerId, ...] = ()
    number: int = 0
    peers: int = 1
    run_seed: int = 0
    hosts: Mapping[str, PeerId] = field(default_factory=dict)
    workload: Share = field(default_factory=Share)
    pubsub_random: Random = field(default_factory=lambda: Random(0))
    shared: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WholeNetwork:
    """What is known of the whole network before a run, for baselines whose targets are given.

    Peers go by their numbers. `nearest` and `farthest` give for each peer so many others, ordered
    by the delay to them.
    """

    seed: int
    peers: int
    nearest: Callable[[int], Sequence[Sequence[int]]]
    farthest: Callable[[int], Sequence[Sequence[int]]]


def draw_others(chance: Random, me: int, peers: int, count: int) -> list[int]:
    """So many of the numbers from 0 to `peers` - 1 other than one, or all of them if fewer."""
    # The others are not listed: with many peers that would take longer than all the rest.
    drawn = chance.sample(range(peers - 1), min(count, peers - 1))
    return [number + (number >= me) for number in drawn]


class NoSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Of a protocol that can only be run in one way."""


class Protocol:
    """A protocol that does nothing; real ones override what they care about.

    `Settings` is a frozen msgspec struct of what an experiment file may set: its fields have types,
    ranges, defaults and descriptions, as in `Annotated[int, Meta(ge=1, description="...")] = 3`.
    Its `__post_init__` may raise ValueError, as in `links: expected pairs of hosts, found none`,
    for what a field alone cannot say. `messages` are the kinds of message that the protocol sends
    and is told of, and no others are. `names_hosts` says that settings speak of hosts by name.
    `guarantee` is what a publish/subscribe layer promises to peers that stay. With `exactly-once` a
    run in which a delivery is missing or repeated is invalid. `matching` is the matching rule of a
    publish/subscribe layer, that of the workloads it serves.
    """

    Settings: ClassVar[type[msgspec.Struct]] = NoSettings
    messages: tuple[type, ...] = ()
    names_hosts: ClassVar[bool] = False
    guarantee: ClassVar[Literal["exactly-once", "none"]] = "none"
    matching: ClassVar[Literal["topics", "boxes"]] = "topics"

    @classmethod
    def check_hosts(cls, settings: Any, hosts: Collection[str]) -> None:
        """Raise ValueError if settings that name hosts make no sense with those of the network."""

    @classmethod
    def choose_targets(cls, settings: Any, whole: WholeNetwork) -> Mapping[int, Sequence[int]]:
        """The `targets` that peers are given by their numbers; an overlay is asked before a run."""
        del settings, whole
        return {}

    def __init__(self, given: Surroundings) -> None:
        self.me = given.me
        self.contacts = given.contacts
        self.random = given.random
        self.settings: Any = given.settings if given.settings is not None else self.Settings()

    def on_start(self, now_us: int) -> Effects:
        """The agent has come up."""
        return ()

    def on_stop(self, now_us: int) -> Effects:
        """The agent is about to leave; what it still sends goes out, and nothing comes back."""
        return ()

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> Effects:
        """A message has come in."""
        return ()

    def on_timer(self, now_us: int, name: Hashable) -> Effects:
        """A timer has run out."""
        return ()

    def on_probe_result(self, now_us: int, route: Route) -> Effects:
        """The route that `ProbeRoute` asked for."""
        return ()

    def on_delay(self, now_us: int, delay: Delay) -> Effects:
        """The delay that `MeasureDelay` asked for."""
        return ()

    def on_give_up(self, now_us: int, to: PeerId, message: Any) -> Effects:
        """A reliable message was never acknowledged."""
        return ()

    def on_announcement(self, now_us: int, content: Any) -> Effects:
        """Another protocol of this agent has announced something."""
        return ()

    def on_delivery(self, now_us: int, delivery: Deliver) -> Effects:
        """A layer below delivers an event; only the highest layer is told."""
        return ()
