"""What tshark says about a capture, and our own rows in the same words."""

import subprocess
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from tests.capture_files import rows

FIELDS = {
    "number": "frame.number",
    "time_ns": "frame.time_epoch",
    "captured_bytes": "frame.cap_len",
    "wire_bytes": "frame.len",
    "source": "ip.src",
    "target": "ip.dst",
    "source_v6": "ipv6.src",
    "target_v6": "ipv6.dst",
    "ttl": "ip.ttl",
    "ip_id": "ip.id",
    "fragment_offset": "ip.frag_offset",
    "more_fragments": "ip.flags.mf",
    "protocol": "ip.proto",
    "udp_source": "udp.srcport",
    "udp_target": "udp.dstport",
    "udp_length": "udp.length",
    "tcp_source": "tcp.srcport",
    "tcp_target": "tcp.dstport",
    "icmp_type": "icmp.type",
    "icmp_code": "icmp.code",
    "icmp6_type": "icmpv6.type",
    "icmp6_code": "icmpv6.code",
}
# With fragments put together, tshark shows the ports of a datagram in its last fragment.
SETTINGS = ["-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE"]
OF_QUOTED_IP = ["source", "target", "protocol"]
QUOTED = ["quoted_source", "quoted_target", "quoted_protocol", "quoted_id"]
QUOTED += ["quoted_source_port", "quoted_target_port"]
Row = dict[str, Any]


def by_tshark(path: Path) -> list[Row]:
    """What tshark says, in our words; of a field that a packet has twice, all of it."""
    wanted = [word for field in FIELDS.values() for word in ("-e", field)]
    command = ["tshark", "-n", "-r", str(path), *SETTINGS, "-T", "fields", "-E", "aggregator=;"]
    done = subprocess.run([*command, *wanted], capture_output=True, text=True, check=False)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    return [_in_our_words(dict(zip(FIELDS, line, strict=True))) for line in lines]


def _in_our_words(line: dict[str, str]) -> Row:
    """The packet itself comes first, then the packet that it quotes if it is an ICMP error."""
    values = {name: text.split(";") for name, text in line.items()}
    row = {name: _number(name, texts[0]) for name, texts in values.items()}
    row |= dict.fromkeys(QUOTED)
    if row["icmp_type"] is not None and len(values["source"]) > 1:
        quoted = {name: texts[-1] for name, texts in values.items()}
        row |= {f"quoted_{name}": _number(name, quoted[name]) for name in OF_QUOTED_IP}
        row["quoted_id"] = _number("ip_id", quoted["ip_id"])
        for end in ("source", "target"):
            row[f"quoted_{end}_port"], row[f"udp_{end}"] = row[f"udp_{end}"], None
        row["udp_length"] = None
    return row


def _number(name: str, text: str) -> Any:
    if not text or name.endswith("_v6"):
        return text or None
    if name == "time_ns":
        seconds, _, fraction = text.partition(".")
        return int(seconds) * 10**9 + int(fraction.ljust(9, "0"))
    if name in ("source", "target"):
        return int(IPv4Address(text))
    if name == "more_fragments":
        return text == "1"
    return int(text, 0) * (8 if name == "fragment_offset" else 1)


def in_common_words(ours: Row) -> Row:
    """Our row in the words of `by_tshark`, where IPv4 and IPv6, UDP and TCP have fields apart."""
    row: Row = dict.fromkeys(FIELDS)
    row |= {name: ours[name] for name in (*FIELDS, *QUOTED) if name in ours}
    is_v4, protocol = ours["source"] is not None, ours["protocol"]
    if not is_v4:
        row |= dict.fromkeys(["ttl", "ip_id", "fragment_offset", "more_fragments", "protocol"])
    if protocol in (6, 17):
        name = "tcp" if protocol == 6 else "udp"
        row |= {f"{name}_source": ours["source_port"], f"{name}_target": ours["target_port"]}
    if protocol == 58:
        row |= {"icmp6_type": ours["icmp_type"], "icmp6_code": ours["icmp_code"]}
        row |= {"icmp_type": None, "icmp_code": None}
    return row


# Where we differ: tshark shows what there is of a header that is cut, we take it whole or not.
CUT_IPV4 = ["source", "ttl", "ip_id", "fragment_offset", "more_fragments", "protocol"]
EXPLAINED: dict[str, Row] = {
    "ipv4_invalid_length.pcap": dict.fromkeys(CUT_IPV4),
    "ipv6_39_byte_header.pcap": {"source_v6": None},
}


def assert_same(path: Path) -> None:
    """Field for field, all packets of a file are to us what they are to tshark."""
    ours, theirs = [in_common_words(row) for row in rows(path)], by_tshark(path)
    assert len(ours) == len(theirs) > 0
    for mine, their in zip(ours, theirs, strict=True):
        assert mine == their | EXPLAINED.get(path.name, {})
