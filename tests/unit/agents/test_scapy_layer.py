"""Scapy decodes our datagrams, and we decode Scapy's."""

from ipaddress import IPv4Address

from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.packet import Raw

from agents.agent import Acknowledgement, Ping
from agents.wire.codec import HEADER, MAGIC, PORT, VERSION, WANTS_ACK, Datagram, decode, encode
from agents.wire.scapy_layer import TdoHeader

U32 = st.integers(0, 2**32 - 1)


def on_the_wire(datagram: bytes) -> bytes:
    return bytes(IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=PORT, dport=PORT) / Raw(datagram))


@given(
    content=st.builds(Ping, U32) | st.builds(Acknowledgement, U32),
    flags=st.sampled_from([0, WANTS_ACK]),
    run_id=U32,
    sender=U32,
    receiver=U32,
    message_id=U32,
    sent_us=st.integers(0, 2**63),
)
def test_scapy_shows_the_fields_that_the_codec_encoded(
    content: Ping | Acknowledgement,
    flags: int,
    run_id: int,
    sender: int,
    receiver: int,
    message_id: int,
    sent_us: int,
) -> None:
    datagram = Datagram(content, flags, run_id, sender, receiver, message_id, sent_us)
    data = encode(datagram)
    shown = IP(on_the_wire(data))[TdoHeader]
    assert (shown.magic, shown.version) == (MAGIC, VERSION)
    assert int(IPv4Address(shown.sender)) == sender
    assert int(IPv4Address(shown.receiver)) == receiver
    assert shown.kind == (2 if isinstance(content, Ping) else 1)
    assert (shown.hop_count, int(shown.event_id)) == (0, 0)
    for name in ("flags", "run_id", "message_id", "sent_us"):
        assert int(getattr(shown, name)) == getattr(datagram, name)
    assert shown.length == len(shown[Raw].load) == len(data) - HEADER.size
    assert bytes(shown) == data


def test_the_codec_decodes_packets_of_scapy() -> None:
    made = TdoHeader(
        kind=2, flags="wants_ack", run_id=7, sender="10.0.1.2", receiver="10.0.2.2", message_id=9
    ) / Raw((5).to_bytes(4))
    datagram = decode(bytes(made))
    assert datagram.content == Ping(5)
    assert type(datagram.content) is Ping
    assert (datagram.flags, datagram.run_id, datagram.message_id) == (WANTS_ACK, 7, 9)
    assert datagram.sender == int(IPv4Address("10.0.1.2"))


def test_foreign_packets_stay_raw() -> None:
    for datagram in (b"", b"hello", bytes(HEADER.size)):
        assert TdoHeader not in IP(on_the_wire(datagram))
    assert TdoHeader in IP(on_the_wire(bytes(TdoHeader())))
