"""Time to build a discovery overlay in the simulator, from 128 to 8,192 peers."""

import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from testbed.experiment.file import Experiment
from testbed.run.agents import assign_agents
from testbed.run.underlay import make_underlay
from testbed.simulation.run import simulate
from topologies.topology import TopologySettings

_SIZES = ((128, 205), (256, 410), (512, 820), (1_024, 1_640), (2_048, 3_280), (8_192, 10_000))
_PAPER = 1_024
_PEERS_A_SECOND = 10
_SETTLE_S = 50.0


@dataclass(frozen=True, slots=True)
class Construction:
    """The time and memory to build an overlay of one size."""

    peers: int
    routers: int
    prepare_s: float
    build_s: float
    messages: int
    peak_mb: float

    def __str__(self) -> str:
        return (
            f"{self.peers:5} peers on {self.routers:5} routers: {self.prepare_s:5.1f} s for the "
            f"underlay, {self.build_s:6.1f} s, {self.messages} messages, {self.peak_mb:.0f} MB"
        )


def run() -> dict[str, float]:
    """Print construction times by size, and return the measurements."""
    print("random walks, MLink, ten targets, no degree limit; one core, a process each")
    figures: dict[str, float] = {}
    for peers, routers in _SIZES:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            done = pool.submit(_construct, peers, routers).result()
        print(f"  {done}", flush=True)
        if peers in (_PAPER, _SIZES[-1][0]):
            figures[f"construction_s_at_{peers}"] = done.prepare_s + done.build_s
            figures[f"peak_mb_at_{peers}"] = done.peak_mb
    return figures


def _construct(peers: int, routers: int) -> Construction:
    start_over_s = peers / _PEERS_A_SECOND
    experiment = Experiment(
        "discovery",
        backend="simulation",
        capture="none",
        duration_s=start_over_s + _SETTLE_S,
        start_over_s=start_over_s,
        topology=TopologySettings(routers=routers, hosts=peers),
        overlay={"kind": "tdo-walk"},
    )
    start = time.process_time()
    underlay = make_underlay(experiment)
    specs = assign_agents(experiment, underlay, None)
    ready = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        figures = simulate(experiment, underlay, specs, Path(folder), lambda _line: None)
    end = time.process_time()
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Construction(peers, routers, ready - start, end - ready, figures["messages"], peak_mb)
