"""The forecast of an emulated run: its requirements, from a rehearsal in the simulator.

The same agents, faults and seed send about the same packets there, second by second. The cost of
packets and messages in an emulation was measured once; the busiest second determines by how much
time must be stretched.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agents.agent_spec import AgentSpec
from agents.runtime.packet_notes import CrossingCount
from agents.runtime.simulator import Simulator
from testbed.emulation.capacity import needed_mb
from testbed.experiment.file import Experiment
from testbed.simulation.run import populate
from topologies.underlay import Underlay

# Measured processor time: of the delay line and of the capture for a packet
# on a link, and of the agents for sending and receiving a message. (A packet
# takes the line 5 us on a small network, which fits the processor's caches; the largest does not.)
# The time of netem was not measured; that of the delay line is used.
_LINE_US, _CAPTURE_US, _MESSAGE_US = 15.0, 3.0, 130.0
# At 88 % a third of the packets was late: late packets are sent again, which delays others.
_MOST_BUSY = 0.8
_RARE = 0.01  # share of all packets that may be late
_SCALES = (1, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 40, 60, 80, 100)
# Time to build and remove a network, and to analyse a packet.
_BUILD_S_PER_NODE, _ANALYSIS_S, _ANALYSIS_US = 0.05, 20.0, 20.0
_AGENT_MB, _PROCESS_MB = 1.5, 30.0
# Memory of Spark: without packets, and for each packet up to the limit of Java.
_SPARK_MB, _SPARK_MB_PER_PACKET = 1_000.0, 0.001
_LONGEST_REHEARSAL_S, _STEP_US, _PROGRESS_S = 300.0, 10_000, 5.0


@dataclass(frozen=True, slots=True)
class Load:
    """The load of one second of a run: packets entering links, messages arriving."""

    crossings: int
    messages: int


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine of a run: its cores, and the delay line on one of them if links need it."""

    cores: int
    has_line: bool = True
    has_capture: bool = True

    def line_busy(self, load: Load) -> float | None:
        """The share of one core that the delay line takes for a second of this load."""
        return load.crossings * _LINE_US / 1e6 if self.has_line else None

    def busy(self, load: Load) -> float:
        """The share of all cores that the whole run takes for this load."""
        packet_us = _LINE_US + (_CAPTURE_US if self.has_capture else 0)
        return (load.crossings * packet_us + load.messages * _MESSAGE_US) / 1e6 / self.cores


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The load of each second, the number of packets on links, and the time that was reached."""

    loads: list[Load]
    packets: int
    seconds: float
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Forecast:
    """The duration, memory and busiest second of a run.

    The delay line may be absent, and no time scale may be sufficient.
    """

    time_scale: float
    packets: int
    seconds: float
    memory_gb: float
    line_busy: float | None  # of one core
    machine_busy: float  # of all cores
    enough_time_scale: float | None
    rehearsed_s: float | None  # if it was only a part

    @property
    def is_fine(self) -> bool:
        """Whether the machine can keep up."""
        return max(self.line_busy or 0, self.machine_busy) <= _MOST_BUSY

    def __str__(self) -> str:
        text = (
            f"this will take {_describe_time(self.seconds)} and {self.memory_gb:.1f} GB for "
            f"{self.packets:,} packets on links; in the busiest second {self._describe_busy()}"
        )
        if not self.is_fine:
            text += self._advise()
        if self.rehearsed_s is not None:
            text += f"; based on only the first {self.rehearsed_s:g} s"
        return text

    def _describe_busy(self) -> str:
        be = "will be" if self.is_fine else "would be"
        machine = f"{100 * self.machine_busy:.0f} % busy"
        if self.line_busy is None:
            return f"the machine {be} {machine}"
        return f"the delay line {be} {100 * self.line_busy:.0f} % and the machine {machine}"

    def _advise(self) -> str:
        doubt = f", expected at most {100 * _MOST_BUSY:.0f} %: the times would not be valid; "
        if self.enough_time_scale is None:
            return (
                f"{doubt}no time_scale up to {_SCALES[-1]} is sufficient: use a smaller "
                "network or fewer events"
            )
        return f"{doubt}--set time_scale={self.enough_time_scale:g} is sufficient"


def foresee(
    experiment: Experiment,
    underlay: Underlay,
    specs: list[AgentSpec],
    has_line: bool,
    say: Callable[[str], None],
) -> Forecast:
    """Rehearse an experiment, and forecast its requirements."""
    rehearsal = rehearse(experiment, underlay, specs, say)
    machine = Machine(os.cpu_count() or 1, has_line, experiment.capture != "none")
    busiest, scale = find_busiest(rehearsal.loads, machine), experiment.time_scale
    line_busy = machine.line_busy(busiest)
    packets = round(rehearsal.packets * experiment.duration_s / rehearsal.seconds)
    captured = packets if machine.has_capture else 0
    return Forecast(
        scale,
        packets,
        _needed_s(experiment, underlay, captured),
        max(_needed_mb(experiment, underlay), _analysis_mb(captured)) / 1000,
        None if line_busy is None else line_busy / scale,
        machine.busy(busiest) / scale,
        choose_time_scale(busiest, machine),
        None if rehearsal.is_whole else rehearsal.seconds,
    )


def rehearse(
    experiment: Experiment, underlay: Underlay, specs: list[AgentSpec], say: Callable[[str], None]
) -> Rehearsal:
    """The load of a run on a network without late packets.

    A rehearsal that would take longer than the run, or very long, is stopped early; the rest of its
    last second is assumed to be like its beginning.
    """
    crossings, messages = CrossingCount(), Counter[int]()
    end_us = int(experiment.duration_s * 1e6)
    longest_s = min(_LONGEST_REHEARSAL_S, experiment.duration_s * experiment.time_scale)
    with Simulator(underlay, seed=experiment.seed, notes=crossings) as simulator:
        populate(simulator, experiment, specs)
        start_s = spoken_s = time.monotonic()
        while simulator.now_us < end_us and time.monotonic() - start_s < longest_s:
            second, before = simulator.now_us // 1_000_000, simulator.messages
            simulator.run(min(end_us, simulator.now_us + _STEP_US))
            messages[second] += simulator.messages - before
            if time.monotonic() - spoken_s > _PROGRESS_S:
                spoken_s = time.monotonic()
                say(f"forecast: {simulator.now_us / 1e6:.0f} of {experiment.duration_s:g} s")
    whole, rest_us = divmod(simulator.now_us, 1_000_000)
    counted = [*crossings.by_second, *[0] * (whole + 1)]
    loads = [Load(counted[second], messages[second]) for second in range(whole)]
    if rest_us:
        part = 1_000_000 / rest_us
        loads.append(Load(int(counted[whole] * part), int(messages[whole] * part)))
    is_whole = simulator.now_us == end_us
    return Rehearsal(loads, sum(counted), simulator.now_us / 1e6, is_whole)


def find_busiest(loads: Sequence[Load], machine: Machine) -> Load:
    """The busiest second, without seconds of so few packets that all of them may be late."""
    left = _RARE * sum(load.crossings for load in loads)
    for load in sorted(loads, key=machine.busy, reverse=True):
        left -= load.crossings
        if left < 0:
            return load
    return Load(0, 0)


def choose_time_scale(busiest: Load, machine: Machine) -> float | None:
    """The smallest sufficient time scale; None if none is sufficient."""
    busy = max(machine.line_busy(busiest) or 0, machine.busy(busiest))
    return next((scale for scale in _SCALES if busy <= _MOST_BUSY * scale), None)


def _describe_time(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} s"


def _needed_s(experiment: Experiment, underlay: Underlay, captured: int) -> float:
    nodes = len(underlay.routers) + len(underlay.hosts)
    run_s = experiment.duration_s * experiment.time_scale
    return nodes * _BUILD_S_PER_NODE + run_s + _ANALYSIS_S + captured * _ANALYSIS_US / 1e6


def _needed_mb(experiment: Experiment, underlay: Underlay) -> float:
    hosts = len(underlay.hosts)
    processes = -(-hosts // experiment.agents_per_process)
    network_mb = needed_mb(len(underlay.routers), hosts, len(underlay.links))
    return network_mb + hosts * _AGENT_MB + processes * _PROCESS_MB


def _analysis_mb(captured: int) -> float:
    """The memory of the analysis, which begins after the network is removed."""
    # Imported only for emulated runs.
    from analysis.spark.session import driver_memory_mb

    return _SPARK_MB + min(captured * _SPARK_MB_PER_PACKET, driver_memory_mb())
