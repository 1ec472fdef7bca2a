"""The simulator of agents: an event queue instead of sockets and a clock.

The simulator drives the same `Agent` as the socket loop, on a network with the delays, losses,
rates and queues of an underlay. Time is whole microseconds. All randomness comes from one seed, and
nothing depends on the order of a set, so a run is repeatable byte for byte.
"""

import gc
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Any

import numpy as np

from agents.agent import Actions, Agent
from agents.errors import AgentFailed
from agents.probing.probe import ProbeSettings
from agents.probing.route import Route
from agents.protocol import CancelTimer, Compute, ProbeRoute, Record, SetTimer
from agents.runtime.event_queue import BUCKET_BITS, Call, Event, EventQueue
from agents.runtime.packet import Packet
from agents.runtime.packet_notes import PacketNotes
from agents.runtime.simulated_network import SimulatedNetwork
from agents.runtime.simulated_prober import NEVER_US, SimulatedProber
from agents.wire.codec import Datagram
from topologies.errors import TopologyError
from topologies.routes import Routes
from topologies.underlay import Underlay

RecordSink = Callable[[int, str, str, Mapping[str, Any]], None]
MakeAgent = Callable[[], Agent]

# Messages and events are freed by reference counting; only killed agents need the garbage
# collector. With Python's default threshold it would take a fifth of the time.
_OBJECTS_BEFORE_COLLECTION = 50_000
_PYTHONS_THRESHOLDS = gc.get_threshold()


class AgentSlot:
    """The place of an agent on a host; it is empty after the agent was killed."""

    __slots__ = ("address", "agent", "down_share", "down_us", "host", "make", "node", "prober",
                 "router", "timers", "up_share", "up_us")  # fmt: skip

    def __init__(self, host: str, node: int, address: int, router: int) -> None:
        self.host = host
        self.node = node
        self.address = address
        self.router = router
        # Delays of the last mile; NOT_PLAIN if it has a rate or a fault.
        self.up_us = self.down_us = 0
        self.up_share = self.down_share = 1.0  # of packets that are not lost on the last mile
        self.make: MakeAgent | None = None
        self.agent: Agent | None = None
        self.timers: dict[Hashable, Event] = {}
        self.prober: SimulatedProber | None = None


