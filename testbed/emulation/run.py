"""One emulated run: the network, the agents on it, and what goes wrong in between."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from testbed.emulation.agents import AgentProcesses
from testbed.emulation.network import EmulatedNetwork
from testbed.experiment import Experiment, Fault
from testbed.stage import Casting
from topologies.underlay import Channel, Link, Underlay

_PROGRESS_S = 5.0
_MOST_LATE_SHARE = 0.01
_MOST_MEAN_LAG_US = 5_000

Say = Callable[[str], None]


def emulate(
    experiment: Experiment, underlay: Underlay, castings: list[Casting], folder: Path, say: Say
) -> dict[str, Any]:
    """Run an experiment on a network of namespaces; returns figures for the verdict."""
    stretched = _stretch(underlay, experiment.time_scale)
    say(f"building {len(underlay.routers)} routers and {len(underlay.hosts)} hosts")
    with EmulatedNetwork(stretched, seed=experiment.seed) as network:
        agents = AgentProcesses(network, experiment, castings, folder)
        try:
            say(f"starting {len(castings)} agents, links by {network.link_layer.kind}")
            agents.start()
            _play(experiment, network, agents, say)
            processes = agents.finish()
        finally:
            agents.stop()
        counts = network.counts()
        counts.pop("by_link", None)
        return {"links": {"kind": network.link_layer.kind, **counts}, "processes": processes}


def judge(figures: dict[str, Any]) -> list[str]:
    """What in the figures of an emulated run makes its times doubtful."""
    reasons = []
    links = figures["links"]
    late_share = links.get("late", 0) / max(links["forwarded"], 1)
    if late_share > _MOST_LATE_SHARE:
        reasons.append(
            f"{late_share:.1%} of the packets left a link over 1 ms late, expected at most "
            f"{_MOST_LATE_SHARE:.0%}; use a larger time_scale or a smaller network"
        )
    worst_us = max((process["lag"]["mean_us"] for process in figures["processes"]), default=0)
    if worst_us > _MOST_MEAN_LAG_US:
        reasons.append(
            f"the timers of a process were {worst_us / 1000:.1f} ms late on average, expected at "
            f"most {_MOST_MEAN_LAG_US / 1000:.0f} ms; use a larger time_scale"
        )
    return reasons


def _play(
    experiment: Experiment, network: EmulatedNetwork, agents: AgentProcesses, say: Say
) -> None:
    """Let the run take its course, faults included."""
    origin_s = agents.go() / 1e9
    scale = experiment.time_scale
    faults = sorted(experiment.faults, key=lambda fault: fault.at_s)
    for fault in faults:
        _wait_until(origin_s, fault.at_s, experiment, agents, say)
        say(f"{fault.at_s:g} s: {fault.action} {fault.target}")
        _inflict(fault, network, agents, scale)
    _wait_until(origin_s, experiment.duration_s, experiment, agents, say)


def _wait_until(
    origin_s: float, run_s: float, experiment: Experiment, agents: AgentProcesses, say: Say
) -> None:
    end_s = origin_s + run_s * experiment.time_scale
    while (left_s := end_s - time.monotonic()) > 0:
        time.sleep(min(left_s, _PROGRESS_S))
        agents.check()
        now_s = (time.monotonic() - origin_s) / experiment.time_scale
        if left_s > _PROGRESS_S:
            say(f"{now_s:.0f} of {experiment.duration_s:g} s")


def _inflict(
    fault: Fault, network: EmulatedNetwork, agents: AgentProcesses, time_scale: float
) -> None:
    match fault.action:
        case "kill-agent":
            agents.kill(fault.target)
        case "restart-agent":
            agents.restart(fault.target)
        case "link-down" | "link-up":
            a, b = fault.target.split("-")
            network.set_link(a, b, up=fault.action == "link-up")
        case "router-down" | "router-up":
            network.set_router(fault.target, up=fault.action == "router-up")
        case "delay":
            a, b = fault.target.split("-")
            network.set_delay(a, b, int(fault.delay_us * time_scale))


def _stretch(underlay: Underlay, time_scale: float) -> Underlay:
    """The underlay with all delays longer and all rates lower by a factor."""
    if time_scale == 1:
        return underlay

    def stretch(channel: Channel) -> Channel:
        rate = None if channel.rate_mbit is None else channel.rate_mbit / time_scale
        return replace(channel, delay_us=round(channel.delay_us * time_scale), rate_mbit=rate)

    links = [Link(link.a, link.b, stretch(link.ab), stretch(link.ba)) for link in underlay.links]
    return replace(underlay, links=tuple(links))
