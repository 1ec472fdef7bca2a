"""Baselines whose targets are chosen before the run with knowledge of the whole network (section
6.1 of Tariq, Koldehofe and Rothermel, DEBS 2013): random peers, the nearest, or the farthest.
"""

from collections.abc import Mapping, Sequence
from random import Random

from agents.protocol import WholeNetwork, draw_others


def choose_given_targets(
    heuristic: str, count: int, whole: WholeNetwork
) -> Mapping[int, Sequence[int]]:
    """The targets of each peer by number; empty for a heuristic that finds targets itself."""
    if heuristic == "tarrand":
        chance = Random(f"{whole.seed}/targets")
        return {peer: draw_others(chance, peer, whole.peers, count) for peer in range(whole.peers)}
    ranked = {"nearest": whole.nearest, "farthest": whole.farthest}.get(heuristic)
    return dict(enumerate(ranked(count))) if ranked is not None else {}
