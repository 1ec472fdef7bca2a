"""Time and memory of offline overlays: tables, and dissemination by Scribe at 100,000 nodes."""

import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import msgspec
import numpy as np

from topologies.overlays.interests import make_interests
from topologies.overlays.kinds import find_overlay, find_pubsub, key_routes
from topologies.overlays.publications import draw_publications
from topologies.overlays.scribe import ScribeSettings
from workloads.topics.interests import draw_interests
from workloads.topics.popularity import Popularity

_NODES, _TOPICS, _TOPICS_PER_NODE, _EVENTS = 100_000, 2_000, 20, 1_000
_SEED = 1
# Computing these overlays does not depend on interests.
KINDS = ("ring", "pastry", "skip-net")
_MB = 1 << 20


@dataclass(frozen=True, slots=True)
class Walk:
    """Time and memory to compute an overlay and disseminate publications over it.

    Tables are the arrays of edges and of the index for routing. The peak is that of the process.
    """

    kind: str
    build_s: float
    tables_mb: float
    walk_s: float
    messages: int
    peak_mb: float

    def __str__(self) -> str:
        return (
            f"{self.kind:9} built in {self.build_s:5.1f} s, tables {self.tables_mb:5.0f} MB; "
            f"walk {self.walk_s:5.1f} s, {self.messages:,} messages, peak {self.peak_mb:.0f} MB"
        )


def run() -> dict[str, float]:
    """Print time and memory of each kind, and return the measurements."""
    print(f"{_NODES:,} nodes, {_TOPICS_PER_NODE} of {_TOPICS:,} topics each, {_EVENTS:,} events")
    return measure(_NODES)


def measure(nodes: int) -> dict[str, float]:
    """The measurements at one number of nodes: Scribe on Chord's fingers has the largest tables."""
    walks = {walk.kind: walk for walk in _walks(nodes)}
    figures = {
        "tables_100k_mb": max(walk.tables_mb for walk in walks.values()),
        "walk_100k_s": walks["ring"].walk_s,
    }
    for kind, walk in walks.items():
        name = kind.replace("-", "_")
        figures |= {f"tables_{name}_mb": walk.tables_mb, f"walk_{name}_s": walk.walk_s}
        figures |= {f"peak_{name}_mb": walk.peak_mb}
    return figures


def _walks(nodes: int) -> Iterator[Walk]:
    """Measure each kind in a separate process, so that its memory is separate, too."""
    for kind in KINDS:
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            walk = process.submit(walk_once, kind, nodes).result()
        print(f"  {walk}", flush=True)
        yield walk


def walk_once(kind: str, nodes: int) -> Walk:
    """Build an overlay of a kind, index its routes, and publish with Scribe."""
    rng = np.random.default_rng(_SEED)
    wanted = draw_interests(nodes, _TOPICS, _TOPICS_PER_NODE, Popularity("uniform"), _SEED)
    interests = make_interests(nodes, _TOPICS, np.column_stack(wanted))
    start_s = time.process_time()
    cls = find_overlay(kind)
    settings = cls.Settings()
    overlay = replace(
        cls.make(interests, settings, rng), kind=kind, settings=msgspec.structs.asdict(settings)
    )
    build_s = time.process_time() - start_s
    tables_mb = _array_mb(overlay, key_routes(overlay))
    publications = draw_publications(interests, _EVENTS, 0, rng)
    start_s = time.process_time()
    counts = find_pubsub("scribe").disseminate(overlay, publications, ScribeSettings())
    walk_s = time.process_time() - start_s
    return Walk(kind, build_s, tables_mb, walk_s, counts.messages, peak_mb())


def _array_mb(*owners: object) -> float:
    """The memory of all arrays of some objects; a shared array counts once."""
    values = (value for owner in owners for value in vars(owner).values())
    arrays = {id(value): value.nbytes for value in values if isinstance(value, np.ndarray)}
    return sum(arrays.values()) / _MB


def peak_mb() -> float:
    """The peak memory of this process."""
    # `getrusage` is no alternative: a process inherits its value from its parent.
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / _MB
