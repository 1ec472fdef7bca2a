"""Packets of a simulation."""

from dataclasses import dataclass, field
from typing import Union

from agents.probing.host_probing import Mark
from agents.probing.probe import Answer
from agents.wire.codec import Datagram, encode

HEADERS_BYTES = 28  # IP and UDP; IP and ICMP have the same size
_MARK_BYTES = 8  # its two numbers
_LARGEST_QUOTE_BYTES = 548  # of a packet, in the ICMP error about it
FIRST_TTL = 64

# a datagram of an agent, a probe, or an ICMP error
Content = Union[Datagram, Mark, "Complaint"]


@dataclass(frozen=True, slots=True)
class Complaint:
    """The content of an ICMP error about a packet of its receiver, and that packet's TTL on
    arrival.
    """

    answer: Answer
    about: Content
    ttl_left: int


@dataclass(slots=True)
class Packet:
    """A packet in transit; its TTL is that on the channel it crosses."""

    source: int
    target: int
    content: Content
    ttl: int = FIRST_TTL
    size_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        self.size_bytes = size_of(self.content)

    @property
    def is_icmp(self) -> bool:
        """Whether this is an ICMP error; all other packets are UDP."""
        return isinstance(self.content, Complaint)


def size_of(content: Content) -> int:
    """The size of a packet with this content, in bytes."""
    if isinstance(content, Datagram):
        return HEADERS_BYTES + len(encode(content))
    if isinstance(content, Complaint):
        return HEADERS_BYTES + min(size_of(content.about), _LARGEST_QUOTE_BYTES)
    return HEADERS_BYTES + _MARK_BYTES
