"""One round of core selection at one peer: votes or links, gathered from the leaves of T_C up.

A round has its own tree: the parent is the peer that called, the children are those that followed
this peer when the call arrived. T_C may therefore change during the round. A child that fails or is
late is left out. The leader has the latest deadline, and each level below a slightly earlier one.
"""

from collections.abc import Iterable, Iterator

from agents.protocol import PeerId
from agents.routing.cores.messages import Ballot, Candidate, LinkReport, ParentList, PeerLinks
from agents.routing.cores.strategies import Vote, most_voted
from agents.wire.codec import HEADER, MAX_DATAGRAM_BYTES

_ROOM_BYTES = MAX_DATAGRAM_BYTES - HEADER.size - 16
_MOST_LINKS = 150  # of one peer in one entry
_MOST_PARENTS = 150  # in one message


class SelectionRound:
    """What one peer has gathered for a version, and the peers that it waits for."""

    def __init__(self, version: int, caller: PeerId | None, children: Iterable[PeerId]) -> None:
        self.version = version
        self.caller = caller
        self.is_reported = False
        self.without_interest: set[PeerId] = set()  # neighbours whose interests have not arrived
        self.is_voted = False
        self.votes: dict[PeerId, float] = {}
        self.links: list[PeerLinks] = []
        self.below: dict[PeerId, set[PeerId]] = {}  # the peers that each child reported for
        self._waiting = set(children)
        self._parts: dict[PeerId, set[int]] = {}

    @property
    def is_complete(self) -> bool:
        """Whether this peer has voted and all children have reported."""
        return self.is_voted and not self._waiting

    def lose(self, peer: PeerId) -> None:
        """Stop waiting for a peer."""
        self._waiting.discard(peer)
        self.without_interest.discard(peer)

    def add_vote(self, vote: Vote) -> None:
        """Count this peer's own vote."""
        self.is_voted = True
        self._count(vote.candidate, vote.votes)

    def add_links(self, own: Iterable[PeerLinks]) -> None:
        """Add this peer's own links."""
        self.is_voted = True
        self.links += own

    def on_ballot(self, child: PeerId, ballot: Ballot) -> None:
        """Add up the votes from a child's part of the tree."""
        if child in self._waiting:
            self._waiting.remove(child)
            for candidate in ballot.candidates:
                self._count(candidate.peer, candidate.votes)

    def on_links(self, child: PeerId, report: LinkReport) -> None:
        """Add one part of a child's links; the child has reported when all parts have arrived."""
        seen = self._parts.setdefault(child, set())
        if child not in self._waiting or report.part in seen:
            return
        seen.add(report.part)
        self.links += report.peers
        self.below.setdefault(child, set()).update(entry.peer for entry in report.peers)
        if len(seen) >= report.parts:
            self._waiting.remove(child)

    def ballot(self, count: int) -> Ballot:
        """The votes for the caller: a constant number of candidates at every level."""
        best = most_voted(self.votes, count)
        return Ballot(self.version, tuple(Candidate(peer, self.votes[peer]) for peer in best))

    def reports(self) -> list[LinkReport]:
        """All links that were gathered, in as many messages as needed."""
        batches = list(_batches(self.links)) or [[]]
        return [
            LinkReport(self.version, part, len(batches), tuple(batch))
            for part, batch in enumerate(batches)
        ]

    def parent_lists(self, parents: dict[PeerId, PeerId]) -> Iterator[tuple[PeerId, ParentList]]:
        """For each child, the parents of the peers that it reported for, in the leader's tree."""
        for child, peers in sorted(self.below.items()):
            told = sorted(peer for peer in peers if peer in parents)
            for at in range(0, len(told), _MOST_PARENTS):
                part = told[at : at + _MOST_PARENTS]
                chosen = tuple(parents[peer] for peer in part)
                yield child, ParentList(self.version, tuple(part), chosen)

    def _count(self, candidate: PeerId, votes: float) -> None:
        self.votes[candidate] = self.votes.get(candidate, 0.0) + votes


def split_links(peer: PeerId, weights_us: dict[PeerId, int]) -> list[PeerLinks]:
    """A peer's links to neighbours with a higher address, in entries that fit into a message."""
    higher = sorted(neighbour for neighbour in weights_us if neighbour > peer)
    parts = [higher[at : at + _MOST_LINKS] for at in range(0, len(higher), _MOST_LINKS)] or [[]]
    return [PeerLinks(peer, tuple(p), tuple(weights_us[n] for n in p)) for p in parts]


def _batches(links: Iterable[PeerLinks]) -> Iterator[list[PeerLinks]]:
    batch: list[PeerLinks] = []
    size = 0
    for entry in links:
        entry_bytes = 8 + 8 * len(entry.neighbours)
        if batch and size + entry_bytes > _ROOM_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += entry_bytes
    if batch:
        yield batch
