"""A peer of Pastry: joining, maintenance of tables, and leaving (section 2 of the paper).

A new peer sends JOIN towards its own identifier. Each peer on the way answers with a row of its
table, and the last, numerically closest one with its leaf set. A peer that becomes an entry or a
leaf is notified, so that it can add the new peer as well.

We depart from the paper in four ways.
- In the paper, peers join one at a time. Here every peer begins as a separate network, and these
  networks merge: leaf sets are exchanged whenever they change, and a peer that fills an empty entry
  informs all peers that share as many digits, so that they can fill theirs.
- Delays to peers that others name are measured before they become entries, also without
  proximity. Therefore dead peers are not passed on.
- There is no neighbourhood set, because contacts are given.
- Rows are compared with those of other peers (section 2.5, maintenance) until nothing has changed
  for some rounds, and again after each change. Then tables are stable, and each
  entry is checked once in `upkeep_s`.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from agents.announcements import NextHop, PeerLost, PeerRestarted, Watch
from agents.overlays.identifiers import KEY_BITS, as_hex, identifier_of
from agents.overlays.pastry.messages import AskRow, Candidates, Departure, Join, LeafSet
from agents.overlays.pastry.probing import Probing
from agents.overlays.pastry.settings import PastrySettings
from agents.overlays.pastry.tables import Slot, Tables
from agents.protocol import (
    Announce,
    Delay,
    Effect,
    Effects,
    MeasureDelay,
    Neighbours,
    PeerId,
    Protocol,
    Record,
    Send,
    SetTimer,
    Surroundings,
    Value,
)

_MOST_HOPS = 64
_ALL_ROWS = KEY_BITS
_MOST_TOLD = 320  # addresses that fit into a datagram
_MOST_LOST = 8
_QUIET_ROUNDS = 3
_RETRY_TICKS = 3  # from one attempt to join to the next
_EXCHANGE_TICKS = 10  # from one exchange of unchanged leaf sets to the next


class PastryOverlay(Protocol):
    """Prefix routing with a leaf set and a routing table filled by joining and by proximity."""

    Settings = PastrySettings
    messages = (Join, Candidates, LeafSet, AskRow, Departure)
    is_directed: ClassVar[bool] = True
    offers = frozenset({"neighbours", "keys"})
    needs_failure_detector: ClassVar[bool] = True

    def __init__(self, given: Surroundings) -> None:
        super().__init__(given)
        settings: PastrySettings = self.settings
        self.tables = Tables(self.me, settings.b, settings.leaves, settings.proximity)
        self._probing = Probing(settings.delay_samples)
        self._period_us = int(settings.period_s * 1e6)
        self._tick = 0
        self._is_joined = False
        self._is_stable = given.peers == 1  # since some time
        self._is_placed = False
        self._version = 0  # of the tables that were announced
        self._roles: dict[PeerId, str] = {}  # the announced version
        self._told_leaves: list[PeerId] = []
        self._watched: frozenset[PeerId] = frozenset()
        self._suspects: set[PeerId] = set()
        self._news: list[PeerId] = []
        self._rounds = _QUIET_ROUNDS  # remaining rounds of comparing rows
        self._unchecked: list[PeerId] = []
        self._lost: list[PeerId] = []  # the latest; they may be in another part of the network

    def on_start(self, now_us: int) -> Effects:
        """Join, and begin the periodic work at a random time."""
        first_us = self.random.randrange(self._period_us)
        return [*self._join(), SetTimer("tick", first_us), *self._settle()]

    def on_stop(self, now_us: int) -> Effects:
        """Send the leaves the other leaves."""
        leaves = self.tables.leaves
        return [Send(peer, Departure(tuple(leaves))) for peer in leaves]

    def on_timer(self, now_us: int, name: Hashable) -> Effects:
        """Do the work of a period."""
        self._tick += 1
        effects = [
            *self._try_to_join(),
            *self._exchange_leaves(),
            *self._tell_news(),
            *self._compare_rows(),
            *self._check_entries(),
        ]
        self._place_if_stable()
        return [*effects, SetTimer("tick", self._period_us), *self._settle()]

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> Effects:
        """Answer a peer, and consider it and the peers that it names."""
        self._probing.hear(sender)
        match message:
            case Join():
                return self._on_join(message)
            case AskRow():
                peers = [peer for peer in self.tables.row(message.row) if peer != sender]
                return [*_tell(sender, peers), *self._consider(now_us, [sender])]
            case Departure():
                lost = self._lose(now_us, sender)
                return [*lost, *self._consider(now_us, message.leaves), *self._settle()]
            case LeafSet():
                consider = self._consider(now_us, [sender, *message.peers])
                return [*consider, *self._answer_leaves(sender, message)]
        return self._consider(now_us, [sender, *message.peers])

    def on_delay(self, now_us: int, delay: Delay) -> Effects:
        """Add a measured peer; watch an entry that did not answer."""
        peer, delay_us = delay.target, self._probing.on_delay(now_us, delay)
        effects: list[Effect] = []
        if peer in self.tables.delays_us:
            self._suspect(peer, delay_us is None)
        elif delay_us is not None:
            effects += self._admit(peer, delay_us)
        effects += self._probing.start(self._is_wanted)
        return [*effects, *self._settle()]

    def on_give_up(self, now_us: int, to: PeerId, message: Any) -> Effects:
        """Watch an entry that does not acknowledge."""
        if to in self.tables.delays_us:
            self._suspect(to, True)
        return self._settle()

    def on_announcement(self, now_us: int, content: Any) -> Effects:
        """Drop a peer that is lost; help one that has restarted."""
        if isinstance(content, PeerLost):
            return [*self._lose(now_us, content.peer), *self._settle()]
        if isinstance(content, PeerRestarted) and content.peer in self.tables.delays_us:
            return [Send(content.peer, LeafSet(tuple(self.tables.leaves)), reliable=True)]
        return ()

    def _try_to_join(self) -> Effects:
        """Try to join until that succeeds; later, sometimes look for other parts of the network."""
        seek_ticks = max(1, round(self.settings.upkeep_s / self.settings.period_s))
        ticks = seek_ticks if self._is_joined else _RETRY_TICKS
        return self._join() if self._tick % ticks == 0 else ()

    def _join(self) -> Effects:
        """Ask for rows and the leaf set, or only for the latter after joining."""
        known = [*self.contacts, *self._lost]
        if not known:
            return ()
        join = Join(self.me, _ALL_ROWS if self._is_joined else 0, 0)
        return [Send(self.random.choice(known), join, reliable=True)]

    def _on_join(self, join: Join) -> Effects:
        """Send rows to a new peer, and forward its request; the closest peer sends its leaf set."""
        joiner, tables = join.joiner, self.tables
        if joiner == self.me:
            return ()
        row, _ = tables.slot_of(joiner)
        rows = [peer for r in range(join.row, row + 1) for peer in tables.row(r) if peer != joiner]
        effects = _tell(joiner, rows) if join.row <= row else []
        to = tables.next_hop(identifier_of(joiner), without=joiner)
        if to is None or join.hops >= _MOST_HOPS:
            leaves = tuple(peer for peer in tables.leaves if peer != joiner)
            return [*effects, Send(joiner, LeafSet(leaves), reliable=True)]
        passed_on = Join(joiner, max(join.row, row + 1), join.hops + 1)
        return [*effects, Send(to, passed_on, reliable=True)]

    def _answer_leaves(self, sender: PeerId, told: LeafSet) -> Effects:
        """Send the leaf set to a peer that lacks some of it."""
        self._is_joined = True
        if not self.tables.lacks(sender, told.peers):
            return ()
        leaves = tuple(peer for peer in self.tables.leaves if peer != sender)
        return [Send(sender, LeafSet(leaves), reliable=True)]

    def _consider(self, now_us: int, peers: Iterable[PeerId]) -> Effects:
        """Measure peers that may become entries."""
        self._probing.add(now_us, [peer for peer in peers if self._is_wanted(peer)])
        return self._probing.start(self._is_wanted)

    def _is_wanted(self, peer: PeerId) -> bool:
        if peer == self.me or peer in self.tables.delays_us:
            return False
        return self.tables.wants(peer, self._probing.measured_us)

    def _admit(self, peer: PeerId, delay_us: int) -> Effects:
        """Add a peer, and notify it."""
        if self.tables.admit(peer, delay_us):
            self._news.append(peer)
        if peer not in self.tables.delays_us:
            return ()
        if self.tables.role_of(peer) == "table":
            self._rounds = _QUIET_ROUNDS
        if self.tables.is_leaf(peer):
            return [Send(peer, LeafSet(tuple(self.tables.leaves)), reliable=True)]
        return _tell(peer, [])

    def _suspect(self, peer: PeerId, is_suspect: bool) -> None:
        """Start or stop watching an entry with the failure detector."""
        if is_suspect:
            self._suspects.add(peer)
        else:
            self._suspects.discard(peer)

    def _lose(self, now_us: int, peer: PeerId) -> Effects:
        """Remove a peer that is dead or leaves, and look for a replacement."""
        self._probing.avoid(now_us, peer)
        self._suspects.discard(peer)
        if peer not in self.tables.delays_us:
            return ()
        self._lost = [*[other for other in self._lost if other != peer], peer][-_MOST_LOST:]
        is_leaf = self.tables.is_leaf(peer)
        slot = self.tables.remove(peer)
        effects = list(self._ask_for_leaves()) if is_leaf else []
        if slot is not None:
            effects += self._ask_for_entry(now_us, slot)
        return effects

    def _ask_for_leaves(self) -> Effects:
        """Ask the farthest leaf on each side for its leaves (section 2.5)."""
        leaves = self.tables.leaves
        if not leaves:
            return ()
        middle = len(leaves) // 2
        ends = dict.fromkeys((leaves[max(0, middle - 1)], leaves[middle]))
        return [Send(peer, LeafSet(tuple(leaves)), reliable=True) for peer in ends]

    def _ask_for_entry(self, now_us: int, slot: Slot) -> Effects:
        """Ask the peers that may have an entry that is empty here (section 2.5)."""
        self._rounds = _QUIET_ROUNDS
        fitting = self._probing.fitting(lambda peer: self.tables.slot_of(peer) == slot)
        asks = [Send(peer, AskRow(slot[0]), reliable=True) for peer in self.tables.sharing(slot[0])]
        return [*asks, *self._consider(now_us, fitting)]

    def _exchange_leaves(self) -> Effects:
        """Send a changed leaf set to all leaves, an unchanged one to one of them now and then."""
        leaves = self.tables.leaves
        to: list[PeerId] = []
        if leaves != self._told_leaves:
            to, self._told_leaves = leaves, leaves
        elif leaves and self._tick % _EXCHANGE_TICKS == 0:
            to = [self.random.choice(leaves)]
        return [Send(peer, LeafSet(tuple(leaves)), reliable=True) for peer in to]

    def _tell_news(self) -> Effects:
        """Send each new entry to the peers whose same entry may be empty, too."""
        told: dict[PeerId, list[PeerId]] = {}
        for peer in self._news:
            row, _ = self.tables.slot_of(peer)
            for other in self.tables.sharing(row):
                if other != peer:
                    told.setdefault(other, []).append(peer)
        self._news.clear()
        return [tell for other, peers in told.items() for tell in _tell(other, peers)]

    def _compare_rows(self) -> Effects:
        """Ask a peer of each row for its row, until nothing has changed for some rounds."""
        if self._rounds == 0:
            return ()
        self._rounds -= 1
        rows = sorted({row for row, _ in self.tables.entries})
        choose = self.random.choice
        return [Send(choose(self.tables.row(row)), AskRow(row), reliable=True) for row in rows]

    def _check_entries(self) -> Effects:
        """Measure some of the entries that are not watched."""
        entries = [peer for peer in self.tables.entries.values() if peer not in self._watched]
        if not self._unchecked:
            self._unchecked = entries
        each = -(-len(entries) * self._period_us // int(self.settings.upkeep_s * 1e6))
        checked, self._unchecked = self._unchecked[:each], self._unchecked[each:]
        return [MeasureDelay(peer, 1) for peer in checked if peer in self.tables.delays_us]

    def _place_if_stable(self) -> None:
        """Record the own place as known once the leaf set is stable."""
        is_stable = self._is_joined and self.tables.leaves and not self._probing.is_busy
        if is_stable and self.tables.leaves == self._told_leaves:
            self._is_stable = True

    def _settle(self) -> Effects:
        """Announce and record changes."""
        tables, effects = self.tables, list[Effect]()
        if tables.version != self._version:
            self._version = tables.version
            roles = {peer: tables.role_of(peer) for peer in tables.delays_us}
            effects += _record_changes(self._roles, roles, tables.delays_us)
            effects.append(Announce(Neighbours(dict(tables.delays_us), roles)))
            self._roles = dict(roles)
        watched = frozenset({*tables.leaves, *self._suspects})
        if watched != self._watched:
            self._watched = watched
            effects.append(Announce(Watch("pastry", watched)))
        return [*effects, *self._announce_place()]

    def _announce_place(self) -> Effects:
        if self._is_placed or not self._is_stable:
            return ()
        self._is_placed = True
        return [Record("placed", {"id": as_hex(self.tables.id)}), Announce(NextHop(self.tables))]


def _tell(to: PeerId, peers: Sequence[PeerId]) -> list[Effect]:
    """Send some peers to another one, in one or more messages."""
    starts = range(0, len(peers), _MOST_TOLD) or (0,)
    parts = (tuple(peers[start : start + _MOST_TOLD]) for start in starts)
    return [Send(to, Candidates(part), reliable=True) for part in parts]


def _record_changes(
    old: Mapping[PeerId, str], new: Mapping[PeerId, str], delays_us: Mapping[PeerId, int]
) -> list[Effect]:
    """Records of links that are removed, new, or have another role."""
    effects: list[Effect] = []
    for peer, role in old.items():
        if new.get(peer) != role:
            reason = "moved" if peer in new else "replaced"
            effects.append(
                Record("neighbour_removed", {"peer": peer, "role": role, "reason": reason})
            )
    for peer, role in new.items():
        if old.get(peer) != role:
            values: dict[str, Value] = {"peer": peer, "delay_us": delays_us[peer], "role": role}
            effects.append(Record("neighbour_added", values))
    return effects
