"""The interface of a protocol: the handlers that a runtime calls and the effects they return.

A protocol is a class with the handlers below. It opens no socket, reads no clock and uses no
global random generator. Time is an argument in whole microseconds, randomness is a seeded
generator, and a handler returns a list of effects that the runtime carries out. Therefore the same
protocol runs on emulated hosts and in the simulator. `docs/writing-a-protocol.md` has a complete
example.
"""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar, Literal, final

import msgspec

from agents.probing.route import Route
from workloads.share import Share

# The IPv4 address of the peer's host, as a number.
PeerId = int
Value = int | float | str | bool
# What a layer offers to the layers above it: links to neighbours, links that both ends hold, a next
# hop for each key, its position on a ring, or trees.
Service = Literal["neighbours", "mutual neighbours", "keys", "positions", "trees"]


@final
class Send(msgspec.Struct, frozen=True):
    """Send a message to a peer; a reliable one is repeated until acknowledged or given up."""

    to: PeerId
    message: Any
    reliable: bool = False


@final
class SetTimer(msgspec.Struct, frozen=True):
    """Call `on_timer` with this name after `delay_us`; replaces a timer of the same name."""

    name: Hashable
    delay_us: int


@final
class CancelTimer(msgspec.Struct, frozen=True):
    """Cancel a timer, if it is set."""

    name: Hashable


@final
class ProbeRoute(msgspec.Struct, frozen=True):
    """Infer the route to a peer; the result arrives in `on_probe_result`."""

    target: PeerId


@final
class MeasureDelay(msgspec.Struct, frozen=True):
    """Measure the round-trip time to a peer; the samples arrive in `on_delay`."""

    target: PeerId
    samples: int = 3


@final
class Deliver(msgspec.Struct, frozen=True):
    """Deliver an event that matches an interest of this peer to the application.

    `hop_count` is the number of overlay links from the publisher, the one from `sender` included.
    """

    event_id: int
    sender: PeerId
    hop_count: int


@final
class Record(msgspec.Struct, frozen=True):
    """Write a record for the analysis: what happened, in the past tense, with its values."""

    what: str
    values: Mapping[str, Value] = msgspec.field(default_factory=dict)


@final
class Announce(msgspec.Struct, frozen=True):
    """Pass an announcement to the other layers of this agent; a layer selects them by type."""

    content: Any


@final
class Compute(msgspec.Struct, frozen=True):
    """Call a function that takes long, off the event loop; the result comes to `on_computed`.

    The function is one of a module, and it, its arguments and its result can be pickled. Emulation
    calls it in another process. In a simulation, whose clock does not see how long it takes, the
    result comes after `duration_us`.
    """

    name: Hashable
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    duration_us: int


Effect = (
    Send
    | SetTimer
    | CancelTimer
    | ProbeRoute
    | MeasureDelay
    | Deliver
    | Record
    | Announce
    | Compute
)
Effects = Sequence[Effect]


