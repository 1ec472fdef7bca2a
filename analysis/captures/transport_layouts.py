"""What IP carries, as far as we look: UDP with our own header, TCP ports, ICMP.

Our header is laid out in `agents/wire/codec.py`; a test compares the two.
"""

from analysis.captures.arrays import layout

UDP_BYTES, ICMP_BYTES, OWN_BYTES = 8, 8, 40
OWN_MAGIC, OWN_VERSION, OWN_PORT = 0x5444, 1, 7001

TRANSPORT = layout(
    UDP_BYTES + OWN_BYTES,
    source_port=(">u2", 0),
    target_port=(">u2", 2),
    udp_length=(">u2", 4),
    icmp_type=("u1", 0),
    icmp_code=("u1", 1),
    magic=(">u2", 8),
    version=("u1", 10),
    kind=("u1", 11),
    flags=("u1", 12),
    hop_count=("u1", 13),
    run_id=(">u4", 16),
    sender=(">u4", 20),
    receiver=(">u4", 24),
    message_id=(">u4", 28),
    event_id=(">i8", 32),
    sent_us=(">i8", 40),
)
