"""The simulator: exact delays, timers, starts and ends of agents, failed links and detours."""

import random
from typing import Any

import pytest

from agents.agent import Agent
from agents.errors import AgentFailed
from agents.protocol import CancelTimer, Compute, Effects, Protocol, Record, Send, SetTimer
from agents.protocol import Surroundings as Given
from agents.runtime.simulator import Simulator
from testbed.experiment.faults import Fault
from testbed.experiment.file import Experiment
from testbed.run.agents import assign_agents
from testbed.run.underlay import make_underlay
from testbed.simulation.run import populate
from tests.fixtures.scripted import Stage, Word, line, ring
from topologies.errors import TopologyError
from topologies.hosts import attach_hosts, make_asymmetric
from topologies.routes import Routes
from topologies.topology import TopologySettings
from topologies.underlay import Channel, Underlay
from topologies.waxman import generate_waxman


def talk(stage: Stage, *times_us: int, reliable: bool = False) -> Stage:
    """h1 sends a message to h2 at each time, numbered from 0."""
    to = stage.address("h2")
    script = {at_us: [Send(to, Word(n), reliable)] for n, at_us in enumerate(times_us)}
    stage.cast("h1", script)
    stage.cast("h2")
    return stage


def test_a_message_takes_exactly_the_delay_of_its_path() -> None:
    stage = talk(Stage(line()), 10, 5_000).run(10_000)
    assert stage.heard("h2") == [(2_210, 0), (7_200, 1)]


def test_delays_are_true_between_all_hosts_of_an_irregular_network() -> None:
    underlay = make_asymmetric(attach_hosts(generate_waxman(40, seed=3), 8, seed=3), 0.8, seed=3)
    routes, stage = Routes(underlay), Stage(underlay)
    names = [host.name for host in underlay.hosts]
    for a in names:
        others = [b for b in names if b != a]
        words = [Send(stage.address(b), Word(n)) for n, b in enumerate(others)]
        stage.cast(a, {1_000: list(words)})
    stage.run(1_000_000)
    name_of = {stage.address(name): name for name in names}
    found = {(name_of[v["from"]], h): t - 1_000 for t, h, w, v in stage.records if w == "heard"}
    assert found == {(a, b): routes.path_delay_us(a, b) for a in names for b in names if a != b}


def test_timers_expire_and_are_replaced_and_cancelled() -> None:
    stage = Stage(line())
    stage.cast(
        "h1",
        {
            0: [SetTimer("kept", 50), SetTimer("replaced", 60), SetTimer("cancelled", 70)],
            10: [SetTimer("replaced", 100), CancelTimer("cancelled"), CancelTimer("unknown")],
        },
    )
    stage.run(1_000)
    rang = [(row[0], row[3]["name"]) for row in stage.recorded("h1", "rang")]
    assert rang == [(50, "kept"), (110, "replaced")]


def test_records_reach_the_sink_in_order() -> None:
    stage = Stage(line())
    stage.cast("h1", {5: [Record("saw", {"x": 1}), Record("saw", {"x": 2})]})
    stage.run(10)
    assert stage.records[1:] == [(5, "h1", "saw", {"x": 1}), (5, "h1", "saw", {"x": 2})]


def test_a_run_can_be_stopped_and_continued() -> None:
    stage = talk(Stage(line()), 100, 900)
    for until_us in range(0, 10_001, 50):
        stage.simulator.run(until_us)
        assert stage.simulator.now_us == until_us
    assert [time_us for time_us, _ in stage.heard("h2")] == [2_300, 3_100]


class Broken(Protocol):
    def on_timer(self, now_us: int, name: Any) -> Effects:
        raise KeyError(f"{name} at {now_us}")

    def on_start(self, now_us: int) -> Effects:
        return [SetTimer("boom", now_us + 3)]


def test_a_failed_agent_fails_the_run_with_its_name() -> None:
    simulator = Simulator(line())
    simulator.add_agent("h2", lambda: Agent(1, 1, Broken(Given(1, (), random.Random(1)))))
    simulator.start_agent(4, "h2")
    with pytest.raises(AgentFailed, match=r"agent h2 at 0.000011 s: KeyError: 'boom at 11'"):
        simulator.run(100)


