"""Custody of events: the sender of a part of an event keeps it until the receiver reports it done.

A reliable message is acknowledged by the next peer. If that peer crashes before it has passed the
event on, the event is lost without notice. With custody a crash costs only time.

A *part* is what one peer has to do for an event: reach the subscribers of a range or of a subtree,
or relay the event to the peer that does. A part is done when all messages that the peer sent on for
it are done; a part without messages is done at once. The peer then reports it to the peer that sent
it. A message whose receiver is lost, restarted, does not know it or never acknowledged it returns
to the forwarder, which decides again where it goes.

Events may reach a peer twice: forwarders have to deliver them once.

How a forwarder uses it
-----------------------
A forwarder is a publish/subscribe protocol. It owns one `Custody`, adds `Custody.messages` to its
own, and calls these methods of custody: `on_message` for these messages, `on_timer` for names for
which `is_own_timer` holds, and every `on_give_up` and `on_announcement`. A message that carries an
event has a field `token: U32`, which custody fills in; the forwarder makes it with 0. Each of these
methods returns effects, and so do those below.

A message with an event arrives:

    part = custody.take(now_us, sender, message.token, key, is_relay=False)
    if part.is_new:
        effects += custody.send(now_us, part, to, message_for_to)   # any number of times
        effects += custody.hold(now_us, part, message_for_later)    # no next hop is known now
    effects += custody.settle(now_us, part)                         # always, at the end

- A *handler* (`is_relay=False`) splits a part into others. `key` says everything that makes a part
  the same, as in (event, topic) or (event, epoch, low, span). A part with a key that was taken
  within `keep_s` is not new: it is answered from state. Never use the event alone: after a crash,
  a replacement may split another way.
- A *relay* (`is_relay=True`) passes a part on as it is. It keeps state for each (sender, token), so
  it passes the same part on again if it gets it twice. `part.is_loop` says that it is still
  passing on a part with the same key, as in a routing loop: hold such a message. It is tried again
  later, and leaves the loop once routes are right.
- Both flags hold until `settle`.
- Handlers must not wait for each other in a cycle: the parts that a handler sends have to be
  smaller than its own (ranges), or the handler calls `withdraw` when a receiver is no longer its
  concern (trees).

The publisher begins with `part = custody.begin(now_us, key, is_relay=...)` and goes on in the same
way. `Forwarder.on_part_done` is called for such parts only, unless they were done before.

A relay that finds out later that it handles the part itself, as when the root of a key failed and
this peer follows, waits for a handled part of its own:

    handled = custody.delegate(now_us, part, key)   # and go on with it as with a part that arrived

A message returns: `Forwarder.on_part_returned(now_us, part, message, receiver)` is to send it
again, hold it, split it, or do nothing if there is no receiver any more. `receiver` is None for a
message that was held. Custody settles the part afterwards. Held messages return twice a second, and
when the forwarder calls `retry`, as after a change of its tables.

Crashes and restarts
--------------------
Tokens begin at the clock, so a report to a former incarnation never matches one of the present one;
a report counts only if it comes from the receiver of the token. Receivers that take longer than
half a second are watched (`Watch`), and asked after two (`Inquiry`): one that has restarted
undetected does not know the token, and one whose report was lost repeats it. When a sender fails,
its messages are still handled; its own sender resends the part to another peer.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, final

from msgspec import Struct
from msgspec.structs import replace

from agents.announcements import PeerLost, PeerRestarted, Watch
from agents.protocol import Announce, Effect, Effects, PeerId, Send, SetTimer
from agents.wire.codec import U32, U32_MAX, message

_REPORT_US = 20_000  # time for which reports to a peer are collected
_LOOK_US = 500_000  # between two checks of open messages
_INQUIRE_US = 2_000_000  # between sending and the first inquiry, and between two inquiries
_TOKEN_TICK_US = 10  # a peer sends fewer messages than one in this time
_TOKENS = 300  # in one message
_SELF = 0  # stands for this peer; no peer has this address


@message(160, role="control")
class Report(Struct, frozen=True):
    """The parts with these tokens are done; those with the others were never received here."""

    done: tuple[U32, ...]
    unknown: tuple[U32, ...]


@message(161, role="control")
class Inquiry(Struct, frozen=True):
    """The sender still waits for these parts."""

    tokens: tuple[U32, ...]


@final
@dataclass(slots=True, eq=False)
class Part:
    """The task of this peer for an event, and the senders that wait for it."""

    key: Hashable
    is_relay: bool
    is_own: bool = False
    is_new: bool = True
    is_loop: bool = False
    is_done: bool = False
    # Tuples, and None for an empty set, because a peer remembers many parts that are done.
    senders: tuple[tuple[PeerId, int], ...] = ()  # waiting senders with their tokens
    taken: tuple[tuple[PeerId, int], ...] = ()  # all senders so far
    open: set[int] | None = None  # tokens of messages that are not done

    def await_report(self, token: int) -> None:
        """Wait for the receiver of a message."""
        if self.open is None:
            self.open = set()
        self.open.add(token)

    def close(self, token: int) -> None:
        """Wait for a message no longer."""
        if self.open is not None:
            self.open.discard(token)
            self.open = self.open or None


@final
@dataclass(slots=True)
class _Sent:
    """A message that its receiver has not reported done; None while it is held."""

    part: Part
    to: PeerId | None
    message: Any
    since_us: int
    asked_us: int


class Forwarder(Protocol):
    """The methods of the protocol that owns a custody."""

    def on_part_returned(
        self, now_us: int, part: Part, message: Any, receiver: PeerId | None
    ) -> Effects:
        """Send a message of a part again, or not; `receiver` failed to handle it."""

    def on_part_done(self, now_us: int, part: Part) -> Effects:
        """A part that this peer began is done."""


class Custody:
    """The parts that one peer has taken, and the messages that it sent for them."""

    messages: ClassVar[tuple[type, ...]] = (Report, Inquiry)

    def __init__(self, forwarder: Forwarder, keep_s: float) -> None:
        self._forwarder = forwarder
        self._keep_us = int(keep_s * 1e6)
        self._next_token: int | None = None
        self._handled: dict[Hashable, Part] = {}
        self._taken: dict[tuple[PeerId, int], Part] = {}
        self._done: deque[tuple[int, Part]] = (
            deque()
        )  # times at which parts were done, the oldest first
        self._relaying: Counter[Hashable] = Counter()
        self._sent: dict[int, _Sent] = {}
        self._due: defaultdict[PeerId, list[int]] = defaultdict(list)  # tokens to report as done
        self._timers: set[str] = set()
        self._watched: frozenset[PeerId] = frozenset()

    @property
    def is_empty(self) -> bool:
        """Whether all sent messages are done."""
        return not self._sent

    def open_messages(self) -> Iterator[Any]:
        """The messages that were sent and are not done, and those that are held."""
        return (sent.message for sent in self._sent.values())

    def find(self, key: Hashable) -> Part | None:
        """The handled part with this key, if this peer has one."""
        return self._handled.get(key)

    def is_relaying(self, key: Hashable) -> bool:
        """Whether a part with this key is being passed on."""
        return self._relaying[key] > 0

    def take(
        self, now_us: int, sender: PeerId, token: int, key: Hashable, *, is_relay: bool
    ) -> Part:
        """The part of an arriving message; it is new unless it was taken before."""
        self._expire(now_us)
        known = self._taken.get((sender, token))
        if known is not None:
            if (sender, token) not in known.senders:
                known.senders += ((sender, token),)
            return known
        part = self._find_or_make(key, is_relay)
        waiting = (sender, token)
        part.senders += (waiting,)
        part.taken += (waiting,)
        self._taken[waiting] = part
        return part

    def begin(self, now_us: int, key: Hashable, *, is_relay: bool) -> Part:
        """A part of this peer's own; it is new unless the peer handled the same before."""
        self._expire(now_us)
        part = self._find_or_make(key, is_relay)
        part.is_own = True
        return part

    def delegate(self, now_us: int, part: Part, key: Hashable) -> Part:
        """A part that this peer handles itself, and for which another of its parts waits."""
        return self.take(now_us, _SELF, self._keep(now_us, part, _SELF, None), key, is_relay=False)

    def send(self, now_us: int, part: Part, to: PeerId, message: Any) -> Effects:
        """Send a message of a part, and keep it until the receiver reports it done."""
        token = self._keep(now_us, part, to, message)
        send = Send(to, replace(message, token=token), reliable=True)
        return [send, *self._wake("look", _LOOK_US)]

    def hold(self, now_us: int, part: Part, message: Any) -> Effects:
        """Keep a message of a part that cannot be sent now; it returns later."""
        self._keep(now_us, part, None, message)
        return self._wake("look", _LOOK_US)

    def settle(self, now_us: int, part: Part) -> Effects:
        """Report a part to the waiting senders if it is done."""
        part.is_new = part.is_loop = False
        if part.open:
            return ()
        effects: list[Effect] = []
        if not part.is_done:
            part.is_done = True
            self._done.append((now_us, part))
            if part.is_relay:
                self._relaying[part.key] -= 1
            if part.is_own:
                effects += self._forwarder.on_part_done(now_us, part)
        for sender, token in part.senders:
            self._due[sender].append(token)
        part.senders = ()
        return [*effects, *(self._wake("report", _REPORT_US) if self._due else ())]

    def withdraw(
        self, now_us: int, to: PeerId, concerns: Callable[[Any], bool] = lambda _: True
    ) -> Effects:
        """Stop waiting for messages to a peer, which is no longer this peer's concern."""
        effects: list[Effect] = []
        for token, sent in list(self._sent.items()):
            if sent.to == to and concerns(sent.message):
                effects += self._close(now_us, token)
        return effects

    def retry(self, now_us: int) -> Effects:
        """Return all messages that are held."""
        return self._return(now_us, [token for token, one in self._sent.items() if one.to is None])

    def is_own_timer(self, name: Hashable) -> bool:
        """Whether a timer is one of custody's."""
        return isinstance(name, tuple) and name[0] == "custody"

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> Effects:
        """Handle the report of a receiver, or the inquiry of a sender."""
        if isinstance(message, Inquiry):
            return self._answer(sender, message.tokens)
        effects: list[Effect] = []
        for token in message.done:
            if self._is_sent(token, sender):
                effects += self._close(now_us, token)
        lost = [token for token in message.unknown if self._is_sent(token, sender)]
        return [*effects, *self._return(now_us, lost)]

    def on_timer(self, now_us: int, name: Hashable) -> Effects:
        """Send reports, or check open messages."""
        assert isinstance(name, tuple)
        self._timers.discard(name[1])
        return self._send_reports(now_us) if name[1] == "report" else self._look(now_us)

    def on_give_up(self, now_us: int, to: PeerId, message: Any) -> Effects:
        """Return a message that was never acknowledged."""
        token = getattr(message, "token", None)
        if token is None or not self._is_sent(token, to):
            return ()
        return self._return(now_us, [token])

    def on_announcement(self, now_us: int, content: Any) -> Effects:
        """Return messages to a peer that is lost or has restarted."""
        if not isinstance(content, PeerLost | PeerRestarted):
            return ()
        peer = content.peer
        if isinstance(content, PeerLost):
            self._watched -= {peer}
            self._due.pop(peer, None)
            for part in {id(sent.part): sent.part for sent in self._sent.values()}.values():
                part.senders = tuple(one for one in part.senders if one[0] != peer)
        return self._return(now_us, [t for t, sent in self._sent.items() if sent.to == peer])

    def _find_or_make(self, key: Hashable, is_relay: bool) -> Part:
        known = None if is_relay else self._handled.get(key)
        if known is not None:
            return known
        part = Part(key, is_relay)
        if is_relay:
            part.is_loop = self._relaying[key] > 0
            self._relaying[key] += 1
        else:
            self._handled[key] = part
        return part

    def _keep(self, now_us: int, part: Part, to: PeerId | None, message: Any) -> int:
        if self._next_token is None:
            self._next_token = now_us // _TOKEN_TICK_US & U32_MAX
        token = self._next_token
        self._next_token = token + 1 & U32_MAX
        part.await_report(token)
        self._sent[token] = _Sent(part, to, message, now_us, now_us)
        return token

    def _is_sent(self, token: int, to: PeerId) -> bool:
        sent = self._sent.get(token)
        return sent is not None and sent.to == to

    def _close(self, now_us: int, token: int) -> Effects:
        part = self._sent.pop(token).part
        part.close(token)
        return self.settle(now_us, part)

    def _return(self, now_us: int, tokens: Iterable[int]) -> Effects:
        """Return messages to the forwarder."""
        effects: list[Effect] = []
        for token in tokens:
            sent = self._sent.pop(token, None)
            if sent is not None:
                # The token stays open meanwhile, so that nothing is reported too early.
                returned = self._forwarder.on_part_returned(
                    now_us, sent.part, sent.message, sent.to
                )
                sent.part.close(token)
                effects += [*returned, *self.settle(now_us, sent.part)]
        return effects

    def _answer(self, sender: PeerId, tokens: tuple[int, ...]) -> Effects:
        parts = {token: self._taken.get((sender, token)) for token in tokens[:_TOKENS]}
        done = tuple(token for token, part in parts.items() if part is not None and part.is_done)
        unknown = tuple(token for token, part in parts.items() if part is None)
        return [Send(sender, Report(done, unknown), reliable=True)] if done or unknown else ()

    def _send_reports(self, now_us: int) -> Effects:
        effects: list[Effect] = []
        due, self._due = self._due, defaultdict(list)
        for token in due.pop(_SELF, ()):
            effects += self._close(now_us, token) if token in self._sent else ()
        for peer, tokens in due.items():
            for start in range(0, len(tokens), _TOKENS):
                report = Report(tuple(tokens[start : start + _TOKENS]), ())
                effects.append(Send(peer, report, reliable=True))
        return effects

    def _look(self, now_us: int) -> Effects:
        """Watch receivers that take long, ask those that take longer, and retry held messages."""
        slow = {s.to for s in self._sent.values() if now_us - s.since_us >= _LOOK_US}
        watched = frozenset(peer for peer in slow if peer)
        effects: list[Effect] = []
        if watched != self._watched:
            self._watched = watched
            effects.append(Announce(Watch("custody", watched)))
        effects += self._inquire(now_us)
        effects += self.retry(now_us)
        return [*effects, *(self._wake("look", _LOOK_US) if self._sent or watched else ())]

    def _inquire(self, now_us: int) -> Effects:
        asked: defaultdict[PeerId, list[int]] = defaultdict(list)
        for token, sent in self._sent.items():
            if sent.to and now_us - sent.asked_us >= _INQUIRE_US:  # neither held nor handled here
                sent.asked_us = now_us
                asked[sent.to].append(token)
        return [
            Send(peer, Inquiry(tuple(tokens[start : start + _TOKENS])))
            for peer, tokens in asked.items()
            for start in range(0, len(tokens), _TOKENS)
        ]

    def _wake(self, what: str, after_us: int) -> Effects:
        """Set a timer, unless it runs."""
        if what in self._timers:
            return ()
        self._timers.add(what)
        return [SetTimer(("custody", what), after_us)]

    def _expire(self, now_us: int) -> None:
        """Remove parts that were done long ago."""
        oldest_us = now_us - self._keep_us
        while self._done and self._done[0][0] < oldest_us:
            part = self._done.popleft()[1]
            for taken in part.taken:
                self._taken.pop(taken, None)
            if self._handled.get(part.key) is part:
                del self._handled[part.key]
            if part.is_relay and not self._relaying[part.key]:
                del self._relaying[part.key]
