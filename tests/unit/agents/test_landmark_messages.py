"""Messages of the landmark approach: routes that do not decode."""

import pytest

from agents.overlays.landmark.messages import Accept, Connect, Join
from agents.wire.codec import HEADER, Datagram, DecodeError, decode, encode

LONGEST = tuple(range(255))


@pytest.mark.parametrize(
    "message",
    [
        Join(1, LONGEST),
        Connect(1, 2, 3, LONGEST, 4),
        Accept(1, 2, LONGEST, 255, ()),
    ],
)
def test_a_route_that_is_longer_than_a_ttl_allows_does_not_decode(message: object) -> None:
    data = encode(Datagram(message, 0, 1, 2, 3, 4, 5))
    assert decode(data).content == message
    at = data.index(b"\x00\xff", HEADER.size)  # the number of routers
    longer = data[:at] + b"\x01\x00" + bytes(4) + data[at + 2 :]
    length = len(longer) - HEADER.size
    with pytest.raises(DecodeError, match="expected at most 255 routers, found 256"):
        decode(longer[:6] + length.to_bytes(2) + longer[8:])
