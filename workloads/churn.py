"""Peers that come and go while events are published (Tariq, Koldehofe and Rothermel, DEBS 2013,
section 6.2.3): churn is introduced after every so many events, relative to the number of peers.
"""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple


class ChurnStep(NamedTuple):
    """A fault: when, `kill-agent` or `restart-agent`, and the host."""

    at_s: float
    action: str
    host: str


def churn_plan(
    seed: int,
    hosts: Sequence[str],
    events: int,
    rate_per_s: float,
    share: float,
    every: int,
    start_s: float = 0.0,
) -> list[ChurnStep]:
    """After every so many events a share of the hosts leaves, and those that left before return.

    The first event is at `start_s`. Steps lie between two events, so that no peer leaves in the
    moment when it publishes.
    """
    chance = Random(f"{seed}/churn")
    count = round(share * len(hosts))
    away: list[str] = []
    steps: list[ChurnStep] = []
    for published in range(every, events, every) if count else ():
        at_s = start_s + (published - 0.5) / rate_per_s
        present = [host for host in hosts if host not in set(away)]
        leaving = chance.sample(present, min(count, len(present)))
        steps += [ChurnStep(at_s, "restart-agent", host) for host in away]
        steps += [ChurnStep(at_s, "kill-agent", host) for host in leaving]
        away = leaving
    return steps
