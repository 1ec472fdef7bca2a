"""Topics: drawing interests of many peers, offline overlays, and agents in the simulator."""

import time

from benchmarks import greedy_overlays, offline_overlays, topic_agents
from workloads.topics.interests import draw_interests
from workloads.topics.popularity import Popularity, Shape

_SEED, _REPEATS = 1, 3
_TOPICS, _TOPICS_PER_PEER = 2_000, 20
_MANY = 100_000
_SIZES = (12_500, 25_000, 50_000, _MANY)
_SHAPES: tuple[Shape, ...] = ("uniform", "zipf", "exponential")


def run() -> dict[str, float]:
    """Print processor times, and return the measurements."""
    print(
        f"interests: {_TOPICS_PER_PEER} of {_TOPICS:,} topics for each peer, one core, processor "
        f"time in s, the best of {_REPEATS}"
    )
    for peers in _SIZES:
        spent_s = {shape: _draw_s(peers, shape) for shape in _SHAPES}
        words = ", ".join(f"{shape} {seconds:.2f}" for shape, seconds in spent_s.items())
        print(f"  {peers:7,} peers: {words}", flush=True)
    interests_s = max(spent_s.values())  # the time for the largest number of peers
    parts = (offline_overlays, greedy_overlays, topic_agents)
    figures = {name: value for part in parts for name, value in part.run().items()}
    return {"interests_100k_s": interests_s, **figures}


def _draw_s(peers: int, shape: Shape) -> float:
    return min(_draw_once_s(peers, shape) for _ in range(_REPEATS))


def _draw_once_s(peers: int, shape: Shape) -> float:
    start_s = time.process_time()
    drawn = draw_interests(peers, _TOPICS, _TOPICS_PER_PEER, Popularity(shape), _SEED)
    spent_s = time.process_time() - start_s
    if len(drawn.peer) != peers * _TOPICS_PER_PEER:
        raise AssertionError(f"expected {_TOPICS_PER_PEER} topics a peer, found {len(drawn.peer)}")
    return spent_s
