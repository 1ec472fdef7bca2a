"""An agent: a protocol with addressing, reliable messages and delay measurement, without I/O.

Both runtimes drive this class, so these functions are the same on sockets and in the simulator.
Only the runtime on sockets encodes datagrams, and only there a datagram may be malformed.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, final

from msgspec import Struct

from agents.probing.route import Route
from agents.protocol import (
    Announce,
    CancelTimer,
    Compute,
    Delay,
    Deliver,
    Effects,
    MeasureDelay,
    PeerId,
    ProbeRoute,
    Protocol,
    Record,
    Send,
    SetTimer,
)
from agents.wire.codec import (
    U32,
    U32_MAX,
    WANTS_ACK,
    Datagram,
    DecodeError,
    decode,
    message,
)
from agents.wire.reliable import Outbox, ReplayWindow, is_hopeless

_SAMPLE_TIMEOUT_US = 2_000_000
_MESSAGE_ID_TICK_US = 10


@message(1, role="upkeep")
class Acknowledgement(Struct, frozen=True):
    """Confirms that the message with this id has arrived."""

    message_id: U32


@message(2, role="upkeep")
class Ping(Struct, frozen=True):
    """A request for a `Pong`, to measure the round-trip time."""

    token: U32


@message(3, role="upkeep")
class Pong(Struct, frozen=True):
    """The answer to a ping."""

    token: U32


# A datagram among the actions is sent to the network.
Action = Datagram | SetTimer | CancelTimer | ProbeRoute | Record | Compute
Actions = list[Action]


# Private types: no protocol can use the same name for a timer.
@final
class _Resend(Struct, frozen=True):
    """A reliable message was not acknowledged in time."""

    message_id: int


@final
class _Sample(Struct, frozen=True):
    """A peer has not answered a ping in time."""

    target: PeerId


@dataclass(slots=True)
class _Measurement:
    """A series of pings to a peer."""

    wanted: int
    token: int
    sent_us: int
    samples_us: list[int]


class Agent:
    """A protocol at one address, in one run."""

    __slots__ = ("_measurements", "_next_message_id", "_outbox", "_protocol", "_received",
                 "_run_id", "_sent_by_kind", "_windows", "address", "counts")  # fmt: skip

    def __init__(self, address: PeerId, run_id: int, protocol: Protocol) -> None:
        self.address = address
        self.counts: defaultdict[str, int] = defaultdict(int)
        self._received = 0
        # It has all message types of this agent, so that one lookup finds foreign ones.
        self._sent_by_kind = dict.fromkeys((*_OWN_HANDLERS, *protocol.messages), 0)
        self._run_id = run_id
        self._protocol = protocol
        self._next_message_id = 0
        self._outbox = Outbox()
        self._windows: defaultdict[PeerId, ReplayWindow] = defaultdict(ReplayWindow)
        self._measurements: dict[PeerId, _Measurement] = {}

    @property
    def figures(self) -> dict[str, int]:
        """All counts so far, and the messages sent, also by kind as `sent_<kind>`."""
        figures = {**self.counts, "received": self._received}
        figures["sent"] = sum(self._sent_by_kind.values())
        for kind, sent in self._sent_by_kind.items():
            if sent:
                name = f"sent_{kind.__name__}"
                figures[name] = figures.get(name, 0) + sent
        return figures

    def start(self, now_us: int) -> Actions:
        """Start the protocol."""
        # An agent that restarts must not reuse its earlier message ids for 11 hours.
        self._next_message_id = now_us // _MESSAGE_ID_TICK_US & U32_MAX
        return self._carry_out(now_us, self._protocol.on_start(now_us))

    def stop(self, now_us: int) -> Actions:
        """Stop the protocol, which may send last messages."""
        return self._carry_out(now_us, self._protocol.on_stop(now_us))

    def on_bytes(self, now_us: int, source: PeerId, data: bytes) -> Actions:
        """Handle bytes from a real network; malformed ones are counted and dropped."""
        try:
            datagram = decode(data)
        except DecodeError:
            self.counts["malformed"] += 1
            return []
        if wrong := self._find_wrong(datagram, source):
            self.counts[wrong] += 1
            return []
        return self.on_datagram(now_us, datagram)

    def on_datagram(self, now_us: int, datagram: Datagram) -> Actions:
        """Handle a datagram of this run whose addresses were checked."""
        content = datagram.content
        if type(content) not in self._sent_by_kind:
            # It is not acknowledged, because no layer handles it.
            self.counts["unexpected"] += 1
            return []
        self._received += 1
        sender = datagram.sender
        acknowledgement: Effects = ()
        if datagram.flags & WANTS_ACK:
            is_new = self._windows[sender].is_new(datagram.message_id)
            if is_new is None:
                # It may be new or repeated. Without an acknowledgement the sender repeats it.
                self.counts["too_old"] += 1
                return []
            acknowledgement = [Send(sender, Acknowledgement(datagram.message_id))]
            if not is_new:
                self.counts["repeated"] += 1
                return self._carry_out(now_us, acknowledgement)
        handle_own = _OWN_HANDLERS.get(type(content))
        if handle_own is None:
            effects = self._protocol.on_message(now_us, sender, content)
        else:
            effects = handle_own(self, now_us, sender, content)
        if acknowledgement:
            effects = [*acknowledgement, *effects]
        return self._carry_out(now_us, effects) if effects else []

    def on_timer(self, now_us: int, name: Hashable) -> Actions:
        """Handle an expired timer of the agent or of its protocol."""
        if type(name) is _Resend:
            return self._resend(now_us, name.message_id)
        if type(name) is _Sample:
            return self._carry_out(now_us, self._next_sample(now_us, name.target))
        return self._carry_out(now_us, self._protocol.on_timer(now_us, name))

    def on_route(self, now_us: int, route: Route) -> Actions:
        """Pass a probed route to the protocol."""
        return self._carry_out(now_us, self._protocol.on_probe_result(now_us, route))

    def on_computed(self, now_us: int, name: Hashable, result: Any) -> Actions:
        """Pass the result of a computation to the protocol."""
        return self._carry_out(now_us, self._protocol.on_computed(now_us, name, result))

    def _find_wrong(self, datagram: Datagram, source: PeerId) -> str:
        """The name of the count for a datagram that is rejected, or an empty string."""
        if datagram.run_id != self._run_id:
            return "of_another_run"
        if datagram.receiver != self.address:
            return "misaddressed"
        if datagram.sender != source or source == self.address:
            return "impostor"
        return ""

    def _carry_out(self, now_us: int, effects: Effects) -> Actions:
        """Convert the effects of a protocol to actions of a runtime."""
        actions: Actions = []
        for effect in effects:
            # Inlined and with type comparisons instead of `match`: it runs for every message.
            if type(effect) is Send:
                to, content = effect.to, effect.message
                if to == self.address:
                    raise _wrong(content, "a protocol sent a message to itself")
                try:
                    self._sent_by_kind[type(content)] += 1
                except KeyError:
                    raise _wrong(content, "expected one of its protocol's `messages`") from None
                message_id = self._next_message_id
                self._next_message_id = message_id + 1 & U32_MAX
                flags = WANTS_ACK if effect.reliable else 0
                datagram = Datagram(
                    content, flags, self._run_id, self.address, to, message_id, now_us
                )
                actions.append(datagram)
                if flags:
                    actions.append(SetTimer(_Resend(message_id), self._outbox.add(datagram)))
            elif type(effect) is MeasureDelay:
                measure = self._measure(now_us, effect.target, effect.samples)
                actions += self._carry_out(now_us, measure)
            elif not isinstance(effect, Announce | Deliver):  # no other layer
                actions.append(effect)
        return actions

    def _resend(self, now_us: int, message_id: int) -> Actions:
        waiting = self._outbox.expire(message_id)
        if waiting is None:
            return []
        if not is_hopeless(waiting):
            self.counts["resent"] += 1
            resend = SetTimer(_Resend(message_id), waiting.timeout_us)
            return [waiting.datagram, resend]
        self._outbox.give_up(message_id)
        self.counts["given_up"] += 1
        lost = waiting.datagram
        effects = self._protocol.on_give_up(now_us, lost.receiver, lost.content)
        return self._carry_out(now_us, effects)

    def _on_acknowledgement(self, now_us: int, sender: PeerId, ack: Acknowledgement) -> Effects:
        if self._outbox.acknowledge(now_us, sender, ack.message_id):
            return [CancelTimer(_Resend(ack.message_id))]
        return ()

    def _on_ping(self, now_us: int, sender: PeerId, ping: Ping) -> Effects:
        return [Send(sender, Pong(ping.token))]

    def _on_pong(self, now_us: int, sender: PeerId, pong: Pong) -> Effects:
        measurement = self._measurements.get(sender)
        if measurement is None or measurement.token != pong.token:
            return ()
        measurement.samples_us.append(now_us - measurement.sent_us)
        return self._next_sample(now_us, sender)

    def _measure(self, now_us: int, target: PeerId, samples: int) -> Effects:
        """Start a measurement, or wait for the result of one to the same peer."""
        if target in self._measurements:
            return ()
        self._measurements[target] = _Measurement(samples, 0, now_us, [])
        return self._ping(now_us, target)

    def _ping(self, now_us: int, target: PeerId) -> Effects:
        measurement = self._measurements[target]
        measurement.token, measurement.sent_us = self._next_message_id, now_us
        ping = Send(target, Ping(measurement.token))
        return [ping, SetTimer(_Sample(target), _SAMPLE_TIMEOUT_US)]

    def _next_sample(self, now_us: int, target: PeerId) -> Effects:
        """Send the next ping, or return the delay after the last one."""
        measurement = self._measurements[target]
        measurement.wanted -= 1
        if measurement.wanted > 0:
            return self._ping(now_us, target)
        del self._measurements[target]
        delay = Delay(target, tuple(measurement.samples_us))
        return [CancelTimer(_Sample(target)), *self._protocol.on_delay(now_us, delay)]


_OWN_HANDLERS: dict[type, Callable[[Agent, int, PeerId, Any], Effects]] = {
    Acknowledgement: Agent._on_acknowledgement,
    Ping: Agent._on_ping,
    Pong: Agent._on_pong,
}
OWN_MESSAGES = tuple(_OWN_HANDLERS)  # of every agent, with any protocols


def _wrong(message: Any, what: str) -> ValueError:
    return ValueError(f"{type(message).__name__}: {what}")
