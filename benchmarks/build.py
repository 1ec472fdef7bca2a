"""Times to build and remove networks up to the paper's size, compared with stock Mininet."""

import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

from testbed.commands.privileges import require_root
from testbed.emulation.capacity import available_mb
from testbed.emulation.ledger import LEDGERS
from testbed.emulation.network import EmulatedNetwork, Phase
from topologies.hosts import attach_hosts
from topologies.underlay import Underlay
from topologies.underlay_file import save_underlay
from topologies.waxman import generate_waxman

_SEED = 1
_PINGS = 50
_SIZES = ((100, 62), (200, 125), (400, 250), (800, 500), (1640, 1024))
_KERNEL_PATIENCE_S = 20.0


def run() -> dict[str, float]:
    """Print build times by size, and return the measurements."""
    require_root("bench build")
    before = _traces()
    speedup = _beside_stock_mininet()
    for routers, hosts in _SIZES:
        build_s, teardown_s, peak_mb = _measure(routers, hosts)
    return {
        "speedup_vs_mininet": speedup,
        "paper_build_s": build_s,
        "paper_teardown_s": teardown_s,
        "paper_peak_mb": peak_mb,
        "leftovers": _leftovers(before),
    }


def _beside_stock_mininet() -> float:
    """The speed-up over stock Mininet for one network; the same pings must succeed on both."""
    underlay = _waxman(200, 100)
    names = [host.name for host in underlay.hosts]
    chance = random.Random(_SEED)
    pairs = [tuple(chance.sample(names, 2)) for _ in range(_PINGS)]
    with EmulatedNetwork(underlay) as network:
        ours_s = sum(
            phase.duration_s for phase in network.phases if phase.name != "shortest routes"
        )
        answered = sum(
            ", 0% packet loss" in network[a].cmd("ping -n -c 1 -W 2", network[b].IP())
            for a, b in pairs
        )
    print("200 routers, 100 hosts, the same network built twice:")
    print(f"  ours           {ours_s:8.2f} s  {answered}/{_PINGS} pings answered", flush=True)
    stock = _build_stock(underlay, pairs)
    stock_s = stock["nodes_s"] + stock["links_s"] + stock["routes_s"]
    print(
        f"  stock Mininet  {stock_s:8.2f} s  {stock['answered']:.0f}/{_PINGS} pings answered"
        f"  (nodes {stock['nodes_s']:.2f}, links {stock['links_s']:.2f}, "
        f"routes {stock['routes_s']:.2f}; no delays)",
        flush=True,
    )
    return stock_s / ours_s


def _build_stock(underlay: Underlay, pairs: list[tuple[str, ...]]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "topology.json")
        save_underlay(underlay, file)
        names = ["-".join(pair) for pair in pairs]
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.stock_mininet", str(file), *names],
            capture_output=True,
            text=True,
            check=True,
        )
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _measure(routers: int, hosts: int) -> tuple[float, float, float]:
    """The time to build, the time to remove (both in seconds), and the peak memory."""
    print(f"\n{routers} routers, {hosts} hosts:", flush=True)
    underlay = _waxman(routers, hosts)
    with PeakMemory() as memory:
        start = time.perf_counter()
        network = EmulatedNetwork(underlay, on_phase=print_phase)
        with network:
            built = time.perf_counter()
        ended = time.perf_counter()
    print(
        f"  built in {built - start:.1f} s, removed in {ended - built:.1f} s, "
        f"{memory.peak_mb:.0f} MB peak",
        flush=True,
    )
    return built - start, ended - built, memory.peak_mb


def print_phase(phase: Phase) -> None:
    """Print time and memory of a phase of building or removing."""
    print(f"    {phase.name:22} {phase.duration_s:7.2f} s {phase.used_mb:7.0f} MB", flush=True)


def _waxman(routers: int, hosts: int) -> Underlay:
    return attach_hosts(generate_waxman(routers, seed=_SEED), hosts, seed=_SEED)


class PeakMemory:
    """The peak memory of the whole machine, minus the memory in use at the start."""

    def __enter__(self) -> "PeakMemory":
        self.peak_mb = 0.0
        self._start_mb = available_mb()
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch)
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._watcher.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.1):
            self.peak_mb = max(self.peak_mb, self._start_mb - available_mb())


def _leftovers(before: dict[str, int]) -> int:
    """The increase of the counts of `_traces`, after the kernel had time to remove namespaces."""
    deadline = time.monotonic() + _KERNEL_PATIENCE_S
    while True:
        after = _traces()
        extra = {name: after[name] - before[name] for name in after if after[name] > before[name]}
        if not extra or time.monotonic() > deadline:
            print(f"\nleft behind: {extra or 'nothing'}")
            return sum(extra.values())
        time.sleep(0.5)


def _traces() -> dict[str, int]:
    """The counts of all objects that a network could leave behind."""
    processes = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    marked = [p for p in processes if b"TDO_RUN=" in _read(p / "environ")]
    return {
        "devices": len(list(Path("/sys/class/net").iterdir())),
        "named namespaces": len(list(Path("/run/netns").glob("*"))),
        "namespaces": _held_namespaces(),
        "processes": len(marked),
        "ledgers": len(list(LEDGERS.glob("*"))),
    }


def _held_namespaces() -> int:
    """The number of network namespaces that a process is in or holds open."""
    links = (link for p in Path("/proc").glob("[0-9]*") for link in _links(p))
    return len({link for link in links if link.startswith("net:[")})


def _links(process: Path) -> list[str]:
    with suppress(OSError):
        links = (process / "ns/net", *(process / "fd").iterdir())
        return [str(link.readlink()) for link in links]
    return []


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
