"""One version of the tree at one peer: its links, and the subscriptions in it.

A link may exist at one end only for a while: updates over it are kept, and count once the tree has
the link. While links form a cycle, a subscription may keep itself alive. Once the links form a tree
again, the updates for a link depend only on links farther away, and become correct.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from agents.protocol import PeerId, Send
from agents.pubsub.content.box_index import BoxIndex
from agents.pubsub.content.cover_table import CoverTable
from agents.pubsub.content.link import ContentLink
from agents.pubsub.content.messages import Event, StateWanted, SubscriptionUpdate, point_of

_MOST_KEPT = 256  # links outside the tree


class ContentTree:
    """Links and subscriptions of a version; `built_us` is None until routing has announced it.

    `family` is its family (`agents.routing.tree`), until then the version itself.
    """

    def __init__(self, number: int, boxes: BoxIndex, is_merging: bool = False) -> None:
        self.number = number
        self.family = number
        self.built_us: int | None = None
        self.table = CoverTable(boxes, is_merging)
        self.links: defaultdict[PeerId, ContentLink] = defaultdict(ContentLink)

    def has_link(self, peer: PeerId) -> bool:
        """Whether the tree links this peer to another one."""
        link = self.links.get(peer)
        return link is not None and link.is_up

    def wanting(self, event: Event) -> set[PeerId]:
        """The peers at links with a subscription that matches an event, and perhaps `LOCAL`."""
        return self.table.matching(point_of(event.point), event.published_us)

    def set_links(self, now_us: int, peers: Iterable[PeerId]) -> list[PeerId]:
        """Set the links; returns the peers whose subscriptions count from now on."""
        wanted = set(peers)
        for peer in sorted(p for p, link in self.links.items() if link.is_up and p not in wanted):
            self._take_down(peer)
        appeared = sorted(peer for peer in wanted if not self.has_link(peer))
        for peer in appeared:
            self._bring_up(now_us, peer)
        self._forget_links()
        return appeared

    def take(self, now_us: int, sender: PeerId, update: SubscriptionUpdate) -> bool:
        """Apply a peer's update; returns whether a new epoch has begun."""
        link = self.links[sender]
        is_new = link.incoming.is_new_epoch(update)
        if is_new:
            link.stale = set(self.table.held_of(sender) if link.is_up else link.kept)
        for ready in link.incoming.in_order(update):
            self._apply(sender, link, ready)
            link.moved_us, link.asked = now_us, 0
        self._forget_links()
        return is_new

    def begin_epoch(self, now_us: int, peer: PeerId) -> None:
        """Begin a new epoch for a peer."""
        self.links[peer].outgoing.begin(now_us)

    def updates(self) -> Iterator[Send]:
        """The updates to send to the peers at the links now."""
        up = sorted((peer, link) for peer, link in self.links.items() if link.is_up)
        told = [(peer, link.outgoing.told) for peer, link in up]
        for peer, difference in self.table.differences(told):
            for update in self.links[peer].outgoing.updates(self.number, difference):
                yield Send(peer, update, reliable=True)

    def questions(self, now_us: int, wait_us: int) -> Iterator[Send]:
        """Ask the peers whose state has been missing or incomplete for long."""
        for peer, link in sorted(self.links.items()):
            is_missing = link.is_up and not link.incoming.is_current
            if is_missing and now_us - link.moved_us >= wait_us << link.asked:
                link.asked = min(link.asked + 1, 4)
                link.moved_us = now_us
                yield Send(peer, StateWanted(self.number, link.incoming.epoch), reliable=True)

    @property
    def is_current(self) -> bool:
        """Whether the state of every neighbour is known."""
        return all(link.incoming.is_current for link in self.links.values() if link.is_up)

    def _bring_up(self, now_us: int, peer: PeerId) -> None:
        link = self.links[peer]
        link.is_up, link.moved_us, link.asked = True, now_us, 0
        link.outgoing.begin(now_us)
        for number, since_ms in link.kept.items():
            self.table.add(peer, number, since_ms)
        link.kept = {}

    def _take_down(self, peer: PeerId) -> None:
        link = self.links[peer]
        link.is_up = False
        link.kept = self.table.held_of(peer)
        for number in link.kept:
            self.table.remove(peer, number)

    def _apply(self, peer: PeerId, link: ContentLink, update: SubscriptionUpdate) -> None:
        times = update.since_ms or (0,) * len(update.added)
        for number, since_ms in zip(update.added, times, strict=True):
            link.stale.discard(number)
            self._hold(peer, link, number, since_ms)
        gone = update.withdrawn
        if update.is_complete and link.stale:
            gone = (*gone, *sorted(link.stale))
            link.stale = set()
        for number in gone:
            self._let_go(peer, link, number)
        link.incoming.is_complete |= update.is_complete

    def _hold(self, peer: PeerId, link: ContentLink, number: int, since_ms: int) -> None:
        if link.is_up:
            self.table.add(peer, number, since_ms)
        else:
            link.kept[number] = since_ms

    def _let_go(self, peer: PeerId, link: ContentLink, number: int) -> None:
        if link.is_up:
            self.table.remove(peer, number)
        else:
            link.kept.pop(number, None)

    def _forget_links(self) -> None:
        """Limit the state of links outside the tree; for a link that returns, the state is
        requested.
        """
        if len(self.links) > _MOST_KEPT:
            kept = [peer for peer, link in self.links.items() if not link.is_up]
            for peer in kept[: len(self.links) - _MOST_KEPT]:
                del self.links[peer]
