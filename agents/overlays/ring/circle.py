"""Positions on a ring, clockwise distances between them, and the phases of distance.

Positions are whole numbers modulo `modulus`. On a sparse ring any position may be taken
(`spacing` 1); on a ring of ranks the planned positions are multiples of `spacing`, and peers that
come later fit in between.
"""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, NamedTuple

from agents.protocol import PeerId

KEY_BITS = 64
RANK_SPACING = 1 << 40
MOST_RANKS = 1 << 24  # whose positions messages can carry
Rounding = Literal["floor", "ceil"]


@dataclass(frozen=True, slots=True)
class Circle:
    """The positions of a ring."""

    modulus: int
    spacing: int = 1

    @property
    def ranks(self) -> int:
        """The number of planned positions."""
        return self.modulus // self.spacing

    def distance(self, start: int, end: int) -> int:
        """The clockwise distance from one position to another."""
        return (end - start) % self.modulus

    def place_key(self, key: int) -> int:
        """The position of a key of 64 bits; on a ring of ranks it is a rank's."""
        return (key * self.ranks >> KEY_BITS) * self.spacing


SPARSE = Circle(1 << KEY_BITS)


def rank_circle(peers: int) -> Circle:
    """The ring of ranks 0 to `peers` - 1."""
    return Circle(peers * RANK_SPACING, RANK_SPACING)


def hash_position(peer: PeerId) -> int:
    """BLAKE2b-64 of an address, its first byte the highest."""
    address = peer.to_bytes(4, "big")
    return int.from_bytes(blake2b(address, digest_size=KEY_BITS // 8).digest(), "big")


class Phase(NamedTuple):
    """A range of clockwise distances, without its end."""

    start: int
    end: int

    def has(self, distance: int) -> bool:
        """Whether a distance belongs to the phase."""
        return self.start <= distance < self.end


def phases_of(circle: Circle, rounding: Rounding = "floor") -> list[Phase]:
    """The phases of a ring: phase i has the distances from 2^i to 2^(i+1) - 1 spacings.

    Their number is log2 of the ranks, rounded, and at least 1 where a peer has a successor.
    """
    ranks, spacing = circle.ranks, circle.spacing
    count = ranks.bit_length() - 1 if rounding == "floor" else (ranks - 1).bit_length()
    starts = [spacing << i for i in range(max(count, min(ranks - 1, 1)))]
    return [Phase(start, min(2 * start, circle.modulus)) for start in starts]
