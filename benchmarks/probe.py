"""Correctness and speed of inferred routes, compared with traceroute and scamper.

Every tool probes the same pairs on the same network, in several rounds:
- `traceroute -n` with its defaults, one target after another on each host;
- one scamper on each host with its list of targets (`trace`, which is UDP Paris, at 1,000 packets
  per second);
- one of our agents on each host, all in one process, and each in its own process.

The hosts probe at the same time. Our agents run before the measurement starts, as in an experiment;
the time of the other tools includes their start. The fastest round of each tool counts, because
other programs on the machine can only slow it down.

Ten hosts that probe at full speed overload the delay line on a slow machine. Our agents therefore
measure round trips as in an experiment, with the links' clock, which pauses while the links are
late. Total times are wall-clock times. The output states for each tool the share of late packets by
the links' clock, and the duration of the pauses.
"""

import json
import random
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

from agents.probing.route import Route
from agents.probing.route_probe import RouteProbe
from agents.runtime.probe_sockets import Prober, monotonic_us, run_probers
from testbed.commands.privileges import require_root
from testbed.emulation.network import EmulatedNetwork
from testbed.errors import EmulationError
from topologies.hosts import attach_hosts
from topologies.waxman import generate_waxman

_SEED = 1
_ROUTERS, _HOSTS = 300, 100
_SOURCES, _TARGETS = 10, 20
_ROUNDS = 7
_TRACEROUTES = 'for target in "$@"; do traceroute -n "$target"; done'
_SCAMPER = ("scamper", "-O", "json", "-p", "1000", "-c", "trace")
_HEADING = re.compile(r"traceroute to ([\d.]+) ")
_HOP = re.compile(r" *\d+  ([\d.]+|\*)")
_TIME = re.compile(r"([\d.]+) ms")

Pair = tuple[str, str]
Plan = Mapping[str, list[str]]  # addresses to probe, by host


@dataclass(frozen=True, slots=True)
class Seen:
    """The result of a tool for a pair: the hops, and the round trip to the last hop."""

    hops: list[str]
    round_trip_ms: float


Found = dict[Pair, Seen]  # by the name of the source and the address of the target
Tool = Callable[[EmulatedNetwork, Plan], tuple[float, Found]]


def run() -> dict[str, float]:
    """Print the routes and the time of each tool, and return the measurements."""
    require_root("bench probe")
    _check_tools()
    underlay = attach_hosts(generate_waxman(_ROUTERS, seed=_SEED), _HOSTS, seed=_SEED)
    with EmulatedNetwork(underlay) as network:
        print(
            f"{_ROUTERS} routers, {_HOSTS} hosts, {network.link_layer.kind}; "
            f"from {_SOURCES} hosts to {_TARGETS} others each, {_ROUNDS} rounds"
        )
        plan = _plan(network)
        true = _true_routes(network, plan)
        rounds = [_round(network, plan, true) for _ in range(_ROUNDS)]
    return _figures(true, rounds)


def _check_tools() -> None:
    missing = [tool for tool in ("traceroute", "scamper") if shutil.which(tool) is None]
    if missing:
        raise EmulationError(
            f"bench probe: expected traceroute and scamper to compare with, found no "
            f"{' and no '.join(missing)}; run: apt-get install -y {' '.join(missing)}"
        )
    # Ten instances of scamper would create this directory at once, and nine of them would fail.
    Path("/var/empty").mkdir(exist_ok=True)


def _plan(network: EmulatedNetwork) -> Plan:
    chance = random.Random(_SEED)
    names = [host.name for host in network.hosts]
    address = network.underlay.address
    return {
        source: [address[one] for one in chance.sample([n for n in names if n != source], _TARGETS)]
        for source in chance.sample(names, _SOURCES)
    }


def _true_routes(network: EmulatedNetwork, plan: Plan) -> dict[Pair, list[str]]:
    underlay = network.underlay
    return {
        (source, target): [
            underlay.address[node]
            for node in network.routes.path(source, underlay.name_at[target])[1:]
        ]
        for source, targets in plan.items()
        for target in targets
    }


