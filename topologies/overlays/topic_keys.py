"""Keys of topics, without NumPy, so that agents can load it."""

from hashlib import blake2b

KEY_BITS = 64


def topic_key(topic: int) -> int:
    """BLAKE2b-64 of the decimal topic number, its first byte the highest."""
    return int.from_bytes(blake2b(str(topic).encode(), digest_size=KEY_BITS // 8).digest(), "big")
