"""Churn: peers that leave and return while events are published, in one of two ways.

- In steps (Tariq, Koldehofe and Rothermel, DEBS 2013, section 6.2.3): after every given number of
  events, a share of the peers leaves.
- One by one: peers crash at a rate, and each returns after a random time.
"""

import math
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from workloads.number_range import NumberRange
from workloads.schedule import Schedule


class ChurnStep(NamedTuple):
    """The time at which an agent fails (`kill-agent`) or returns (`restart-agent`)."""

    at_s: float
    action: str
    host: str


def draw_churn(
    seed: int, hosts: Sequence[str], events: int, schedule: Schedule, share: float, every: int
) -> tuple[ChurnStep, ...]:
    """After every `every` events a share of the hosts leaves, and those that left before return.

    Steps are between two events, so that no peer leaves at the time when it publishes.
    """
    chance = Random(f"{seed}/churn")
    count = round(share * len(hosts))
    away: list[str] = []
    steps: list[ChurnStep] = []
    for published in range(every, events, every) if count else ():
        gone = set(away)
        present = [host for host in hosts if host not in gone]
        leaving = chance.sample(present, min(count, len(present)))
        at_s = schedule.before_s(published)
        steps += [ChurnStep(at_s, "restart-agent", host) for host in away]
        steps += [ChurnStep(at_s, "kill-agent", host) for host in leaving]
        away = leaving
    return tuple(steps)


def draw_crashes(
    seed: int,
    hosts: Sequence[str],
    between_s: tuple[float, float],
    share_per_min: float,
    return_after_s: NumberRange,
) -> tuple[ChurnStep, ...]:
    """A share of the hosts crashes in each minute, and each of them returns some time later.

    There is one crash in each of equal intervals, at a random time within it. A host that is away
    does not crash; if all are away, the crash is left out.
    """
    chance = Random(f"{seed}/crashes")
    start_s, end_s = between_s
    gap_s = 60 / (share_per_min * len(hosts)) if share_per_min else math.inf
    back_s: dict[str, float] = {}  # the time of each crashed host's return
    steps: list[ChurnStep] = []
    for number in range(int((end_s - start_s) / gap_s)):
        at_s = start_s + (number + chance.random()) * gap_s
        present = [host for host in hosts if back_s.get(host, 0.0) < at_s]
        if present:
            host = chance.choice(present)
            back_s[host] = at_s + chance.uniform(*return_after_s)
            steps.append(ChurnStep(at_s, "kill-agent", host))
            steps.append(ChurnStep(back_s[host], "restart-agent", host))
    return tuple(sorted(steps))
