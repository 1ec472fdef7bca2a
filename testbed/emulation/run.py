"""One emulated run: the network, the agents on it, and faults."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agents.agent_spec import AgentSpec
from testbed.emulation.agents import AgentProcesses
from testbed.emulation.capture import Capture
from testbed.emulation.faults import EmulatedFaults
from testbed.emulation.forecast import foresee
from testbed.emulation.ledger import OtherNetworks
from testbed.emulation.links import DelayLineLinks, choose_links
from testbed.emulation.network import EmulatedNetwork
from testbed.errors import EmulationError
from testbed.experiment.faults import carry_out
from testbed.experiment.file import Experiment
from topologies.underlay import Underlay

_PROGRESS_S = 5.0
_SILENCE_NS = 100_000_000
_SHORTEST_WAIT_S, _LONGEST_STANDSTILL_S = 0.001, 60.0

Say = Callable[[str], None]


def emulate(
    experiment: Experiment, underlay: Underlay, specs: list[AgentSpec], folder: Path, say: Say
) -> dict[str, Any]:
    """Run an experiment on a network of namespaces; returns measurements for the verdict."""
    scale = experiment.time_scale
    stretched = underlay.stretched(scale)
    wanted = None if experiment.links == "best" else experiment.links
    links = choose_links(wanted, experiment.seed).kind
    forecast = foresee(experiment, underlay, specs, links == DelayLineLinks.kind, say)
    say(str(forecast))
    say(f"building {len(underlay.routers):,} routers and {len(underlay.hosts):,} hosts")
    with (
        EmulatedNetwork(stretched, links=links, seed=experiment.seed, time_scale=scale) as network,
        _capture(experiment, network, folder.parent / "captures") as capture,
    ):
        agents = AgentProcesses(network, experiment, specs, folder)
        others = OtherNetworks(network.ledger.run_id)
        try:
            say(f"starting {len(specs):,} agents, links by {network.link_layer.kind}")
            agents.start()
            before, held_ns = _processor_ticks(), network.clock.held_ns
            clock = _play(experiment, network, agents, others, say)
            stolen_share = _stolen_share(before, _processor_ticks())
            held_s = (network.clock.held_ns - held_ns) / 1e9
            if held_s > _PROGRESS_S:
                say(f"the clock of the run paused for {held_s:.0f} s, as links were behind")
            processes = agents.finish()
        finally:
            agents.stop()
        captured = _finish(capture, network) if capture else {}
        return {
            "links": {"kind": network.link_layer.kind, **_sums(network)},
            "processes": processes,
            "clock": clock | {"realtime_offset_end_ns": _realtime_offset_ns()},
            "held_s": held_s,
            "stolen_share": stolen_share,
            "run_id": network.ledger.run_id,
            "other_networks": others.names,
            "forecast": asdict(forecast),
            **captured,
        }


def _capture(
    experiment: Experiment, network: EmulatedNetwork, folder: Path
) -> AbstractContextManager[Capture | None]:
    if experiment.capture == "none":
        return nullcontext()
    return Capture(network, folder, experiment.capture, experiment.capture_max_mb)


def _finish(capture: Capture, network: EmulatedNetwork) -> dict[str, Any]:
    """End the capture when no packet is under way any more; returns its measurements.

    Of them, `vanished` is the number of packets that were sent into links and that the links
    neither carried nor dropped.
    """
    longest_us = int(network.routes.host_delays_us().max())
    silence_ns = 2 * longest_us * 1_000 + _SILENCE_NS  # the path, and perhaps an error back
    for _ in _waits(network, network.clock.now_ns() + silence_ns):
        pass
    sums = _sums(network)
    captured = capture.finish()
    known = sums["forwarded"]
    if (
        network.link_layer.kind == "delay-line"
    ):  # with netem, packets are captured as they leave the link
        known += sums["lost"] + sums["overflowed"] + sums["refused"]
    captured["vanished"] = captured["packets"] + captured["dropped"] - known
    return {"capture": captured}


def _sums(network: EmulatedNetwork) -> dict[str, Any]:
    counts = network.counts()
    counts.pop("by_link", None)
    return counts


def _processor_ticks() -> tuple[int, int]:
    """The processor time stolen by the host of this virtual machine so far, and the total."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split()[1:9]]
    return ticks[-1], sum(ticks)


def _stolen_share(before: tuple[int, int], after: tuple[int, int]) -> float:
    return (after[0] - before[0]) / max(after[1] - before[1], 1)


def _realtime_offset_ns() -> int:
    """The current difference of the captures' clock from the clock of the run."""
    before, realtime, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
    return realtime - (before + after) // 2


def _play(
    experiment: Experiment,
    network: EmulatedNetwork,
    agents: AgentProcesses,
    others: OtherNetworks,
    say: Say,
) -> dict[str, int]:
    """Wait until the end of the run, and carry out faults; returns its start and its clock."""
    others.look()
    origin_ns = agents.go()
    clock = {"origin_ns": origin_ns, "realtime_offset_ns": _realtime_offset_ns()}
    scale = experiment.time_scale
    faults = EmulatedFaults(network, agents, scale)

    def wait_until(run_s: float) -> None:
        for now_ns in _waits(network, origin_ns + int(run_s * scale * 1e9)):
            agents.check()
            others.look()
            say(f"{(now_ns - origin_ns) / 1e9 / scale:.0f} of {experiment.duration_s:g} s")
        agents.check()

    for fault in sorted(experiment.faults, key=lambda fault: fault.at_s):
        wait_until(fault.at_s)
        say(f"{fault.at_s:g} s: {fault.action} {fault.target}")
        carry_out(faults, fault)
    wait_until(experiment.duration_s)
    others.look()
    return clock


def _waits(network: EmulatedNetwork, end_ns: int) -> Iterator[int]:
    """Wait for a time on the network's clock; yields the current time now and then."""
    now_ns, moved_s = network.clock.now_ns(), time.monotonic()
    while (left_s := (end_ns - now_ns) / 1e9) > 0:
        time.sleep(min(max(left_s, _SHORTEST_WAIT_S), _PROGRESS_S))
        before_ns, now_ns = now_ns, network.clock.now_ns()
        if now_ns > before_ns:
            moved_s = time.monotonic()
        elif time.monotonic() - moved_s > _LONGEST_STANDSTILL_S:
            network.counts()  # raises if the links have ended
            raise EmulationError(
                f"links: expected them to carry packets, found that they paused for "
                f"{_LONGEST_STANDSTILL_S:.0f} s; use a smaller network"
            )
        if left_s > _PROGRESS_S:
            yield now_ns
