"""The part of one peer in a workload; agents import this module, and not those that draw it."""

from dataclasses import dataclass
from typing import NamedTuple

NEVER_US = 2**63 - 1  # the end of an interest that lasts to the end of the run


class OwnInterest(NamedTuple):
    """An interest of one peer with its beginning and end."""

    number: int
    content: int
    from_us: int
    until_us: int


class OwnPublication(NamedTuple):
    """A publication of one peer, and the peer's own interests that it matches."""

    event_id: int
    content: int
    time_us: int
    own_interests: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Share:
    """The part of a workload that one peer needs: its own rows, and what all peers share."""

    interests: tuple[OwnInterest, ...] = ()
    publications: tuple[OwnPublication, ...] = ()
    events: int = 0
    first_event_us: int = 0
    payload_bytes: int = 0
    interest_key: str = "content"
    event_key: str = "content"

    def interests_at(self, now_us: int) -> list[OwnInterest]:
        """The interests that the peer has at a time."""
        return [one for one in self.interests if one.from_us <= now_us < one.until_us]
