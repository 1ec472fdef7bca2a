"""The messages of the routing layer: leader and spanning tree, core selection, and the tree T.

The names follow section 5 of Tariq, Koldehofe and Rothermel (DEBS 2013) where it has any:
CORE_SPT and JOIN_CORE of algorithm 2.
"""

from msgspec import Struct

from agents.routing.similarity import EventWindow
from agents.wire.codec import F64, U8, U16, U32, Peer, message

NOT_LINKED, CHILD, BACKBONE_CHILD = range(3)  # relation of a hello's sender to its receiver


class VersionState(Struct, frozen=True):
    """The state of the sender of a hello in one version of the tree.

    `number` is that of its last CoreSpt to the receiver. `rank` and `beat` are the root core and
    the highest number heard from it. `link` is the relation of the sender to the receiver.
    """

    version: U32
    number: U32
    link: U8
    rank: U8
    beat: U32


@message(80, role="upkeep")
class TreeHello(Struct, frozen=True):
    """A sign of life with the sender's place in the spanning tree T_C; `parent` 0 means none."""

    leader: Peer
    sequence: U32
    hops: U16
    parent: Peer
    delay_us: U32
    current: U32
    states: tuple[VersionState, ...]


@message(81, role="control")
class SelectionCall(Struct, frozen=True):
    """A selection begins: send interests to neighbours, and report within this time."""

    version: U32
    wait_ms: U32


@message(82, role="control")
class Interest(Struct, frozen=True):
    """The events that the sender had at the beginning of a selection."""

    version: U32
    window: EventWindow


class Candidate(Struct, frozen=True):
    """A peer that may become a core, and its votes."""

    peer: Peer
    votes: F64


@message(83, role="control")
class Ballot(Struct, frozen=True):
    """The candidates with the most votes in the sender's part of T_C."""

    version: U32
    candidates: tuple[Candidate, ...]


class PeerLinks(Struct, frozen=True):
    """A peer, and its links to neighbours with a higher address."""

    peer: Peer
    neighbours: tuple[Peer, ...]
    weights_us: tuple[U32, ...]


@message(84, role="control")
class LinkReport(Struct, frozen=True):
    """One part of all links in the sender's part of T_C."""

    version: U32
    part: U16
    parts: U16
    peers: tuple[PeerLinks, ...]


@message(85, role="control")
class CoreList(Struct, frozen=True):
    """The result of a selection: the cores, the root core first."""

    version: U32
    cores: tuple[Peer, ...]


@message(86, role="control")
class ParentList(Struct, frozen=True):
    """Peers in the receiver's part of T_C, and their parents in a tree chosen by the leader."""

    version: U32
    peers: tuple[Peer, ...]
    parents: tuple[Peer, ...]


class CorePath(Struct, frozen=True):
    """A path to a core: its weight, and the peers on it from the core to the sender."""

    core: Peer
    weight_us: U32
    path: tuple[Peer, ...]


@message(87, role="control")
class CoreSpt(Struct, frozen=True):
    """CORE_SPT: the sender's root path and, if it is another, its relay path."""

    version: U32
    number: U32
    root: CorePath | None
    relay: CorePath | None


@message(88, role="control")
class JoinCore(Struct, frozen=True):
    """JOIN_CORE: the receiver is the sender's parent, or a core's next hop to the root core."""

    version: U32
    is_backbone: bool


@message(89, role="control")
class LeaveCore(Struct, frozen=True):
    """The receiver is no longer the sender's parent."""

    version: U32


@message(90, role="control")
class CoreRequest(Struct, frozen=True):
    """A request to send the last CoreSpt again."""

    version: U32


@message(91, role="control")
class RecalculationRequest(Struct, frozen=True):
    """To the leader: a request to replace this version."""

    version: U32


@message(92, role="control")
class Farewell(Struct, frozen=True):
    """The sender leaves."""


MESSAGES = (
    TreeHello, SelectionCall, Interest, Ballot, LinkReport, CoreList, ParentList, CoreSpt,
    JoinCore, LeaveCore, CoreRequest, RecalculationRequest, Farewell,
)  # fmt: skip