class Simulator:
    """Agents on the hosts of an underlay, and the time of the run."""

    def __init__(
        self,
        underlay: Underlay,
        *,
        seed: int = 0,
        record: RecordSink = lambda *_: None,
        notes: PacketNotes | None = None,
        routes: Routes | None = None,
        probing: ProbeSettings | None = None,
    ) -> None:
        """Prepare; `notes` receive every packet on every link."""
        self.now_us = 0
        self.messages = 0  # datagrams that arrived at their host
        self._record = record
        self._queue = EventQueue()
        self._later = self._queue.later  # attributes that are used for every event
        self._notes = notes
        self._chance = Random(f"{seed}/network")
        self.network = SimulatedNetwork(underlay, self._queue, self._chance, notes, routes)
        self.network.deliver = self._deliver
        self.network.on_change = self._follow_network
        self._probing = probing or ProbeSettings()
        self._routers = underlay.router_index
        self._slots = self._make_slots(underlay)
        self._slot_at = {slot.address: slot for slot in self._slots.values()}
        self._follow_network()

    def __enter__(self) -> "Simulator":
        gc.freeze()
        gc.set_threshold(_OBJECTS_BEFORE_COLLECTION)
        return self

    def __exit__(self, *_: object) -> None:
        gc.set_threshold(*_PYTHONS_THRESHOLDS)
        gc.unfreeze()
        self.close()

    def add_agent(self, host: str, make: MakeAgent) -> None:
        """Give a host the function that creates its agent at each start."""
        self._slot_of(host).make = make

    def start_agent(self, at_us: int, host: str) -> None:
        """Start or restart a host's agent at a time."""
        self.call_at(at_us, partial(self._start, self._slot_of(host)))

    def kill_agent(self, at_us: int, host: str) -> None:
        """Kill a host's agent at a time; it sends nothing."""
        self.call_at(at_us, partial(self._kill, self._slot_of(host)))

    def stop_agent(self, at_us: int, host: str) -> None:
        """Stop a host's agent at a time; it can send last messages."""
        self.call_at(at_us, partial(self._stop, self._slot_of(host)))

    def set_link(self, at_us: int, a: str, b: str, up: bool) -> None:
        """Cut or restore a link at a time."""
        self.network.find_link(a, b)
        self.call_at(at_us, lambda now_us: self.network.set_link(now_us, a, b, up))

    def set_router(self, at_us: int, router: str, up: bool) -> None:
        """Switch a router off or on at a time."""
        if router not in self._routers:
            raise TopologyError(f"router {router}: expected a router of this network")
        self.call_at(at_us, lambda now_us: self.network.set_router(now_us, router, up))

    def set_delay(self, at_us: int, a: str, b: str, delay_us: int) -> None:
        """Change the delay of a link in both directions at a time."""
        self.network.find_link(a, b)
        self.call_at(at_us, lambda now_us: self.network.set_delay(now_us, a, b, delay_us))

    def call_at(self, at_us: int, call: Call) -> None:
        """Call a function with the time, at that time."""
        if at_us < self.now_us:
            raise ValueError(f"expected a time to come, at least {self.now_us}, found {at_us}")
        self._queue.call_at(at_us, call)

    def run(self, until_us: int) -> None:
        """Process all events before a time."""
        queue, near = self._queue, self._queue.near
        while near or queue.approach(until_us):
            event = near.pop()
            now_us, slot, content = event
            if now_us >= until_us:
                near.append(event)
                break
            self.now_us = now_us
            if slot is None:
                content(now_us)
                continue
            if self._notes is not None and type(content) is Datagram:
                self._note_arrival(self._notes, event)
            # Inlined, with type comparisons: calls and `match` would take a seventh of the time.
            try:
                if type(content) is Datagram:
                    self.messages += 1
                    if slot.agent is None:
                        self.counts["unheard"] += 1
                        continue
                    actions = slot.agent.on_datagram(now_us, content)
                elif slot.timers.get(content) is event:  # neither replaced nor cancelled
                    del slot.timers[content]
                    actions = slot.agent.on_timer(now_us, content)
                else:
                    continue
            except Exception as error:
                raise AgentFailed.blame(slot.host, now_us, error) from error
            if actions:
                self._carry_out(now_us, slot, actions)
        self.now_us = max(self.now_us, until_us)

    def close(self) -> None:
        """Complete the notes on packets."""
        if self._notes is not None:
            self.network.settle(self.now_us)
            self._notes.close()
            self._notes = None

    @property
    def counts(self) -> Counter[str]:
        """Packets that did not arrive, by reason, and datagrams that reached a host without an
        agent.
        """
        return self.network.counts

    def _make_slots(self, underlay: Underlay) -> dict[str, AgentSlot]:
        numbering = self.network.numbering
        slots = {}
        for host in underlay.hosts:
            node = numbering.node_of[host.name]
            router = int(numbering.access_router[node])
            slots[host.name] = AgentSlot(host.name, node, numbering.address_of[node], router)
        return slots

    def _slot_of(self, host: str) -> AgentSlot:
        slot = self._slots.get(host)
        if slot is None:
            raise TopologyError(f"host {host}: expected a host of this network")
        return slot

    def _follow_network(self) -> None:
        """Update the delays after a change of the network."""
        forwarding = self.network.forwarding
        self._is_lossy = forwarding.is_lossy
        self._delays_us = forwarding.found_delays_us
        slots = self._slots.values()
        hosts = np.array([slot.node for slot in slots], dtype=np.int64)
        last_miles = (*forwarding.last_miles_us(hosts), *forwarding.last_mile_shares(hosts))
        for slot, last_mile in zip(slots, zip(*last_miles, strict=True), strict=True):
            slot.up_us, slot.down_us, slot.up_share, slot.down_share = last_mile

    def _start(self, slot: AgentSlot, now_us: int) -> None:
        self._kill(slot, now_us)
        with _blaming(slot, now_us):
            if slot.make is None:
                raise ValueError("expected an agent to start, found none")
            slot.agent = slot.make()
            actions = slot.agent.start(now_us)
        self._carry_out(now_us, slot, actions)

    def _stop(self, slot: AgentSlot, now_us: int) -> None:
        if slot.agent is not None:
            with _blaming(slot, now_us):
                actions = slot.agent.stop(now_us)
            self._carry_out(now_us, slot, actions)
        self._kill(slot, now_us)

    def _kill(self, slot: AgentSlot, now_us: int) -> None:
        del now_us
        slot.agent = slot.prober = None
        slot.timers.clear()

    def _note_arrival(self, notes: PacketNotes, event: Event) -> None:
        notes.arrivals.append(event)
        if notes.is_full:
            notes.write(self.network.forwarding)

    def _carry_out(self, now_us: int, slot: AgentSlot, actions: Actions) -> None:
        for action in actions:
            if type(action) is Datagram:
                target = self._slot_at.get(action.receiver)
                if target is not None:
                    delays_us = self._delays_us[target.router]
                    if delays_us is None:
                        delays_us = self.network.forwarding.plain_delays_us(target.router)
                    due_us = now_us + slot.up_us + delays_us[slot.router] + target.down_us
                    if due_us >= now_us:  # one event for the whole path
                        if self._is_lossy and self._loses(now_us, slot, target, action):
                            continue
                        event = (due_us, target, action)
                        bucket = self._later.get(due_us >> BUCKET_BITS)
                        if bucket is not None:  # what `add` does in most cases
                            bucket.append(event)
                        else:
                            self._queue.add(event)
                        continue
                with _blaming(slot, now_us):
                    packet = Packet(slot.address, action.receiver, action)
                self.network.send(now_us, packet)
            elif type(action) is SetTimer:
                self._set_timer(now_us, slot, action)
            elif type(action) is CancelTimer:
                slot.timers.pop(action.name, None)
            elif type(action) is Record:
                self._record(now_us, slot.host, action.what, action.values)
            elif type(action) is ProbeRoute:
                self._probe(now_us, slot, action.target)
            elif type(action) is Compute:
                self._compute(now_us, slot, action)
            else:
                raise AgentFailed.blame(
                    slot.host, now_us, TypeError(f"expected an effect, found {action!r}")
                )

    def _loses(self, now_us: int, slot: AgentSlot, target: AgentSlot, datagram: Datagram) -> bool:
        """Whether a datagram is lost on a path of plain channels."""
        between = self.network.forwarding.arrived_shares(target.router)[slot.router]
        draw = self._chance.random()
        if draw < slot.up_share * between * target.down_share:
            return False
        packet = Packet(slot.address, target.address, datagram)
        return self.network.loses(now_us, packet, draw)

    def _set_timer(self, now_us: int, slot: AgentSlot, timer: SetTimer) -> None:
        try:
            if timer.delay_us < 0:
                wrong: Exception = ValueError(f"a timer in the past: {timer}")
                raise AgentFailed.blame(slot.host, now_us, wrong)
            event = slot.timers[timer.name] = (now_us + timer.delay_us, slot, timer.name)
            self._queue.add(event)
        except TypeError as error:
            wrong = TypeError(f"expected a name and whole microseconds, found {timer}")
            raise AgentFailed.blame(slot.host, now_us, wrong) from error

    def _compute(self, now_us: int, slot: AgentSlot, action: Compute) -> None:
        """Compute now, and pass on the result after the stated time."""
        agent = slot.agent
        with _blaming(slot, now_us):
            result = action.function(*action.arguments)

        def hand_over(later_us: int) -> None:
            if slot.agent is not None and slot.agent is agent:  # neither killed nor restarted
                with _blaming(slot, later_us):
                    actions = slot.agent.on_computed(later_us, action.name, result)
                self._carry_out(later_us, slot, actions)

        self.call_at(now_us + action.duration_us, hand_over)

    def _deliver(self, now_us: int, packet: Packet) -> None:
        """Deliver a packet that crossed a channel with a rate or fault."""
        slot, content = self._slot_at[packet.target], packet.content
        if isinstance(content, Datagram):
            self.messages += 1
            if slot.agent is None:
                self.counts["unheard"] += 1
                return
            with _blaming(slot, now_us):
                actions = slot.agent.on_datagram(now_us, content)
            self._carry_out(now_us, slot, actions)
        elif slot.prober is not None:
            self._report_routes(now_us, slot, slot.prober.on_answer(now_us, packet))

    def _probe(self, now_us: int, slot: AgentSlot, target: int) -> None:
        if slot.prober is None:
            slot.prober = SimulatedProber(slot.address, self.network.send, self._probing)
        slot.prober.probe(now_us, target)
        self._await_answers(slot)

    def _report_routes(self, now_us: int, slot: AgentSlot, routes: list[Route]) -> None:
        for route in routes:
            if slot.agent is not None:
                with _blaming(slot, now_us):
                    actions = slot.agent.on_route(now_us, route)
                self._carry_out(now_us, slot, actions)
        self._await_answers(slot)

    def _await_answers(self, slot: AgentSlot) -> None:
        """Schedule a call when the next probe of a host is overdue."""
        prober = slot.prober
        deadline_us = prober.next_deadline_us if prober is not None else None
        if prober is not None and deadline_us is not None and deadline_us < prober.wakes_at_us:
            prober.wakes_at_us = max(deadline_us, self.now_us)  # while it waited for the allowance
            self.call_at(prober.wakes_at_us, partial(self._time_probes, slot, prober))

    def _time_probes(self, slot: AgentSlot, prober: SimulatedProber, now_us: int) -> None:
        if slot.prober is prober and prober.wakes_at_us == now_us:
            prober.wakes_at_us = NEVER_US
            self._report_routes(now_us, slot, prober.on_time(now_us))


@contextmanager
def _blaming(slot: AgentSlot, now_us: int) -> Iterator[None]:
    """Raise an agent's exception with the name of the agent."""
    try:
        yield
    except Exception as error:
        raise AgentFailed.blame(slot.host, now_us, error) from error
