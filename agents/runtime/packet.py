"""Packets of a simulation."""

from dataclasses import dataclass
from typing import Union

from agents.probe import Answer

HEADERS_BYTES = 28  # IP and UDP, and just as many for IP and ICMP
FIRST_TTL = 64

Content = Union[bytes, "ProbeMark", "Complaint"]


@dataclass(frozen=True, slots=True)
class ProbeMark:
    """What a probe carries: which of its sender's probings it belongs to, and its number."""

    probing: int
    number: int


@dataclass(frozen=True, slots=True)
class Complaint:
    """What an ICMP error says about a packet of its receiver."""

    answer: Answer
    about: Content


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
