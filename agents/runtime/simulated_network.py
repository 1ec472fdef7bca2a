"""The network of a simulation, which carries packets along the true routes, link by link.

Packets cross channels without a rate or a fault in one step. One random number per packet decides
whether it is lost on them, and where. A channel with a rate or a fault has an event of its own.
When a link, router or delay changes, packets in transit keep the channels that they have crossed
and continue from the next router along the new routes. Routers and hosts answer probes as the
Linux kernel does.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from agents.probing.host_probing import Mark
from agents.probing.probe import Answer
from agents.runtime.event_queue import TIME, Event, EventQueue
from agents.runtime.forwarding import Forwarding, LinkPath
from agents.runtime.numbering import NO_CHANNEL, Numbering
from agents.runtime.packet import Complaint, Packet
from agents.runtime.packet_notes import PacketNotes
from agents.wire.codec import Datagram
from topologies.channel_model import ChannelModel
from topologies.errors import TopologyError
from topologies.routes import Routes
from topologies.underlay import Channel, Link, Underlay


@dataclass(slots=True)
class Crossing:
    """Consecutive channels without rate or fault that a packet crosses, with the times."""

    packet: Packet
    way: LinkPath
    count: int  # of the channels of the path
    started_us: int
    on_arrival: Callable[[int, "Crossing"], None]

    def __call__(self, now_us: int) -> None:
        """The packet has crossed the last one."""
        self.on_arrival(now_us, self)

    @property
    def due_us(self) -> int:
        """When the packet leaves the last channel."""
        return self.started_us + self.way.after_us[self.count]

    def cut(self, now_us: int) -> None:
        """Keep the channels entered before a time, at least the first."""
        after_us = self.way.after_us[: self.count]
        self.count = max(1, bisect_left(after_us, now_us - self.started_us))


class SimulatedNetwork:
    """Carries packets between the hosts of an underlay, whose links and routers may change."""

    def __init__(
        self,
        underlay: Underlay,
        queue: EventQueue,
        chance: Random,
        notes: PacketNotes | None,
        routes: Routes | None = None,
    ) -> None:
        self.numbering = Numbering(underlay)
        self.forwarding = Forwarding(underlay, self.numbering, routes=routes)
        self.counts: Counter[str] = Counter()
        self.deliver: Callable[[int, Packet], None] = lambda *_: None
        self.on_change: Callable[[], None] = lambda: None
        self._underlay = underlay
        self._down: frozenset[str] = frozenset()
        self._queue = queue
        self._chance = chance
        self._notes = notes
        self._channels: dict[int, ChannelModel] = {}

    def send(self, now_us: int, packet: Packet) -> None:
        """Send a packet from the node that has its source address."""
        node = self.numbering.node_at[packet.source]
        if packet.source == packet.target:
            self._queue.call_at(now_us, lambda at_us: self._take(at_us, node, packet))
        else:
            self._launch(now_us, node, packet)

    def set_link(self, now_us: int, a: str, b: str, up: bool) -> None:
        """Cut or restore the link between two nodes, and update the routes."""
        self._set_up(now_us, self.find_link(a, b).name, up)

    def set_router(self, now_us: int, router: str, up: bool) -> None:
        """Switch a router with all its links off or on, and update the routes."""
        self._set_up(now_us, router, up)

    def set_delay(self, now_us: int, a: str, b: str, delay_us: int) -> None:
        """Change the delay of a link in both directions, and update the routes."""
        old = self.find_link(a, b)
        new = replace(
            old, ab=replace(old.ab, delay_us=delay_us), ba=replace(old.ba, delay_us=delay_us)
        )
        links = tuple(new if link is old else link for link in self._underlay.links)
        number = 2 * self._underlay.links.index(old)
        for channel, settings in ((number, new.ab), (number + 1, new.ba)):
            if channel in self._channels:
                self._channels[channel].configure(settings)
        self._change(now_us, replace(self._underlay, links=links), self._down)

    def find_link(self, a: str, b: str) -> Link:
        """The link between two nodes."""
        for link in self._underlay.links:
            if {link.a, link.b} == {a, b}:
                return link
        raise TopologyError(f"link {a}-{b}: expected a link of this network, found none")

    def loses(self, now_us: int, packet: Packet, draw: float) -> bool:
        """Whether a packet from a host is lost on its way, by a random number; it is if so."""
        node = self.numbering.node_at[packet.source]
        return self._loses(self._walk(now_us, node, packet), draw)

    def settle(self, now_us: int) -> None:
        """Record the progress of the packets in transit, at the end of a run."""
        for event in sorted(self._queue, key=TIME):
            crossing = self._crossing_of(event)
            if crossing is not None:
                crossing.cut(now_us)
                self._note(crossing)
        self._write_notes()

    def _set_up(self, now_us: int, name: str, up: bool) -> None:
        down = self._down - {name} if up else self._down | {name}
        self._change(now_us, self._underlay, down)

    def _change(self, now_us: int, underlay: Underlay, down: frozenset[str]) -> None:
        self._write_notes()  # arrived packets took the earlier routes
        self._cut_crossings(now_us)
        self._underlay, self._down = underlay, down
        self.forwarding = Forwarding(underlay, self.numbering, down)
        self.on_change()

    def _write_notes(self) -> None:
        if self._notes is not None:
            self._notes.write(self.forwarding)

    def _cut_crossings(self, now_us: int) -> None:
        """Stop every packet in transit after the channel that it is on."""
        self._queue.replace(self._cut_crossing(now_us, event) for event in self._queue)

    def _cut_crossing(self, now_us: int, event: Event) -> Event:
        crossing = self._crossing_of(event)
        if crossing is None:
            return event
        crossing.cut(now_us)
        return crossing.due_us, None, crossing

    def _crossing_of(self, event: Event) -> Crossing | None:
        """The packet of an event, if it is one in transit."""
        time_us, slot, content = event
        if isinstance(content, Crossing):
            return content
        if not isinstance(content, Datagram):
            return None
        packet = Packet(content.sender, slot.address, content)
        node = self.numbering.node_at[content.sender]
        crossing = self._walk(0, node, packet)
        crossing.started_us = time_us - crossing.due_us
        return crossing

    def _launch(self, now_us: int, node: int, packet: Packet) -> None:
        """Send a packet from a node, as far as it gets over plain channels."""
        crossing = self._walk(now_us, node, packet)
        if crossing.count:
            if not self.forwarding.is_lossy or not self._loses(crossing, self._chance.random()):
                self._queue.call_at(crossing.due_us, crossing)
            return
        channel = self.forwarding.next_channel(node, packet.target)
        if channel == NO_CHANNEL:
            self._drop("no_route")
        elif self.forwarding.is_dead[channel]:
            self._drop("dead_link")
        else:
            self._enter(now_us, channel, packet)

    def _walk(self, now_us: int, node: int, packet: Packet) -> Crossing:
        """The plain channels that a packet crosses next."""
        way = self.forwarding.plain_way(node, packet.target)
        count = min(packet.ttl, len(way.channels))
        return Crossing(packet, way, count, now_us, self._arrive)

    def _loses(self, crossing: Crossing, draw: float) -> bool:
        """Let a packet vanish on the channel that fewer packets leave than a random number."""
        for place, share in enumerate(crossing.way.shares[: crossing.count], start=1):
            if draw >= share:
                crossing.count, crossing.on_arrival = place, self._vanish
                self._queue.call_at(crossing.due_us, crossing)
                return True
        return False

    def _vanish(self, _now_us: int, crossing: Crossing) -> None:
        self._drop("lost")
        self._note(crossing, is_dropped=True)

    def _enter(self, now_us: int, number: int, packet: Packet) -> None:
        """Put a packet on a channel that has a rate."""
        channel = self._channels.get(number)
        if channel is None:
            channel = self._channels[number] = ChannelModel(self._settings_of(number))
        due_ns = channel.due_ns(now_us * 1000, packet.size_bytes, self._chance)
        if isinstance(due_ns, int):
            due_us = -(-due_ns // 1000)
            way = LinkPath([number], [0, due_us - now_us], [1.0])
            self._queue.call_at(due_us, Crossing(packet, way, 1, now_us, self._arrive))
        else:
            self._drop(due_ns)
            way = LinkPath([number], [0, 0], [0.0])
            self._note(Crossing(packet, way, 1, now_us, self._arrive), is_dropped=True)

    def _arrive(self, now_us: int, crossing: Crossing) -> None:
        """Take a packet from the end of a channel."""
        last, packet = crossing.way.channels[crossing.count - 1], crossing.packet
        is_dropped = self.forwarding.is_dead[last]
        self._note(crossing, is_dropped)
        if is_dropped:
            self._drop("dead_link")
            return
        packet.ttl -= crossing.count - 1
        node = self.numbering.end_of[last]
        if self.numbering.address_of[node] == packet.target:
            self._take(now_us, node, packet)
        else:
            self._pass_on(now_us, node, packet)

    def _pass_on(self, now_us: int, router: int, packet: Packet) -> None:
        """Forward a packet as a router does: the route is looked up before the TTL is checked."""
        if self.forwarding.next_channel(router, packet.target) == NO_CHANNEL:
            self._drop("no_route")
            self._complain(now_us, router, packet, Answer.DEAD_END)
        elif packet.ttl <= 1:
            self._drop("expired")
            self._complain(now_us, router, packet, Answer.PASSING)
        else:
            packet.ttl -= 1
            self._launch(now_us, router, packet)

    def _take(self, now_us: int, node: int, packet: Packet) -> None:
        """Deliver a packet to its node; a probe reaches a closed port."""
        if isinstance(packet.content, Mark):
            self._complain(now_us, node, packet, Answer.TARGET)
        elif node >= self.numbering.router_count:
            self.deliver(now_us, packet)

    def _complain(self, now_us: int, node: int, packet: Packet, answer: Answer) -> None:
        """Send an ICMP error to a packet's sender, unless the node is silent."""
        if isinstance(packet.content, Complaint) or self._is_anonymous(node):
            return
        content = Complaint(answer, packet.content, packet.ttl)
        self.send(now_us, Packet(self.numbering.address_of[node], packet.source, content))

    def _is_anonymous(self, node: int) -> bool:
        return node < self.numbering.router_count and self._underlay.routers[node].anonymous

    def _settings_of(self, channel: int) -> Channel:
        link = self._underlay.links[channel // 2]
        return link.ba if channel % 2 else link.ab

    def _drop(self, reason: str) -> None:
        self.counts[reason] += 1

    def _note(self, crossing: Crossing, is_dropped: bool = False) -> None:
        if self._notes is not None:
            channels = crossing.way.channels[: crossing.count]
            entered_us = [crossing.started_us + us for us in crossing.way.after_us[: len(channels)]]
            self._notes.add(crossing.packet, channels, entered_us, is_dropped)
            if self._notes.is_full:
                self._write_notes()
