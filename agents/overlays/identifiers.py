"""Identifiers of peers: 64-bit hashes of addresses, and their common prefixes."""

from functools import lru_cache
from hashlib import blake2b

from agents.protocol import PeerId

KEY_BITS = 64
KEY_MASK = (1 << KEY_BITS) - 1


@lru_cache(maxsize=1 << 18)  # for the agents of a simulation; a peer may name any address
def identifier_of(peer: PeerId) -> int:
    """BLAKE2b-64 of an address, its first byte the highest."""
    address = peer.to_bytes(4, "big")
    return int.from_bytes(blake2b(address, digest_size=KEY_BITS // 8).digest(), "big")


def common_bits(a: int, b: int) -> int:
    """The number of leading bits in which two identifiers agree, at most 64."""
    return KEY_BITS - (a ^ b).bit_length()


def as_hex(identifier: int) -> str:
    """An identifier in the form of records."""
    return f"{identifier:016x}"