@dataclass(frozen=True, slots=True)
class Delay:
    """Round-trip times to a peer; there are no samples if the peer did not answer."""

    target: PeerId
    samples_us: tuple[int, ...]

    @property
    def min_us(self) -> int:
        """The smallest sample: the one with the least queueing."""
        return min(self.samples_us)

    @property
    def median_us(self) -> int:
        """The median of the samples."""
        return sorted(self.samples_us)[len(self.samples_us) // 2]


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Announced by an overlay: the neighbours of this peer, and the one-way delay to each.

    `roles` may name the purpose of each link, for example `successor` or `finger`.
    """

    delays_us: Mapping[PeerId, int]
    roles: Mapping[PeerId, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Surroundings:
    """What a protocol is given when it is made.

    - `me` is the address of this peer, `contacts` are the peers that it knows at its start.
    - `random` is the protocol's random generator; a publish/subscribe layer is given
      `pubsub_random` as its `random`.
    - `settings` is an instance of the protocol's own `Settings`; None means all defaults.
    - `targets` are peers chosen with knowledge of the whole network, for baselines that need it.
    - `plan` is what the overlay's `plan` computed for this peer before the run.
    - `number` is this agent's number from 0 to `peers` - 1.
    - `run_seed` is the same for all agents, so that all draw the same values from it.
    - `hosts` maps the name of every agent's host to its address, in the order of the agents'
      numbers. It is filled only if a protocol of the run sets `names_hosts`.
    - `workload` is this peer's part of the workload, so that an overlay knows its interests before
      the application announces them.
    - `shared` is one dictionary for all agents of a process, for caches that do not change results.
    """

    me: PeerId
    contacts: tuple[PeerId, ...]
    random: Random
    settings: msgspec.Struct | None = None
    targets: tuple[PeerId, ...] = ()
    plan: tuple[int, ...] = ()
    number: int = 0
    peers: int = 1
    run_seed: int = 0
    hosts: Mapping[str, PeerId] = field(default_factory=dict)
    workload: Share = field(default_factory=Share)
    pubsub_random: Random = field(default_factory=lambda: Random(0))
    shared: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WholeNetwork:
    """Knowledge of the whole network before a run, for baselines and for planned overlays.

    Peers are identified by their numbers. `nearest` and `farthest` return, for each peer, the given
    number of other peers ordered by their delay. `interests` returns the contents of each peer's
    interests at the start of the run.
    """

    seed: int
    peers: int
    nearest: Callable[[int], Sequence[Sequence[int]]]
    farthest: Callable[[int], Sequence[Sequence[int]]]
    interests: Callable[[], Sequence[Collection[int]]] = tuple


def draw_others(chance: Random, me: int, peers: int, count: int) -> list[int]:
    """`count` different numbers from 0 to `peers` - 1 without `me`, or all if there are fewer."""
    # A list of all other peers would take most of the time in a large network.
    drawn = chance.sample(range(peers - 1), min(count, peers - 1))
    return [number + (number >= me) for number in drawn]


class NoSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a protocol that has none."""


class Protocol:
    """A protocol that does nothing; a real one overrides the handlers it needs.

    - `Settings` is a frozen msgspec struct of the keys that an experiment file may set. Its fields
      have types, ranges, defaults and descriptions:
      `Annotated[int, Meta(ge=1, description="...")] = 3`. Its `__post_init__` may raise ValueError
      for conditions on several fields, for example `links: expected pairs of hosts, found none`.
    - `messages` are the message types that the protocol sends and receives.
    - `names_hosts` is true if the settings contain names of hosts.
    - `guarantee` is what a publish/subscribe layer guarantees to peers that stay. With
      `exactly-once`, a missing or repeated delivery makes the run invalid. With custody, peers
      stay that run and are subscribed from `settle_s` before the event.
    - `matching` is the matching rule of a publish/subscribe layer. It serves the workloads that
      have the same rule.
    - `is_directed` is true if the links of an overlay are one-way: a link belongs to its owner, and
      the other end need not hold it.
    - `offers` are the services of an overlay or a routing layer. `needs` is the service of lower
      layers without which a layer never becomes ready; an experiment that lacks it is refused.
    - `needs_failure_detector` is true if an overlay relies on `PeerLost` and `PeerRestarted`. Its
      `Settings` are then derived from `agents.failure_detector.FailureDetectorSettings`.
    """

    Settings: ClassVar[type[msgspec.Struct]] = NoSettings
    messages: tuple[type, ...] = ()
    names_hosts: ClassVar[bool] = False
    guarantee: ClassVar[Literal["exactly-once", "none"]] = "none"
    settle_s: ClassVar[float] = 2.0
    matching: ClassVar[Literal["topics", "boxes"]] = "topics"
    is_directed: ClassVar[bool] = False
    offers: ClassVar[frozenset[Service]] = frozenset()
    needs: ClassVar[Service | None] = None
    needs_failure_detector: ClassVar[bool] = False

    @classmethod
    def check_hosts(cls, settings: Any, hosts: Collection[str]) -> None:
        """Raise ValueError if the settings do not fit the hosts of the network."""

    @classmethod
    def choose_targets(cls, settings: Any, whole: WholeNetwork) -> Mapping[int, Sequence[int]]:
        """The `targets` of each peer, by number; called for the overlay before a run."""
        del settings, whole
        return {}

    @classmethod
    def plan(cls, settings: Any, whole: WholeNetwork) -> Mapping[int, Sequence[int]]:
        """The `plan` of each peer, by number; called for the overlay once before a run."""
        del settings, whole
        return {}

    def __init__(self, given: Surroundings) -> None:
        self.me = given.me
        self.contacts = given.contacts
        self.random = given.random
        self.settings: Any = given.settings if given.settings is not None else self.Settings()

    def on_start(self, now_us: int) -> Effects:
        """The agent starts."""
        return ()

    def on_stop(self, now_us: int) -> Effects:
        """The agent is about to leave: it can still send messages, but receives none."""
        return ()

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> Effects:
        """A message has arrived."""
        return ()

    def on_timer(self, now_us: int, name: Hashable) -> Effects:
        """A timer has expired."""
        return ()

    def on_probe_result(self, now_us: int, route: Route) -> Effects:
        """The result of a `ProbeRoute`."""
        return ()

    def on_delay(self, now_us: int, delay: Delay) -> Effects:
        """The result of a `MeasureDelay`."""
        return ()

    def on_computed(self, now_us: int, name: Hashable, result: Any) -> Effects:
        """A `Compute` effect has finished."""
        return ()

    def on_give_up(self, now_us: int, to: PeerId, message: Any) -> Effects:
        """A reliable message was not acknowledged and is no longer repeated."""
        return ()

    def on_announcement(self, now_us: int, content: Any) -> Effects:
        """Another layer of this agent has made an announcement."""
        return ()

    def on_delivery(self, now_us: int, delivery: Deliver) -> Effects:
        """A lower layer delivers an event; only the highest layer receives this call."""
        return ()
