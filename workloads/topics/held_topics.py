"""Holders of topics at a time: the subscribers of a topic, or the peers that may publish to it."""

import numpy as np
from numpy.typing import NDArray

from workloads.workload import Interests, Numbers


class HeldTopics:
    """Interests by topic, with queries for many topics and times at once."""

    def __init__(self, rows: Interests, topics: int) -> None:
        order = np.argsort(rows.content, kind="stable")
        self._peer, self._from_us = rows.peer[order], rows.from_us[order]
        self._until_us = rows.until_us[order]
        self.sizes = np.bincount(rows.content, minlength=topics)  # over all times
        self._first = np.cumsum(self.sizes) - self.sizes
        self._times = np.unique(np.concatenate((rows.from_us, rows.until_us)))
        self._begins = self._sort(rows.content, rows.from_us)
        self._ends = self._sort(rows.content, rows.until_us)

    def count(self, topic: Numbers, time_us: Numbers) -> Numbers:
        """The number of peers that hold each topic at its time."""
        return self._until(self._begins, topic, time_us) - self._until(self._ends, topic, time_us)

    def draw(self, topic: Numbers, time_us: Numbers, chance: np.random.Generator) -> Numbers:
        """A random peer that holds each topic at its time, all equally likely."""
        row = np.zeros(len(topic), dtype=np.int64)
        left = np.arange(len(topic))
        while len(left):
            within = (chance.random(len(left)) * self.sizes[topic[left]]).astype(np.int64)
            row[left] = self._first[topic[left]] + within
            left = left[~self._is_held(row[left], time_us[left])]
        return self._peer[row]

    def _is_held(self, row: Numbers, time_us: Numbers) -> NDArray[np.bool_]:
        held: NDArray[np.bool_] = (self._from_us[row] <= time_us) & (time_us < self._until_us[row])
        return held

    def _sort(self, topic: Numbers, time_us: Numbers) -> Numbers:
        """Numbers that sort by topic and then by time."""
        return np.sort(self._key(topic, np.searchsorted(self._times, time_us)))

    def _key(self, topic: Numbers, time_rank: Numbers) -> Numbers:
        return topic * (len(self._times) + 1) + time_rank

    def _until(self, keys: Numbers, topic: Numbers, time_us: Numbers) -> Numbers:
        """The number of sorted times of a topic up to a time."""
        rank = np.searchsorted(self._times, time_us, side="right")
        last = np.searchsorted(keys, self._key(topic, rank))
        return last - np.searchsorted(keys, self._key(topic, np.zeros_like(topic)))
