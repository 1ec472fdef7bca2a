"""Some packets with all their layers, each read when it is asked for and not before."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from analysis.captures import problems as reasons
from analysis.captures.arrays import Flags
from analysis.captures.frames import Frames
from analysis.captures.ip_layer import IpLayer, read_ip_layer
from analysis.captures.link_layer import LinkLayer, read_link_layer
from analysis.captures.problems import Problem
from analysis.captures.transport_layer import (
    Quoted,
    TransportLayer,
    read_quoted,
    read_transport_layer,
)


class Packets:
    """Some consecutive packets of a capture; valid until the next ones are asked for."""

    def __init__(self, frames: Frames) -> None:
        self.frames = frames

    def __len__(self) -> int:
        return len(self.frames)

    @cached_property
    def link(self) -> LinkLayer:
        """What follows the link layer."""
        return read_link_layer(self.frames)

    @cached_property
    def ip(self) -> IpLayer:
        """The network layer."""
        return read_ip_layer(self.frames.data, self.link)

    @cached_property
    def transport(self) -> TransportLayer:
        """What IP carries."""
        return read_transport_layer(self.frames.data, self.ip)

    @cached_property
    def quoted(self) -> Quoted | None:
        """What ICMP errors quote, if there are any."""
        return read_quoted(self.frames.data, self.ip, self.transport)

    def problems(self) -> list[Problem]:
        """What could not be read, between these packets and in them."""
        if not len(self):
            return self.frames.problems
        inside = [problem for found in self._problems_inside() for problem in found]
        return self.frames.problems + self.frames.time_problems() + inside

    def _problems_inside(self) -> Iterator[Iterator[Problem]]:
        ip, transport = self.ip, self.transport
        records = self.frames.records
        # That the capture kept only the beginning of a packet is no fault of the packet.
        is_whole = records.captured >= records.wire
        yield self._of(ip.bad_version, reasons.BAD_IP_VERSION, "no field is read")
        yield self._of(ip.bad_length, reasons.BAD_IP_LENGTH, "what it carries is not read")
        yield self._of(
            is_whole & (self.link.is_cut | ip.is_cut | transport.is_cut),
            reasons.PACKET_CUT_SHORT,
            "what is missing is null",
        )
        yield self._of(
            ip.too_many | self.link.too_many,
            reasons.TOO_MANY_HEADERS,
            "what is behind them is not read",
        )
        yield self._of(transport.is_foreign, reasons.BAD_OWN_VERSION, "it is not read")

    def _of(self, flags: Flags, reason: str, detail: str) -> Iterator[Problem]:
        for index in np.flatnonzero(flags).tolist() if flags.any() else ():
            text = f"packet {self.frames.number + index}: {detail}"
            yield Problem(self.frames.file_offset(index), reason, text)