def _round(
    network: EmulatedNetwork, plan: Plan, true: Mapping[Pair, list[str]]
) -> dict[str, tuple[float, Found]]:
    """Run each tool once; returns its time and its result."""
    results = {}
    for name, tool in _TOOLS.items():
        before = network.counts()
        duration_s, found = tool(network, plan)
        late = _describe_late(before, network.counts())
        equal = sum(found[pair].hops == hops for pair, hops in true.items())
        print(f"  {name:20} {duration_s:7.3f} s, {equal} of {len(true)} true{late}", flush=True)
        results[name] = (duration_s, found)
    return results


def _describe_late(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Describe how late packets were since the last call; netem does not count late packets.

    Packets that waited while the delay line's clock paused were late for tools with other clocks.
    """
    if "late" not in after:
        return ""
    share = (after["late"] - before["late"]) / max(after["forwarded"] - before["forwarded"], 1)
    held_ms = 1000 * (after["held_s"] - before["held_s"])
    return f", {100 * share:.2f} % of packets late, links held up for {held_ms:.0f} ms"


def _traceroute(network: EmulatedNetwork, plan: Plan) -> tuple[float, Found]:
    commands = {s: ["sh", "-c", _TRACEROUTES, "sh", *targets] for s, targets in plan.items()}
    duration_s, shown = _run_on_hosts(network, commands)
    return duration_s, {
        (source, target): seen
        for source, text in shown.items()
        for target, seen in _parse_traceroutes(text).items()
    }


def _parse_traceroutes(text: str) -> dict[str, Seen]:
    """The routes in traceroute's output: first answer of each hop, fastest of the last."""
    found: dict[str, Seen] = {}
    headings = list(_HEADING.finditer(text))
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    for heading, end in zip(headings, ends, strict=True):
        lines = text[heading.end() : end].splitlines()[1:]
        hops = [match[1] for line in lines if (match := _HOP.match(line))]
        times = [float(ms) for ms in _TIME.findall(lines[-1])] if lines else []
        found[heading[1]] = Seen(hops, min(times, default=0.0))
    return found


def _scamper(network: EmulatedNetwork, plan: Plan) -> tuple[float, Found]:
    with tempfile.TemporaryDirectory() as folder:
        commands = {}
        for source, targets in plan.items():
            listed = Path(folder, source)
            listed.write_text("".join(f"{target}\n" for target in targets))
            commands[source] = [*_SCAMPER, "-f", str(listed)]
        duration_s, shown = _run_on_hosts(network, commands)
    return duration_s, {
        (source, record["dst"]): _parse_scamper(record)
        for source, text in shown.items()
        for record in map(json.loads, text.splitlines())
        if record["type"] == "trace"
    }


def _parse_scamper(record: dict[str, Any]) -> Seen:
    answers = {hop["probe_ttl"]: hop for hop in record.get("hops", [])}
    hops = [
        answers[t]["addr"] if t in answers else "*" for t in range(1, max(answers, default=0) + 1)
    ]
    return Seen(hops, answers[len(hops)]["rtt"] if hops else 0.0)


def _run_on_hosts(
    network: EmulatedNetwork, commands: Mapping[str, list[str]]
) -> tuple[float, dict[str, str]]:
    """Run commands on all hosts; returns the total time and the output of each command."""
    start_s = time.perf_counter()
    running = {host: network[host].popen(argv, text=True) for host, argv in commands.items()}
    printed = {host: process.communicate() for host, process in running.items()}
    duration_s = time.perf_counter() - start_s
    for host, process in running.items():
        if process.returncode != 0:
            raise EmulationError(
                f"{host}: {commands[host][0]} exited {process.returncode}: {printed[host][1]}"
            )
    return duration_s, {host: out for host, (out, _) in printed.items()}


def _ours(network: EmulatedNetwork, plan: Plan) -> tuple[float, Found]:
    """Probe with the agents of all hosts in one process."""
    probers = []
    for source in plan:
        with network.inside(source):
            probers.append(Prober(RouteProbe, held=network.clock))
    start_s = time.perf_counter()
    for prober, targets in zip(probers, plan.values(), strict=True):
        for target in targets:
            prober.probe(monotonic_us(), int(IPv4Address(target)))
    results = run_probers(probers)
    duration_s = time.perf_counter() - start_s
    for prober in probers:
        prober.close()
    return duration_s, {
        (source, str(IPv4Address(route.target))): _seen(route)
        for source, routes in zip(plan, results, strict=True)
        for route in routes
    }


def _seen(route: Route) -> Seen:
    round_trips_us = route.hops[-1].round_trips_us
    return Seen([_dotted(hop.address) for hop in route.hops], round_trips_us[0] / 1000)


def _ours_in_processes(network: EmulatedNetwork, plan: Plan) -> tuple[float, Found]:
    """Probe with a process for each host's agent."""
    command = [sys.executable, "-m", "benchmarks.probe_agent"]
    if network.link_layer.clock_path is not None:
        command.append(network.link_layer.clock_path)
    running: dict[str, Popen[str]] = {
        source: network[source].popen(command, text=True, stdin=PIPE) for source in plan
    }
    try:
        for process in running.values():
            _pipes(process)[1].readline()
        start_s = time.perf_counter()
        for source, process in running.items():
            stdin, _ = _pipes(process)
            stdin.write(" ".join(plan[source]) + "\n")
            stdin.flush()
        answers = {source: _pipes(process)[1].readline() for source, process in running.items()}
        duration_s = time.perf_counter() - start_s
    finally:
        for process in running.values():
            process.communicate()
    return duration_s, {
        (source, str(IPv4Address(target))): Seen([*map(_dotted, hops)], round_trips_us[0] / 1000)
        for source, answer in answers.items()
        for target, hops, round_trips_us in json.loads(answer)
    }


def _pipes(process: Popen[str]) -> tuple[Any, Any]:
    return process.stdin, process.stdout


def _dotted(address: int | None) -> str:
    return "*" if address is None else str(IPv4Address(address))


_TOOLS: dict[str, Tool] = {
    "traceroute": _traceroute,
    "scamper": _scamper,
    "ours": _ours,
    "ours, process a host": _ours_in_processes,
}


def _figures(
    true: Mapping[Pair, list[str]], rounds: list[dict[str, tuple[float, Found]]]
) -> dict[str, float]:
    """The measurements: times of the fastest rounds, and routes that are equal in all rounds."""
    time_s = {name: min(one[name][0] for one in rounds) for name in _TOOLS}
    kinds = ("ours", "ours, process a host")
    return {
        "routes_checked": len(true),
        "routes_equal_truth": sum(
            all(one[kind][1][pair].hops == hops for one in rounds for kind in kinds)
            for pair, hops in true.items()
        ),
        "routes_equal_traceroute": _equal_to("traceroute", true, rounds),
        "routes_equal_scamper": _equal_to("scamper", true, rounds),
        "speedup_vs_traceroute": time_s["traceroute"] / time_s["ours"],
        "speedup_vs_scamper": time_s["scamper"] / time_s["ours"],
        "processes_speedup_vs_traceroute": time_s["traceroute"] / time_s[kinds[1]],
        "processes_speedup_vs_scamper": time_s["scamper"] / time_s[kinds[1]],
        "rtt_difference_traceroute": _rtt_difference("traceroute", true, rounds),
        "rtt_difference_scamper": _rtt_difference("scamper", true, rounds),
        "ours_s": time_s["ours"],
        "ours_process_a_host_s": time_s[kinds[1]],
        "traceroute_s": time_s["traceroute"],
        "scamper_s": time_s["scamper"],
    }


def _equal_to(
    tool: str, true: Mapping[Pair, list[str]], rounds: list[dict[str, tuple[float, Found]]]
) -> int:
    return sum(
        all(one["ours"][1][pair].hops == one[tool][1][pair].hops for one in rounds) for pair in true
    )


def _rtt_difference(
    tool: str, true: Mapping[Pair, list[str]], rounds: list[dict[str, tuple[float, Found]]]
) -> float:
    """The median over pairs of the relative difference of our round trip from another tool's.

    The round trip of a pair is the shortest of all rounds, because other programs only delay it.
    """

    def round_trip_ms(name: str, pair: Pair) -> float:
        return min(one[name][1][pair].round_trip_ms for one in rounds)

    return statistics.median(
        abs(round_trip_ms("ours", pair) / round_trip_ms(tool, pair) - 1) for pair in true
    )
