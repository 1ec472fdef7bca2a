"""The cost of capturing every packet of 64 hosts on 200 routers, compared with no capture.

Turns with and without capture alternate on one loaded network, so other programs on the machine
affect both. The processor time is that of all our processes: the delay line with the kernel's work
for it, the load, and the capture from its start to its end. With agents, the share of the capture
would be smaller.
"""

import resource
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.links import busy_s
from benchmarks.udp_load import UdpLoad
from testbed.commands.privileges import require_root
from testbed.emulation.capture import Capture
from testbed.emulation.network import EmulatedNetwork
from topologies.hosts import attach_hosts
from topologies.waxman import generate_waxman

_SEED = 1
_ROUTERS, _HOSTS = 200, 64
_CROSSINGS_PER_S = 10_000
_TURNS, _TURN_S = 3, 20.0  # as long as the quickstart run
_WARM_UP_S = 2.0


class Stock(NamedTuple):
    """Counters at one time."""

    cpu_s: float
    time_s: float
    crossings: int
    late: int
    held_s: float

    @classmethod
    def take(cls, network: EmulatedNetwork) -> "Stock":
        """Read the processor time of this process, its children and the delay line, and link
        counters.
        """
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = time.process_time() + children.ru_utime + children.ru_stime
        cpu_s += sum(busy_s(process) for process in network.link_layer.processes)
        counts = network.counts()
        late, held_s = counts.get("late", 0), counts.get("held_s", 0.0)
        return cls(cpu_s, time.perf_counter(), counts["forwarded"], late, held_s)


@dataclass
class Turns:
    """Sums over the turns with capture, or over those without."""

    cpu_s: float = 0.0
    crossings: int = 0
    duration_s: float = 0.0
    late: int = 0
    held_s: float = 0.0
    packets: int = 0
    dropped: int = 0
    bytes: int = 0

    @property
    def cpu_us(self) -> float:
        """Processor time for each packet on each link, in microseconds."""
        return self.cpu_s / self.crossings * 1e6

    def add(self, before: Stock, after: Stock, captured: dict[str, Any]) -> None:
        """Add a round between two readings of counters, with the measurements of its capture."""
        self.cpu_s += after.cpu_s - before.cpu_s
        self.duration_s += after.time_s - before.time_s
        self.crossings += after.crossings - before.crossings
        self.late += after.late - before.late
        self.held_s += after.held_s - before.held_s
        self.packets += captured.get("packets", 0)
        self.dropped += captured.get("dropped", 0)
        self.bytes += captured.get("bytes", 0)

    def __str__(self) -> str:
        return (
            f"{self.cpu_us:.2f} us of processor time per crossing, "
            f"{self.crossings / self.duration_s:.0f} crossings/s, "
            f"{100 * self.late / self.crossings:.2f} % over 1 ms late, "
            f"links held up for {self.held_s:.2f} s"
        )


def run() -> dict[str, float]:
    """Print the cost of crossing a link with and without capture, and return the measurements."""
    require_root("bench capture")
    underlay = attach_hosts(generate_waxman(_ROUTERS, seed=_SEED), _HOSTS, seed=_SEED)
    turns = {"none": Turns(), "all": Turns(), "headers": Turns()}
    with EmulatedNetwork(underlay) as network, tempfile.TemporaryDirectory() as folder:
        print(f"{_ROUTERS} routers, {_HOSTS} hosts, {network.link_layer.kind}", flush=True)
        fixed_cpu_s = _idle_cost_s(network, Path(folder, "idle"))
        with UdpLoad(network, _CROSSINGS_PER_S / _mean_hops(network), _SEED):
            time.sleep(_WARM_UP_S)
            for number in range(_TURNS):
                for what, sums in turns.items():
                    _take_turn(network, what, Path(folder, f"{what}-{number}"), sums)
    for what, sums in turns.items():
        print(f"  {what:8} {sums}")
    everything, headers, none = turns["all"], turns["headers"], turns["none"]
    print(f"  starting and ending a capture takes {fixed_cpu_s:.2f} s, which is in the above")
    return {
        "cpu_share_added": everything.cpu_us / none.cpu_us - 1,
        "cpu_share_added_headers": headers.cpu_us / none.cpu_us - 1,
        "dropped": everything.dropped + headers.dropped,
        "packets_per_s": everything.packets / everything.duration_s,
        "bytes_per_packet": everything.bytes / everything.packets,
        "bytes_per_packet_headers": headers.bytes / headers.packets,
        "fixed_cpu_s": fixed_cpu_s,
        "late_share": everything.late / everything.crossings,
        "late_share_without": none.late / none.crossings,
        "held_share": everything.held_s / everything.duration_s,
        "held_share_without": none.held_s / none.duration_s,
    }


def _take_turn(network: EmulatedNetwork, what: str, folder: Path, sums: Turns) -> None:
    """Measure for some seconds, with or without a capture."""
    before = Stock.take(network)
    captured = {}
    if what == "none":
        time.sleep(_TURN_S)
    else:
        with Capture(network, folder, what) as capture:
            time.sleep(_TURN_S)
            captured = capture.finish()
    sums.add(before, Stock.take(network), captured)


def _idle_cost_s(network: EmulatedNetwork, folder: Path) -> float:
    """The processor time of a capture without packets."""
    before = Stock.take(network)
    with Capture(network, folder):
        pass
    return Stock.take(network).cpu_s - before.cpu_s


def _mean_hops(network: EmulatedNetwork) -> float:
    hosts = [host.name for host in network.hosts]
    return float(
        np.mean([len(network.routes.path(a, b)) - 1 for a in hosts for b in hosts if a != b])
    )
