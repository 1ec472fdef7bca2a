"""Peers that come and go while events are published (Tariq, Koldehofe and Rothermel, DEBS 2013,
section 6.2.3): churn is introduced after every so many events, relative to the number of peers.
"""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from workloads.schedule import Schedule


class ChurnStep(NamedTuple):
    """When an agent leaves without a word (`kill-agent`) or comes back (`restart-agent`)."""

    at_s: float
    action: str
    host: str


def draw_churn(
    seed: int, hosts: Sequence[str], events: int, schedule: Schedule, share: float, every: int
) -> tuple[ChurnStep, ...]:
    """After every so many events a share of the hosts leaves, and those that left before return.

    Steps lie between two events, so that no peer leaves in the moment when it publishes.
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
