"""Interests that change during a run: a peer gives up a topic and takes another."""

import numpy as np
from numpy.typing import NDArray

from workloads.share import NEVER_US
from workloads.topics.interests import Wanted
from workloads.workload import Interests, Numbers, lasting_interests


def change_interests(
    wanted: Wanted, chances: NDArray[np.float64], times_us: Numbers, chance: np.random.Generator
) -> Interests:
    """Interests of which a random one of those held is replaced at each of the times.

    The new topic is drawn by popularity from those that the peer does not have. A peer that has
    all topics keeps them.
    """
    if not len(times_us) or not len(wanted.peer):
        return lasting_interests(wanted.peer, wanted.topic)
    rows = [(*pair, 0) for pair in zip(wanted.peer.tolist(), wanted.topic.tolist(), strict=True)]
    until_us = [NEVER_US] * len(rows)
    held: dict[int, set[int]] = {}
    for peer, topic, _ in rows:
        held.setdefault(peer, set()).add(topic)
    current = list(range(len(rows)))
    for at_us in times_us.tolist():
        place = int(chance.integers(len(current)))
        peer, topic, _ = rows[current[place]]
        if len(held[peer]) == len(chances):
            continue
        other = _draw_other(chances, held[peer], chance)
        held[peer] = held[peer] - {topic} | {other}
        until_us[current[place]] = at_us
        current[place] = len(rows)
        rows.append((peer, other, at_us))
        until_us.append(NEVER_US)
    peers, topics, from_us = np.array(rows, dtype=np.int64).T
    return Interests(peers, topics, from_us, np.array(until_us, dtype=np.int64))


def _draw_other(chances: NDArray[np.float64], held: set[int], chance: np.random.Generator) -> int:
    weights = chances.copy()
    weights[list(held)] = 0
    return int(chance.choice(len(weights), p=weights / weights.sum()))
