"""Time and memory of greedy overlays: GrSwico's fingers, and BeaConvey's ring and fingers."""

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np

from benchmarks.offline_overlays import peak_mb
from topologies.overlays.arrays import Numbers
from topologies.overlays.beaconvey import BeaConveyOverlaySettings, make_fingers_on_ring, make_ring
from topologies.overlays.interests import Interests, make_interests
from topologies.overlays.small_world import make_fingers
from workloads.topics.interests import draw_interests
from workloads.topics.popularity import Popularity

_SIZES = (1_000, 3_000, 10_000)
_TOPICS, _TOPICS_PER_NODE = 2_000, 20
_SEED = 1


@dataclass(frozen=True, slots=True)
class Made:
    """The processor time to compute an overlay, and the peak memory of a process that does only
    this.
    """

    nodes: int
    seconds: float
    peak_mb: float


def _grswico(interests: Interests, rng: np.random.Generator) -> Numbers:
    return make_fingers(interests, "greedy", "floor", rng)


def _beaconvey_sl(interests: Interests, rng: np.random.Generator) -> Numbers:
    settings = BeaConveyOverlaySettings(overlay="sl")
    return make_fingers_on_ring(interests, make_ring(interests, settings, rng), settings, rng)


OVERLAYS: dict[str, Callable[[Interests, np.random.Generator], Numbers]] = {
    "grswico": _grswico,
    "beaconvey_sl": _beaconvey_sl,
}


def run() -> dict[str, float]:
    """Print time and memory of each overlay, and return the measurements."""
    print(f"greedy overlays: {_TOPICS_PER_NODE} of {_TOPICS:,} topics for each node, one core")
    return {key: value for name in OVERLAYS for key, value in measure(name, _SIZES).items()}


def measure(name: str, sizes: tuple[int, ...]) -> dict[str, float]:
    """The measurements of an overlay: time and memory at the largest size, growth of the time."""
    made = [_make_apart(name, nodes) for nodes in sizes]
    for one in made:
        print(f"  {name:12} {one.nodes:6,} nodes: {one.seconds:5.2f} s, {one.peak_mb:,.0f} MB",
              flush=True)  # fmt: skip
    largest = made[-1]
    suffix = f"{largest.nodes // 1_000}k"
    return {
        f"{name}_{suffix}_s": largest.seconds,
        f"{name}_{suffix}_mb": largest.peak_mb,
        f"{name}_growth": fit_exponent(made),
    }


def fit_exponent(made: list[Made]) -> float:
    """The exponent of the time in the number of nodes, by least squares of the logarithms."""
    logs = np.log([[one.nodes, one.seconds] for one in made])
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


def make_once(name: str, nodes: int) -> Made:
    """Compute an overlay in this process."""
    wanted = draw_interests(nodes, _TOPICS, _TOPICS_PER_NODE, Popularity("uniform"), _SEED)
    interests = make_interests(nodes, _TOPICS, np.column_stack(wanted))
    start_s = time.process_time()
    table = OVERLAYS[name](interests, np.random.default_rng(_SEED))
    seconds = time.process_time() - start_s
    if len(table) != nodes:
        raise AssertionError(f"expected fingers of {nodes} nodes, found {len(table)}")
    return Made(nodes, seconds, peak_mb())


def _make_apart(name: str, nodes: int) -> Made:
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(make_once, name, nodes).result()
