"""Packets of a simulation."""

from dataclasses import dataclass
from typing import Union

from agents.host_probing import Mark
from agents.probe import Answer

HEADERS_BYTES = 28  # IP and UDP, and just as many for IP and ICMP
FIRST_TTL = 64

# A datagram of an agent, a probe, or an ICMP error.
Content = Union[bytes, Mark, "Complaint"]


@dataclass(frozen=True, slots=True)
class Complaint:
    """What an ICMP error says about a packet of its receiver, and its TTL when it came in."""

    answer: Answer
    about: Content
    ttl_left: int


@dataclass(slots=True)
class Packet:
    """A packet under way; its TTL is that on the channel it crosses."""

    source: int
    target: int
    size_bytes: int
    content: Content
    ttl: int = FIRST_TTL

    @property
    def is_icmp(self) -> bool:
        """Whether this is an ICMP error; everything else is UDP."""
        return isinstance(self.content, Complaint)
