"""Delays and losses of links, idle and under load."""

import os
import random
import re
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.stalls import StallWatch
from benchmarks.udp_load import UdpLoad
from testbed.commands.privileges import require_root
from testbed.emulation.network import EmulatedNetwork
from topologies.hosts import attach_hosts, make_anonymous
from topologies.underlay import Host, Link, Router, Underlay
from topologies.waxman import generate_waxman

_SEED = 1
_ROUTERS, _HOSTS, _PAIRS = 300, 100, 200
_PINGS_A_PAIR, _PAIRS_AT_ONCE = 10, 20
_LOAD_CROSSINGS_PER_S = 10_000
_TRACEROUTES, _ANONYMOUS = 100, 1 / 3
_ANSWER = re.compile(r"\[([\d.]+)\] .* time=([\d.]+) ms")
_CAPACITY_S = 5.0
_MORE_THAN_IT_CAN = 500_000


@dataclass(frozen=True, slots=True)
class RoundTrips:
    """Pings between hosts: intended and measured times, and which pings fell into a stall."""

    intended_ms: NDArray[np.float64]
    measured_ms: NDArray[np.float64]
    is_disturbed: NDArray[np.bool]
    lost: int

    def error_share(self, percentile: float, undisturbed: bool = False) -> float:
        """A percentile of the errors as shares of the intended times."""
        return self._percentile(self._errors_ms / self.intended_ms, percentile, undisturbed)

    def error_ms(self, percentile: float, undisturbed: bool = False) -> float:
        """A percentile of the errors in milliseconds."""
        return self._percentile(self._errors_ms, percentile, undisturbed)

    def __str__(self) -> str:
        return (
            f"error: median {100 * self.error_share(50):.2f} %, 99th percentile "
            f"{100 * self.error_share(99):.2f} % or {self.error_ms(99):.2f} ms; the machine "
            f"stalled in {100 * self.is_disturbed.mean():.1f} % of the pings, without those "
            f"{100 * self.error_share(99, True):.2f} % or {self.error_ms(99, True):.2f} ms; "
            f"{self.lost:,} lost"
        )

    @property
    def _errors_ms(self) -> NDArray[np.float64]:
        return np.abs(self.measured_ms - self.intended_ms)

    def _percentile(
        self, errors: NDArray[np.float64], percentile: float, undisturbed: bool
    ) -> float:
        return float(
            np.percentile(errors[~self.is_disturbed] if undisturbed else errors, percentile)
        )


def run() -> dict[str, float]:
    """Print the errors of round-trip times, idle and loaded, and return the measurements."""
    require_root("bench links")
    underlay = attach_hosts(generate_waxman(_ROUTERS, seed=_SEED), _HOSTS, seed=_SEED)
    with EmulatedNetwork(underlay) as network:
        print(f"{_ROUTERS} routers, {_HOSTS} hosts, {_PAIRS} pairs, {network.link_layer.kind}")
        idle = _ping_pairs(network)
        print(f"  idle:   {idle}", flush=True)
        loaded, lost_packets = _ping_under_load(network)
        print(f"  loaded: {loaded}", flush=True)
        true_routes = _true_traceroutes(network)
    with EmulatedNetwork(make_anonymous(underlay, _ANONYMOUS, seed=_SEED)) as network:
        true_anonymous = _true_traceroutes(network)
    return {
        "rtt_error_p50": loaded.error_share(50),
        "rtt_error_p99": loaded.error_share(99),
        "rtt_error_p99_ms": loaded.error_ms(99),
        "undisturbed_rtt_error_p99": loaded.error_share(99, undisturbed=True),
        "undisturbed_rtt_error_p99_ms": loaded.error_ms(99, undisturbed=True),
        "idle_rtt_error_p50": idle.error_share(50),
        "idle_rtt_error_p99": idle.error_share(99),
        "idle_rtt_error_p99_ms": idle.error_ms(99),
        "unintended_loss": idle.lost + loaded.lost + lost_packets,
        "true_traceroutes": true_routes,
        "true_traceroutes_anonymous": true_anonymous,
        "packets_per_s": _capacity(),
    }


def _random_pairs(network: EmulatedNetwork, count: int) -> list[list[str]]:
    names = [host.name for host in network.hosts]
    chance = random.Random(_SEED)
    return [chance.sample(names, 2) for _ in range(count)]


