"""Link state of the overlay, so that each peer knows all overlay links.

As in link-state routing, every peer states its links with an increasing number, statements are
flooded, and the newest statement of each peer counts. A link exists if both its ends state it.
Statements of failed peers need not expire: their neighbours no longer state links to them.

Hellos contain a digest of everything that their sender knows. Neighbours whose digests keep
differing send each other a summary, and the statements that the other lacks.
"""

from collections.abc import Iterator, Mapping
from hashlib import blake2b

from msgspec import Struct

from agents.protocol import PeerId
from agents.wire.codec import HEADER, MAX_DATAGRAM_BYTES, U32, U64, Peer, message

Edge = tuple[PeerId, PeerId]
MOST_LINKS = (MAX_DATAGRAM_BYTES - HEADER.size - 4 - 4 - 2) // 8  # of a peer that fit in a message
_PEERS_PER_SUMMARY = (MAX_DATAGRAM_BYTES - HEADER.size - 4 - 4 - 2) // 8
_HIGHEST_PEER = 0xFFFFFFFF


class StatedLink(Struct, frozen=True):
    """A neighbour, and the one-way delay to it as its owner sees it."""

    peer: Peer
    delay_us: U32


@message(93, role="upkeep")
class LinkHello(Struct, frozen=True):
    """A sign of life with a digest of the sender's knowledge."""

    digest: U64


@message(94, role="control")
class LinkState(Struct, frozen=True):
    """All links of a peer, as of a number; flooded."""

    origin: Peer
    sequence: U32
    links: tuple[StatedLink, ...]


class KnownState(Struct, frozen=True):
    """A peer whose links are known, and the number of its statement."""

    origin: Peer
    sequence: U32


@message(95, role="control")
class LinkSummary(Struct, frozen=True):
    """The peers whose links the sender knows, among the addresses from one to another."""

    low: Peer
    high: Peer
    known: tuple[KnownState, ...]


class LinkStates:
    """The newest statement of every peer."""

    def __init__(self) -> None:
        self.states: dict[PeerId, LinkState] = {}
        self.digest = 0

    def take(self, state: LinkState) -> bool:
        """Keep a statement, if it is newer than the known one; returns whether it is."""
        before = self.states.get(state.origin)
        if before is not None:
            if before.sequence >= state.sequence:
                return False
            self.digest ^= _digest_of(before)
        self.states[state.origin] = state
        self.digest ^= _digest_of(state)
        return True

    def sequence_of(self, origin: PeerId) -> int:
        """The number of a peer's newest statement, or -1."""
        known = self.states.get(origin)
        return known.sequence if known is not None else -1

    def edges(self) -> dict[Edge, int]:
        """The links that both ends state, lower address first, with the mean of both delays."""
        stated_us = {
            (origin, link.peer): link.delay_us
            for origin, state in self.states.items()
            for link in state.links
        }
        return {
            (a, b): max(1, (delay_us + stated_us[b, a]) // 2)
            for (a, b), delay_us in stated_us.items()
            if a < b and (b, a) in stated_us
        }

    def summaries(self) -> Iterator[LinkSummary]:
        """Summaries of all statements, without links."""
        origins = sorted(self.states)
        low = 0
        for at in range(0, max(1, len(origins)), _PEERS_PER_SUMMARY):
            some = origins[at : at + _PEERS_PER_SUMMARY]
            is_last = at + _PEERS_PER_SUMMARY >= len(origins)
            high = _HIGHEST_PEER if is_last else some[-1]
            known = tuple(KnownState(origin, self.states[origin].sequence) for origin in some)
            yield LinkSummary(low, high, known)
            low = high + 1

    def newer_than(self, summary: LinkSummary) -> list[LinkState]:
        """The statements that the sender of a summary lacks."""
        theirs = {known.origin: known.sequence for known in summary.known}
        return [
            state
            for origin, state in sorted(self.states.items())
            if summary.low <= origin <= summary.high and state.sequence > theirs.get(origin, -1)
        ]


def make_state(origin: PeerId, sequence: int, delays_us: Mapping[PeerId, int]) -> LinkState:
    """A peer's statement; if its links do not fit into a message, those with the least delay."""
    nearest = sorted(delays_us, key=lambda peer: (delays_us[peer], peer))[:MOST_LINKS]
    links = tuple(StatedLink(peer, min(delays_us[peer], 0xFFFFFFFF)) for peer in sorted(nearest))
    return LinkState(origin, sequence, links)


def _digest_of(state: LinkState) -> int:
    what = state.origin.to_bytes(4) + state.sequence.to_bytes(4)
    return int.from_bytes(blake2b(what, digest_size=8).digest())


MESSAGES = (LinkHello, LinkState, LinkSummary)
