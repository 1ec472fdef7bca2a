"""Our datagrams as a Scapy layer: the header of `agents.wire.codec`, bound to the agents' UDP port.

>>> from agents.wire.scapy_layer import TdoHeader
>>> from scapy.utils import rdpcap
>>> [packet[TdoHeader].sender for packet in rdpcap("some.pcapng") if TdoHeader in packet]
"""

import logging
from typing import Any

# Scapy prints warnings about this machine at import.
logging.getLogger("scapy").setLevel(logging.ERROR)

from scapy.fields import (  # noqa: E402
    ByteField,
    FlagsField,
    IntField,
    IPField,
    LongField,
    ShortField,
    XIntField,
    XShortField,
)
from scapy.layers.inet import UDP  # noqa: E402
from scapy.packet import Packet, Raw, bind_layers  # noqa: E402

from agents.wire.codec import HEADER, MAGIC, PORT, VERSION  # noqa: E402

_LENGTH_OFFSET = 6


class TdoHeader(Packet):
    """The fixed header; the body follows as the payload."""

    name = "TDO"
    fields_desc = [  # noqa: RUF012
        XShortField("magic", MAGIC),
        ByteField("version", VERSION),
        ByteField("kind", 0),
        FlagsField("flags", 0, 8, ["wants_ack"]),
        ByteField("hop_count", 0),
        ShortField("length", None),
        XIntField("run_id", 0),
        IPField("sender", "0.0.0.0"),
        IPField("receiver", "0.0.0.0"),
        IntField("message_id", 0),
        LongField("event_id", 0),
        LongField("sent_us", 0),
    ]

    def post_build(self, header: bytes, body: bytes) -> bytes:
        """The bytes of the packet, with the length of the body filled in if it was left out."""
        if self.length is None:
            after = _LENGTH_OFFSET + 2
            header = header[:_LENGTH_OFFSET] + len(body).to_bytes(2) + header[after:]
        return header + body

    def extract_padding(self, rest: bytes) -> tuple[bytes, bytes | None]:
        """The body, and what follows it in the datagram."""
        return rest[: self.length], rest[self.length :]

    @classmethod
    def dispatch_hook(cls, data: bytes | None = None, *_: Any, **__: Any) -> type[Packet]:
        """The layer for a datagram on our port, which may not be ours."""
        is_ours = data is None or (len(data) >= HEADER.size and data[:2] == MAGIC.to_bytes(2))
        return cls if is_ours else Raw


bind_layers(UDP, TdoHeader, sport=PORT)
bind_layers(UDP, TdoHeader, dport=PORT)
bind_layers(UDP, TdoHeader, sport=PORT, dport=PORT)
