"""The start of the measured window of a run: the time when all running agents are ready.

Events published before are warm-up: they may wait for overlay and trees that are still being built.
A restarted agent does not move the window.
"""

from collections.abc import Mapping

import numpy as np

from analysis.agent_lives import AgentLives
from analysis.agent_records import AgentRecords

NEVER_US = np.iinfo(np.int64).max


def window_start_us(records: AgentRecords, lives: AgentLives, all_started_us: int) -> int | None:
    """The first time, after all agents were to have started, at which all running agents are ready.

    None if no agent recorded that it was ready; `NEVER_US` if they were never ready at the same
    time.
    """
    ready_us = _first_times(records, "ready")
    if not ready_us:
        return None
    started_us = _first_times(records, "agent_started")
    ended_us: dict[str, int] = {}
    for host, end_us in lives.ends:
        ended_us[host] = min(end_us, ended_us.get(host, NEVER_US))
    hosts = sorted(records.last_us())
    return _first_moment(
        np.array([started_us.get(host, 0) for host in hosts]),
        np.array([ready_us.get(host, NEVER_US) for host in hosts]),
        np.array([ended_us.get(host, NEVER_US) for host in hosts]),
        all_started_us,
    )


def _first_times(records: AgentRecords, kind: str) -> Mapping[str, int]:
    frame = records.frame(kind, {})
    return {
        str(host): int(time_us) for host, time_us in frame.groupby("host")["time_us"].min().items()
    }


def _first_moment(
    started_us: np.ndarray, ready_us: np.ndarray, ended_us: np.ndarray, from_us: int
) -> int:
    """The first time of a change at which no running agent is unready."""
    moments = np.unique(np.concatenate([[from_us], ready_us, ended_us]))
    for at_us in moments[(moments >= from_us) & (moments < NEVER_US)]:
        is_running = (started_us <= at_us) & (at_us < ended_us)
        if is_running.any() and (ready_us[is_running] <= at_us).all():
            return int(at_us)
    return NEVER_US