def _ping_pairs(network: EmulatedNetwork) -> RoundTrips:
    """Run Debian's ping between random pairs, some at a time."""
    command = ["ping", "-n", "-D", "-i", "0.2", "-c", str(_PINGS_A_PAIR)]
    pairs = _random_pairs(network, _PAIRS)
    answers: list[tuple[float, float, float]] = []
    with StallWatch() as watch:
        for start in range(0, _PAIRS, _PAIRS_AT_ONCE):
            batch = pairs[start : start + _PAIRS_AT_ONCE]
            pings = [network[a].popen([*command, network[b].IP()], text=True) for a, b in batch]
            for (a, b), ping in zip(batch, pings, strict=True):
                routes = network.routes
                intended_us = routes.path_delay_us(a, b) + routes.path_delay_us(b, a)
                for at_s, time_ms in _ANSWER.findall(ping.communicate()[0]):
                    answers.append((intended_us / 1000, float(time_ms), float(at_s)))
    intended_ms, measured_ms, at_s = np.array(answers).T
    is_disturbed = watch.overlaps(at_s - measured_ms / 1000, at_s)
    return RoundTrips(intended_ms, measured_ms, is_disturbed, _PAIRS * _PINGS_A_PAIR - len(answers))


def _ping_under_load(network: EmulatedNetwork) -> tuple[RoundTrips, int]:
    """Run the pings while other packets cross the links; also returns the lost packets."""
    hosts = [host.name for host in network.hosts]
    hops = [len(network.routes.path(a, b)) - 1 for a in hosts for b in hosts if a != b]
    before, start = network.counts()["forwarded"], time.perf_counter()
    with UdpLoad(network, _LOAD_CROSSINGS_PER_S / float(np.mean(hops)), _SEED) as load:
        loaded = _ping_pairs(network)
        crossings = network.counts()["forwarded"] - before
        duration_s = time.perf_counter() - start
    lost = load.sent - load.received
    print(
        f"  load:   {load.sent / duration_s:.0f} packets/s from host to host, "
        f"{crossings / duration_s:.0f} link crossings/s, {lost} lost"
    )
    return loaded, lost


def _true_traceroutes(network: EmulatedNetwork) -> int:
    """The number of random pairs for which Debian's traceroute finds the true route; all run at
    once.
    """
    pairs = _random_pairs(network, _TRACEROUTES)
    traces = [network[a].popen(["traceroute", "-n", network[b].IP()], text=True) for a, b in pairs]
    silent = {router.name for router in network.underlay.routers if router.anonymous}
    true = 0
    for (a, b), trace in zip(pairs, traces, strict=True):
        seen = [_hop(line.split()[1:]) for line in trace.communicate()[0].splitlines()[1:]]
        route = network.routes.path(a, b)[1:]
        true += seen == ["*" if n in silent else network.underlay.address[n] for n in route]
    print(f"  traceroute: {true} of {_TRACEROUTES} routes true, {len(silent)} silent routers")
    return true


def _hop(words: list[str]) -> str:
    """The answer in one line of traceroute: an address, * for none, or ? if answers differ."""
    if "*" in words:
        return "*" if set(words) == {"*"} else "?"
    return words[0]


def _capacity() -> float:
    """Packets per second that the delay line carries on one core."""
    routers = (Router("r1"),)
    hosts = (Host("h1"), Host("h2"))
    links = (Link.symmetric("h1", "r1", 1_000), Link.symmetric("h2", "r1", 1_000))
    with EmulatedNetwork(Underlay(routers, links, hosts), links="delay-line") as network:
        process = network.link_layer.processes[0]
        os.sched_setaffinity(process, {0})
        os.sched_setaffinity(0, os.sched_getaffinity(0) - {0} or {0})
        before, start = network.counts()["forwarded"], time.perf_counter()
        used_before_s = busy_s(process)
        with UdpLoad(network, _MORE_THAN_IT_CAN, _SEED):
            time.sleep(_CAPACITY_S)
            carried = network.counts()["forwarded"] - before
            duration_s = time.perf_counter() - start
            used_s = busy_s(process) - used_before_s
    print(
        f"  delay line: {carried / duration_s:,.0f} packets/s at "
        f"{100 * used_s / duration_s:.0f} % of a core"
    )
    return float(carried / duration_s)


def busy_s(process: int) -> float:
    """The processor time of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
