"""Example 1 of the paper, from its file: what an overlay along the underlay saves and costs."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq
import pytest

from agents.overlays.given import parse_links
from agents.runtime.packet_log import PacketLog
from agents.runtime.simulator import Simulator
from testbed.experiment.file import Experiment
from testbed.run.agents import assign_agents
from testbed.run.underlay import make_underlay
from testbed.run.workload import make_workload
from testbed.simulation.running_agents import RunningAgents
from testbed.sweeps.file import load_sweep
from tests.fixtures.delivery_oracle import Delivery, account
from topologies.routes import Routes
from workloads.content.generator import DrawnContent
from workloads.content.given import make_given_workload

EXAMPLE = Path(__file__).parents[3] / "experiments" / "example1.toml"


@dataclass(frozen=True)
class Case:
    """The measurements of one overlay of the example."""

    delivery: Delivery
    links_given: set[frozenset[str]]
    links_used: set[frozenset[str]]
    link_messages: int
    in_vain: Mapping[str, int]  # by host
    worst_penalty: float


@cache
def play(label: str, seed: int) -> Case:
    swept = load_sweep(EXAMPLE, {"seed": seed}).experiments
    (wanted,) = (some.experiment for some in swept if some.values["variant"] == label)
    underlay = make_underlay(wanted)
    rows: list[tuple[int, str, str, dict[str, Any]]] = []

    def note(time_us: int, host: str, what: str, values: Mapping[str, Any]) -> None:
        rows.append((time_us, host, what, dict(values)))

    with TemporaryDirectory() as folder:
        packets = Path(folder)
        with Simulator(
            underlay, seed=seed, record=note, notes=PacketLog(packets, underlay)
        ) as simulator:
            workload = make_workload(wanted, underlay)
            running = RunningAgents(wanted, simulator)
            specs = assign_agents(wanted, underlay, workload)
            for spec in specs:
                running.add(spec, starts_by_fault=False)
            simulator.run(int(wanted.duration_s * 1e6))
        carried = pq.read_table(packets / "packets.parquet").to_pylist()
    hosts = tuple(spec.host for spec in specs)
    name = {int(IPv4Address(underlay.address[host])): host for host in hosts}
    delays_us = Routes(underlay).host_delays_us()[hosts.index("p")]
    received = [(t, host, values) for t, host, what, values in rows if what == "event_received"]
    return Case(
        account(workload_of(wanted, hosts), hosts, rows, [], simulator.now_us, 1_000_000),
        set(map(frozenset, parse_links(wanted.overlay["links"]))),
        {frozenset((host, name[values["from"]])) for _, host, values in received},
        sum(bool(packet["event_id"]) for packet in carried),
        Counter(host for _, host, values in received if not values["is_match"]),
        max(
            (time_us - values["published_us"]) / delays_us[hosts.index(host)]
            for time_us, host, values in received
            if values["is_match"]
        ),
    )


def workload_of(wanted: Experiment, hosts: tuple[str, ...]) -> DrawnContent:
    said = wanted.workload
    return make_given_workload(
        said["subscriptions"], "p", wanted.seed, hosts, said["events"], said["attributes"]
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_overlay_along_the_underlay_saves_messages_and_delay_for_few_false_positives(
    seed: int,
) -> None:
    containment, underlay = play("containment", seed), play("underlay", seed)
    assert underlay.link_messages < containment.link_messages
    assert underlay.worst_penalty < 1.25 < 3 < containment.worst_penalty
    assert containment.in_vain == {}
    assert underlay.in_vain.keys() == {"s2"} and underlay.in_vain["s2"] < 20


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("label", ["containment", "underlay"])
def test_every_subscriber_gets_its_events_over_the_given_links(label: str, seed: int) -> None:
    case = play(label, seed)
    assert case.delivery.published == 100
    assert case.delivery.steady.expected > 250 and case.delivery.steady.is_exact
    assert case.delivery.unasked == () and case.delivery.departures == ()
    assert case.links_used == case.links_given