class Thinker(Protocol):
    """Requests a sum when it starts, and records the result."""

    def on_start(self, now_us: int) -> Effects:
        return [Compute("sum", sum, ((3, 4),), 250)]

    def on_computed(self, now_us: int, name: Any, result: Any) -> Effects:
        return [Record("computed", {"name": name, "result": result})]


def test_a_computation_takes_the_stated_time_and_ends_with_its_agent() -> None:
    records: list[Any] = []
    simulator = Simulator(line(), record=lambda *row: records.append(row))
    simulator.add_agent("h2", lambda: Agent(1, 1, Thinker(Given(1, (), random.Random(1)))))
    simulator.start_agent(10, "h2")
    simulator.start_agent(100, "h2")  # The first incarnation has ended before the result.
    simulator.run(1_000)
    assert records == [(350, "h2", "computed", {"name": "sum", "result": 7})]


def test_a_failed_computation_fails_the_run() -> None:
    stage = Stage(line())
    stage.cast("h1", {5: [Compute("sum", sum, (("a",),), 1)]})
    with pytest.raises(AgentFailed, match="agent h1 .* unsupported operand"):
        stage.run(10)


def test_a_timer_in_the_past_is_an_internal_error() -> None:
    stage = Stage(line())
    stage.cast("h1", {5: [SetTimer("late", -1)]})
    with pytest.raises(AgentFailed, match="agent h1 .* a timer in the past"):
        stage.run(10)


def test_unknown_nodes_are_refused_at_once() -> None:
    simulator = Simulator(line())
    for wrong in (
        lambda: simulator.start_agent(0, "h9"),
        lambda: simulator.set_link(0, "h1", "r2", up=False),
        lambda: simulator.set_router(0, "h1", up=False),
        lambda: simulator.set_delay(0, "r1", "r3", 5),
    ):
        with pytest.raises(TopologyError):
            wrong()
    simulator.run(100)
    with pytest.raises(ValueError, match="a time to come"):
        simulator.call_at(50, print)


def test_a_killed_agent_receives_nothing_and_a_restarted_one_has_no_state() -> None:
    stage = talk(Stage(line()), *range(0, 100_000, 10_000))
    stage.cast("h2", {85_000: [Record("lived_long")]})
    stage.simulator.kill_agent(25_000, "h2")
    stage.simulator.start_agent(65_000, "h2")
    stage.run(200_000)
    assert [number for _, number in stage.heard("h2")] == [0, 1, 2, 7, 8, 9]
    assert stage.simulator.counts == {"unheard": 4}
    assert [row[0] for row in stage.recorded("h2", "lived_long")] == [150_000]


def test_an_agent_started_by_a_fault_before_its_time_starts_once() -> None:
    experiment = Experiment(
        "early",
        contacts=1,
        start_over_s=8.0,
        topology=TopologySettings(routers=10, hosts=4),
        overlay={"kind": "hello"},
        faults=(Fault(1.0, "restart-agent", "h4"),),  # its own start time would be 6 s
    )
    underlay, rows = make_underlay(experiment), list[Any]()
    simulator = Simulator(underlay, record=lambda *row: rows.append(row))
    populate(simulator, experiment, assign_agents(experiment, underlay, None))
    simulator.run(10_000_000)
    # An agent computes the route to its contact once after each start.
    (looked_us,) = [row[0] for row in rows if row[1:3] == ("h4", "route_inferred")]
    assert 1_000_000 < looked_us < 2_000_000


def test_reliable_messages_survive_loss_and_arrive_once() -> None:
    lossy = Channel(1_000, loss_percent=20)
    for seed in range(5):
        times_us = range(0, 2_000_000, 10_000)
        stage = talk(Stage(line(lossy), seed=seed), *times_us, reliable=True).run(60_000_000)
        numbers = sorted(number for _, number in stage.heard("h2"))
        assert numbers == list(range(200))
        assert stage.simulator.counts["lost"] > 40


def test_a_message_to_a_dead_peer_is_given_up() -> None:
    stage = talk(Stage(line()), 30_000, reliable=True)
    stage.simulator.kill_agent(20_000, "h2")
    stage.run(300_000_000)
    assert [row[3] for row in stage.recorded("h1", "gave_up")] == [
        {"to": stage.address("h2"), "number": 0}
    ]


