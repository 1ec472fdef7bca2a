"""Route probing in the simulator: the counterpart of `probe_sockets`, without sockets."""

from collections.abc import Callable

from agents.probing.host_probing import HostProbing, Mark
from agents.probing.probe import Probe, ProbeSettings
from agents.probing.route import Route
from agents.probing.route_probe import RouteProbe
from agents.runtime.packet import Complaint, Packet

NEVER_US = 1 << 62


class SimulatedProber:
    """Probes routes from one host."""

    def __init__(
        self, address: int, send: Callable[[int, Packet], None], settings: ProbeSettings
    ) -> None:
        self.wakes_at_us = NEVER_US  # time of the next scheduled call of `on_time`
        self._address = address
        self._send_packet = send
        self._now_us = 0
        self._probing = HostProbing[Route](RouteProbe, self._send, settings)

    @property
    def next_deadline_us(self) -> int | None:
        """The time at which `on_time` must be called if no answer arrives before."""
        return self._probing.next_deadline_us

    def probe(self, now_us: int, target: int) -> None:
        """Start probing a target soon, or join the probing of it that is in progress."""
        self._now_us = now_us
        self._probing.probe(now_us, target)

    def on_answer(self, now_us: int, packet: Packet) -> list[Route]:
        """Handle an ICMP error; returns the routes that are complete now."""
        self._now_us = now_us
        complaint = packet.content
        if not isinstance(complaint, Complaint) or not isinstance(complaint.about, Mark):
            return []
        routes = self._probing.on_reply(
            now_us, complaint.about, packet.source, complaint.answer, now_us, complaint.ttl_left
        )
        return routes + self._probing.use_room(now_us)

    def on_time(self, now_us: int) -> list[Route]:
        """Stop waiting for overdue probes; returns the routes that are complete now."""
        self._now_us = now_us
        return self._probing.on_time(now_us)

    def _send(self, target: int, mark: Mark, probe: Probe) -> int:
        self._send_packet(self._now_us, Packet(self._address, target, mark, probe.ttl))
        return self._now_us
