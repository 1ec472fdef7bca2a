"""Whether links delay packets as they should and lose none, idle and under load."""

import os
import random
import re
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.udp_load import UdpLoad
from testbed.commands.privileges import require_root
from testbed.emulation.network import EmulatedNetwork
from topologies.hosts import attach_hosts
from topologies.underlay import Host, Link, Router, Underlay
from topologies.waxman import generate_waxman

_SEED = 1
_ROUTERS, _HOSTS, _PAIRS = 300, 100, 200
_PINGS_A_PAIR, _PAIRS_AT_ONCE = 10, 20
_LOAD_CROSSINGS_PER_S = 10_000
_CAPACITY_S = 5.0
_MORE_THAN_IT_CAN = 500_000


def run() -> dict[str, float]:
    """Print the errors of round-trip times, idle and loaded, and return the figures."""
    require_root("bench links")
    underlay = attach_hosts(generate_waxman(_ROUTERS, seed=_SEED), _HOSTS, seed=_SEED)
    with EmulatedNetwork(underlay) as network:
        print(f"{_ROUTERS} routers, {_HOSTS} hosts, {_PAIRS} pairs, {network.link_layer.kind}")
        idle, lost_idle = _ping_pairs(network)
        print(f"  idle:   {_describe(idle)}, {lost_idle} lost", flush=True)
        loaded, lost_loaded = _ping_under_load(network)
        print(f"  loaded: {_describe(loaded)}, {lost_loaded} lost", flush=True)
    return {
        "rtt_error_p50": _share(loaded, 50),
        "rtt_error_p99": _share(loaded, 99),
        "rtt_error_p99_ms": _error_ms(loaded, 99),
        "idle_rtt_error_p50": _share(idle, 50),
        "idle_rtt_error_p99": _share(idle, 99),
        "idle_rtt_error_p99_ms": _error_ms(idle, 99),
        "unintended_loss": lost_idle + lost_loaded,
        "packets_per_s": _capacity(),
    }


def _ping_pairs(network: EmulatedNetwork) -> tuple[NDArray[np.float64], int]:
    """Intended and measured round-trip times in ms, and how many pings had no answer."""
    names = [host.name for host in network.hosts]
    chance = random.Random(_SEED)
    pairs = [chance.sample(names, 2) for _ in range(_PAIRS)]
    command = ["ping", "-n", "-i", "0.2", "-c", str(_PINGS_A_PAIR)]
    measured = []
    for start in range(0, _PAIRS, _PAIRS_AT_ONCE):
        batch = pairs[start : start + _PAIRS_AT_ONCE]
        pings = [network[a].popen([*command, network[b].IP()], text=True) for a, b in batch]
        for (a, b), ping in zip(batch, pings, strict=True):
            there_us, back_us = (
                network.routes.path_delay_us(a, b),
                network.routes.path_delay_us(b, a),
            )
            for answer_ms in re.findall(r"time=([\d.]+) ms", ping.communicate()[0]):
                measured.append(((there_us + back_us) / 1000, float(answer_ms)))
    return np.array(measured), _PAIRS * _PINGS_A_PAIR - len(measured)


def _ping_under_load(network: EmulatedNetwork) -> tuple[NDArray[np.float64], int]:
    """The same while packets cross the links at the wanted rate; their losses count, too."""
    hosts = [host.name for host in network.hosts]
    hops = [len(network.routes.path(a, b)) - 1 for a in hosts for b in hosts if a != b]
    before, start = network.counts()["forwarded"], time.perf_counter()
    with UdpLoad(network, _LOAD_CROSSINGS_PER_S / float(np.mean(hops)), _SEED) as load:
        loaded, lost = _ping_pairs(network)
        crossings = network.counts()["forwarded"] - before
        duration_s = time.perf_counter() - start
    print(
        f"  load:   {load.sent / duration_s:.0f} packets/s from host to host, "
        f"{crossings / duration_s:.0f} link crossings/s, {load.sent - load.received} lost"
    )
    return loaded, lost + load.sent - load.received


def _capacity() -> float:
    """Packets a second that the delay line carries across links with all of one core."""
    routers = (Router("r1"),)
    hosts = (Host("h1"), Host("h2"))
    links = (Link.symmetric("h1", "r1", 1_000), Link.symmetric("h2", "r1", 1_000))
    with EmulatedNetwork(Underlay(routers, links, hosts), links="delay-line") as network:
        process = network.link_layer.processes[0]
        os.sched_setaffinity(process, {0})
        os.sched_setaffinity(0, os.sched_getaffinity(0) - {0} or {0})
        before, busy_before, start = (
            network.counts()["forwarded"],
            _busy_s(process),
            time.perf_counter(),
        )
        with UdpLoad(network, _MORE_THAN_IT_CAN, _SEED):
            time.sleep(_CAPACITY_S)
            carried = network.counts()["forwarded"] - before
            duration_s = time.perf_counter() - start
            busy_s = _busy_s(process) - busy_before
    print(
        f"  delay line: {carried / duration_s:.0f} packets/s at {busy_s / duration_s:.0%} of a core"
    )
    return float(carried / duration_s)


def _busy_s(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _describe(times: NDArray[np.float64]) -> str:
    return (
        f"error p50 {_share(times, 50):.2%}, p99 {_share(times, 99):.2%} or "
        f"{_error_ms(times, 99):.2f} ms, mean round trip {times[:, 0].mean():.1f} ms"
    )


def _share(times: NDArray[np.float64], percentile: float) -> float:
    errors = np.abs(times[:, 1] - times[:, 0]) / times[:, 0]
    return float(np.percentile(errors, percentile))


def _error_ms(times: NDArray[np.float64], percentile: float) -> float:
    return float(np.percentile(np.abs(times[:, 1] - times[:, 0]), percentile))
