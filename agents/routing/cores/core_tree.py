"""One version of the routing tree T at one peer: algorithm 2 of Tariq, Koldehofe and Rothermel
(DEBS 2013, section 5.2), interpreted so that T is a tree for any order of messages.

Every peer keeps the latest offer (CORE_SPT) of each neighbour and follows the best one. This is
distributed Bellman-Ford; each offer contains its path, so that no peer follows itself. A peer keeps
two paths:

- The *relay* path leads to the closest core. A peer forwards only this one, which is the pruning of
  algorithm 2: an offer of another core stops where it is not the best. A neighbour's offer of
  another core is the second closest core of section 5.3.
- The *root* path leads to the root core, and all peers forward it. In the paper, cores join the
  root core "similar to the non-core peers", but pruned offers of the root core do not reach them.

The root paths of cores lead over other peers, perhaps near other cores. If such a peer also
followed its own relay, there would be cycles. Therefore a peer on the path of a core to the root
core, a member of the *backbone*, follows its root path. Then every peer has one parent, and the
parents lead to the backbone and on it to the root core: T is a tree.

With `repair = "optimal"` both paths are always the best of all offers. With `repair = "local"`, a
peer with a parent in a complete tree follows that parent's offers, until the parent is gone or has
no path that avoids the peer itself (section 5.3).

If the root core fails, the next core of the list replaces it (`pulse`). Until that is known, peers
would try longer and longer paths over each other to the former root core. Therefore a peer that
loses its root path announces the loss first, and uses a path of greater weight only after a while.
By then, paths over itself and paths that end nowhere have disappeared. Relay paths need no such
rule, because another core is always near.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from agents.protocol import PeerId
from agents.routing.cores.messages import (
    BACKBONE_CHILD,
    CHILD,
    NOT_LINKED,
    CoreList,
    CorePath,
    CoreSpt,
    VersionState,
)
from agents.routing.cores.pulse import Pulse

_MOST_ON_A_PATH = 150  # two paths fit into a message
_HEAVIEST_US = 0xFFFFFFFF
_PATIENCES = 3  # signs of life propagate up T_C by one hop in a period
_NOTHING: tuple[None, None] = (None, None)


class PathToCore(NamedTuple):
    """A path to a core; paths are ordered by weight, then by the number of peers."""

    weight_us: int
    hops: int
    via: PeerId
    core: PeerId
    path: tuple[PeerId, ...]  # from the core to this peer


class CoreTree:
    """The state of one peer in one version, and its links in the tree."""

    def __init__(
        self, me: PeerId, version: int, cores: tuple[PeerId, ...], now_us: int, is_rooted: bool
    ) -> None:
        """With `is_rooted` all peers follow the root path, as in a tree chosen by the leader."""
        self.me = me
        self.version = version
        self.family = version  # the version under which its cores were announced
        self.cores = cores
        self.known_us = now_us
        self.pulse = Pulse(cores.index(me) if me in cores else None)
        if not self.pulse.is_mine:
            self.pulse.adopt(now_us, 0, 0)
        self.pulse.changed_us = now_us
        self.is_mine = me in cores
        self.root: PathToCore | None = None
        self.relay: PathToCore | None = None
        self.parent: PeerId | None = None
        self.joined_as = NOT_LINKED  # what the parent was sent
        self.assigned: PeerId | None = None  # the parent chosen by the leader
        self.children: dict[PeerId, bool] = {}  # and whether they are on the backbone
        self.offers: dict[PeerId, CoreSpt] = {}
        self._is_rooted = is_rooted
        self._sent: dict[PeerId, CoreSpt] = {}
        self._rootless_us = now_us
        self._held: tuple[PeerId | None, int, int] = (None, 0, 0)  # core, lost weight, until when

    @property
    def root_core(self) -> PeerId | None:
        """The core that acts as root, if a live one is known."""
        return None if self.pulse.lowest is None else self.cores[self.pulse.lowest]

    @property
    def is_backbone(self) -> bool:
        """Whether this peer follows the root path, not the relay path."""
        return self.is_mine or self._is_rooted or any(self.children.values())

    @property
    def links(self) -> tuple[PeerId, ...]:
        """The links of this peer in the tree."""
        ends = {*self.children} if self.parent is None else {self.parent, *self.children}
        return tuple(sorted(ends))

    @property
    def next_parent(self) -> PeerId | None:
        """The parent that this peer should have; the present one while no path is known."""
        if self.root_core == self.me:
            return None
        return self.wanted.via if self.wanted is not None else self.parent

    @property
    def wanted(self) -> PathToCore | None:
        """The path that this peer's parent should be on; none at the root core."""
        if self.root_core == self.me:
            return None
        return self.root if self.is_mine or self._follows_root else self.relay

    @property
    def role(self) -> int:
        """The relation of this peer to its parent."""
        return BACKBONE_CHILD if self._follows_root else CHILD

    @property
    def _follows_root(self) -> bool:
        return self.root is not None and self.is_backbone

    def is_headless(self, now_us: int, patience_us: int) -> bool:
        """Whether no live core has been known for long."""
        is_old = now_us - self.pulse.changed_us > _PATIENCES * patience_us
        return self.pulse.lowest is None and is_old

    def take_offer(self, sender: PeerId, offer: CoreSpt) -> bool:
        """Keep a neighbour's offer, unless it is older than the one that is kept."""
        known = self.offers.get(sender)
        if known is not None and offer.number <= known.number:
            return False
        sound = [
            path if path is not None and self._is_sound(sender, path) else None
            for path in (offer.root, offer.relay)
        ]
        self.offers[sender] = CoreSpt(offer.version, offer.number, *sound)
        return True

    def lose(self, peer: PeerId) -> bool:
        """Remove all information from a neighbour; returns whether there was any."""
        is_known = peer in self.offers or peer in self.children or peer in self._sent
        self.offers.pop(peer, None)
        self.children.pop(peer, None)
        self._sent.pop(peer, None)
        if self.parent == peer:
            self.parent, self.joined_as = None, NOT_LINKED
        if self.assigned == peer:
            self.assigned = None
        return is_known

    def choose(
        self,
        now_us: int,
        weight_of: Callable[[PeerId], int],
        hold_us: int = 0,
        is_kept: bool = False,
    ) -> None:
        """Choose the best paths among all offers; a root path of greater weight has to wait.

        With `is_kept` the path leads over the present parent, as long as that has one to offer.
        """
        ways = list(self._ways(weight_of))
        own = PathToCore(0, 1, self.me, self.me, (self.me,))
        if self.root_core == self.me:
            self.root = own
        else:
            rooted = [way for way in ways if way.core == self.root_core]
            if self.assigned is not None:
                rooted = [way for way in rooted if way.via == self.assigned]
            elif is_kept and self.joined_as == BACKBONE_CHILD:
                rooted = self._over_parent(rooted)
            self.root = self._hold_back(now_us, min(rooted, default=None), hold_us)
        if self._is_rooted:
            self.relay = self.root
        elif self.is_mine:
            self.relay = own
        else:
            kept = self._over_parent(ways) if is_kept and self.joined_as == CHILD else ways
            self.relay = min(kept, default=None)

    def _over_parent(self, ways: list[PathToCore]) -> list[PathToCore]:
        """The paths over the parent, or all paths if there are none."""
        return [way for way in ways if way.via == self.parent] or ways

    def offers_to_send(self, now_us: int, peers: list[PeerId]) -> Iterator[tuple[PeerId, CoreSpt]]:
        """The offers that differ from what neighbours were sent last."""
        for peer in peers:
            before = self._sent.get(peer)
            content = self._content_for(peer)
            if content != ((before.root, before.relay) if before is not None else _NOTHING):
                number = max(before.number + 1 if before is not None else 1, now_us // 1_000)
                self._sent[peer] = CoreSpt(self.version, number & 0xFFFFFFFF, *content)
                yield peer, self._sent[peer]

    def last_offer(self, peer: PeerId) -> CoreSpt | None:
        """The last offer to a neighbour."""
        return self._sent.get(peer)

    def set_child(self, peer: PeerId, link: int) -> bool:
        """Record the relation of a neighbour to this peer; returns whether it is new."""
        before = self.children.get(peer)
        if link == NOT_LINKED:
            self.children.pop(peer, None)
        else:
            self.children[peer] = link == BACKBONE_CHILD
        return before != self.children.get(peer)

    def hear(self, now_us: int, rank: int, beat: int) -> bool:
        """Record a sign of life of the root core; returns whether another core is root now."""
        before = self.pulse.lowest
        if rank < len(self.cores) and self.pulse.is_news(rank, beat):
            self.pulse.adopt(now_us, rank, beat)
        return self.pulse.lowest != before and self._change_root(now_us)

    def on_tick(self, now_us: int, patience_us: int) -> bool:
        """Send a sign of life as the root core, or check for one; returns whether it changed."""
        if self.pulse.is_mine:
            self.pulse.beat(now_us)
            return False
        if self.root is not None:
            self._rootless_us = now_us
        elif self.assigned is not None and now_us - self._rootless_us > patience_us:
            self.assigned = None  # a child may have lost its own parent, and needs an offer
            self._rootless_us = now_us
            return True
        is_lost = self.pulse.lowest is not None and now_us - self._rootless_us > patience_us
        if is_lost:
            self.pulse.give_up(now_us)
        if not is_lost and not self.pulse.expire(now_us, _PATIENCES * patience_us):
            return False
        if self.pulse.is_mine:
            self.pulse.beat(now_us)
        return self._change_root(now_us)

    def state_for(self, peer: PeerId) -> VersionState:
        """The information about this version in a hello to a neighbour."""
        sent = self._sent.get(peer)
        link = self.joined_as if peer == self.parent else NOT_LINKED
        rank, beat = self.pulse.lowest, self.pulse.sequence
        return VersionState(
            self.version,
            sent.number if sent is not None else 0,
            link,
            0xFF if rank is None else rank,
            beat,
        )

    def is_holding(self, now_us: int) -> bool:
        """Whether a root path of greater weight has to wait."""
        return now_us < self._held[2]

    def _hold_back(self, now_us: int, best: PathToCore | None, hold_us: int) -> PathToCore | None:
        before = self.root if self.root is not None and self.root.core == self.root_core else None
        if before is not None and (best is None or best.weight_us > before.weight_us):
            self._held = (before.core, before.weight_us, now_us + hold_us)
        core, lost_us, until_us = self._held
        is_held = core == self.root_core and now_us < until_us
        return None if is_held and best is not None and best.weight_us > lost_us else best

    def _change_root(self, now_us: int) -> bool:
        """Another core acts as root; the path to the former is not used any more."""
        self.root, self._rootless_us = None, now_us
        return True

    def _ways(self, weight_of: Callable[[PeerId], int]) -> Iterator[PathToCore]:
        for peer, offer in self.offers.items():
            for path in (offer.root, offer.relay):
                if path is None or self.me in path.path:
                    continue
                weight_us = path.weight_us + weight_of(peer)
                if weight_us <= _HEAVIEST_US and len(path.path) < _MOST_ON_A_PATH:
                    passed = (*path.path, self.me)
                    yield PathToCore(weight_us, len(passed), peer, path.core, passed)

    def _content_for(self, peer: PeerId) -> tuple[CorePath | None, CorePath | None]:
        """The paths to offer to a neighbour, without those that lead over it."""
        root = self.root if self.root is not None and peer not in self.root.path else None
        relay = self.relay if self.relay is not None and peer not in self.relay.path else None
        return _path(root), _path(relay) if relay != root else None

    def _is_sound(self, sender: PeerId, path: CorePath) -> bool:
        ends = (path.path[0], path.path[-1]) if path.path else ()
        return ends == (path.core, sender) and path.core in self.cores


def _path(way: PathToCore | None) -> CorePath | None:
    return CorePath(way.core, way.weight_us, way.path) if way is not None else None


def family_members(cores: CoreList, is_family: bool) -> list[tuple[int, tuple[PeerId, ...]]]:
    """The versions to build for a list of cores, each with its root core first."""
    if not is_family:
        return [(cores.version, cores.cores)]
    last = len(cores.cores) - 1
    return [
        (cores.version - (last - at << 16), (core, *cores.cores[:at], *cores.cores[at + 1 :]))
        for at, core in enumerate(cores.cores)
    ]