def test_a_failed_link_loses_packets_on_it_and_later_ones_take_the_detour() -> None:
    stage = talk(Stage(ring()), 0, 900, 1_500, 5_000, 20_000)
    stage.simulator.set_link(2_000, "r2", "r3", up=False)
    stage.simulator.set_link(10_000, "r2", "r3", up=True)
    stage.run(50_000)
    assert stage.heard("h2") == [
        # The first was on the last link and is lost. The second was on its way to r2 and turns back
        # there, to r1 and around. The third has just entered the failed link.
        (900 + 100 + 1_000 + 1_000 + 3_000 + 100, 1),
        (1_500 + 100 + 1_000 + 1_000 + 3_000 + 100, 2),
        (5_000 + 3_200, 3),
        (20_000 + 2_200, 4),
    ]
    assert stage.simulator.counts == {"dead_link": 1}


def test_a_link_that_is_repaired_in_time_loses_nothing() -> None:
    stage = talk(Stage(line()), 0)
    stage.simulator.set_link(500, "r1", "r2", up=False)
    stage.simulator.set_link(600, "r1", "r2", up=True)
    assert stage.run(10_000).heard("h2") == [(2_200, 0)]


def test_a_partitioned_network_drops_and_counts_packets() -> None:
    stage = talk(Stage(line()), 1_000, 3_000, 20_000)
    stage.simulator.set_router(500, "r2", up=False)
    stage.simulator.set_router(10_000, "r2", up=True)
    stage.run(50_000)
    assert stage.heard("h2") == [(22_200, 2)]
    assert stage.simulator.counts == {"no_route": 2}


def test_a_host_without_its_link_cannot_send_or_receive() -> None:
    stage = talk(Stage(line()), 1_000, 8_000, 20_000)
    stage.simulator.set_link(500, "h2", "r3", up=False)
    stage.simulator.set_link(4_000, "h2", "r3", up=True)
    stage.simulator.set_link(7_000, "h1", "r1", up=False)
    stage.simulator.set_link(10_000, "r1", "h1", up=True)
    stage.run(50_000)
    assert stage.heard("h2") == [(22_200, 2)]
    assert stage.simulator.counts == {"no_route": 1, "dead_link": 1}


def test_a_changed_delay_applies_to_later_packets() -> None:
    stage = talk(Stage(ring()), 0, 900, 5_000)
    stage.simulator.set_delay(500, "r2", "r3", 2_500)
    stage.run(50_000)
    # The first is on r1-r2 at this time and continues over the slower link; others go around.
    assert stage.heard("h2") == [(3_700, 0), (4_100, 1), (8_200, 2)]


def test_a_slow_link_queues_and_drops_in_the_simulator_too() -> None:
    slow = Channel(1_000, rate_mbit=1.0, queue_packets=4)
    stage = Stage(line(Channel(1_000), slow))
    words = [Send(stage.address("h2"), Word(number)) for number in range(10)]
    stage.cast("h1", {0: list(words)})
    stage.cast("h2")
    stage.run(100_000)
    sending_us = (28 + 44) * 8  # at 1 Mbit/s
    assert stage.heard("h2") == [(2_200 + sending_us * (n + 1), n) for n in range(5)]
    assert stage.simulator.counts == {"overflowed": 5}


def test_a_packet_on_a_route_longer_than_its_ttl_is_dropped() -> None:
    assert talk(Stage(line(routers=63)), 0).run(1_000_000).heard("h2") == [(62_200, 0)]
    stage = talk(Stage(line(routers=64)), 0).run(1_000_000)
    assert stage.heard("h2") == []
    assert stage.simulator.counts == {"expired": 1}


def test_a_message_to_an_unused_address_is_dropped_where_the_route_ends(tmp_path: Any) -> None:
    underlay: Underlay = line()
    stage = Stage(underlay, tmp_path)
    stage.cast("h1", {0: [Send(stage.address("h2") + 1, Word(0)), Send(1, Word(1))]})
    stage.run(100_000)
    assert stage.simulator.counts == {"no_route": 2}
    links = [row["link"] for row in stage.packets() if row["protocol"] == "udp"]
    assert links == ["h1-r1", "h1-r1", "r1-r2", "r2-r3"]
