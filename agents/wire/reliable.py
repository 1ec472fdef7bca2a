"""Reliable delivery over a hop: acknowledgement, repetition with back-off, no duplicates."""

from dataclasses import dataclass

from agents.wire.codec import U32_MAX, Datagram

FIRST_TIMEOUT_US = 1_000_000
_SHORTEST_TIMEOUT_US = 50_000
_LONGEST_TIMEOUT_US = 8_000_000
_TRIES = 9  # the last one after some 13 s at the shortest time-out
_WINDOW = 4_096
_WINDOW_MASK = (1 << _WINDOW) - 1
_IDS = U32_MAX + 1
_OLD = 1 << 28  # ids at most this far behind the newest are old; all others are ahead of it


@dataclass(slots=True)
class Unacknowledged:
    """A message that waits for an acknowledgement: its datagram, and the number of attempts."""

    datagram: Datagram
    timeout_us: int
    tries: int = 1


class Outbox:
    """The messages of one agent that wait for an acknowledgement."""

    def __init__(self) -> None:
        self._waiting: dict[int, Unacknowledged] = {}
        self._round_trip_us: dict[int, float] = {}

    def add(self, datagram: Datagram) -> int:
        """Keep a message that was just sent; returns how long to wait before repeating it."""
        known_us = self._round_trip_us.get(datagram.receiver)
        timeout_us = FIRST_TIMEOUT_US if known_us is None else int(4 * known_us)
        timeout_us = max(_SHORTEST_TIMEOUT_US, timeout_us)
        self._waiting[datagram.message_id] = Unacknowledged(datagram, timeout_us)
        return timeout_us

    def acknowledge(self, now_us: int, sender: int, message_id: int) -> bool:
        """Remove an acknowledged message; False if it was not waited for."""
        waiting = self._waiting.get(message_id)
        if waiting is None or waiting.datagram.receiver != sender:
            return False
        del self._waiting[message_id]
        if waiting.tries == 1:  # for a repeated message it is unknown which copy was acknowledged
            sample_us = now_us - waiting.datagram.sent_us
            before_us = self._round_trip_us.get(sender, sample_us)
            self._round_trip_us[sender] = before_us + (sample_us - before_us) / 8
        return True

    def expire(self, message_id: int) -> Unacknowledged | None:
        """The message to send again, with its next time-out; None once it is acknowledged."""
        waiting = self._waiting.get(message_id)
        if waiting is not None:
            waiting.tries += 1
            waiting.timeout_us = min(2 * waiting.timeout_us, _LONGEST_TIMEOUT_US)
        return waiting

    def give_up(self, message_id: int) -> None:
        """Stop waiting for a message."""
        del self._waiting[message_id]


def is_hopeless(waiting: Unacknowledged) -> bool:
    """Whether a message was repeated often enough."""
    return waiting.tries > _TRIES


class ReplayWindow:
    """Which of a sender's last message ids have been seen.

    Message ids count up from the time an agent started, so those of a restarted agent are new.
    After the last id they begin again at 0, so one far ahead does not make all that follow old.
    """

    __slots__ = ("_newest", "_seen")

    def __init__(self) -> None:
        self._newest = 0
        self._seen = 0  # a bit for each of the last ids, the lowest for the newest

    def is_new(self, message_id: int) -> bool | None:
        """Record a message id; False if it was recorded before, None if it is too old to know."""
        if not self._seen:  # the first id counts as ahead
            self._newest = message_id - 1
        ahead = (message_id - self._newest + _OLD) % _IDS - _OLD
        if ahead > 0:
            self._seen = (self._seen << ahead | 1) & _WINDOW_MASK if ahead < _WINDOW else 1
            self._newest = message_id
            return True
        if ahead <= -_WINDOW:
            return None
        if self._seen >> -ahead & 1:
            return False
        self._seen |= 1 << -ahead
        return True
