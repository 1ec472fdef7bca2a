"""Contacts at the start of agents: how they are drawn, and that the time is linear in the peers."""

import time
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from agents.overlays.random_walk.given_targets import choose_given_targets
from agents.protocol import WholeNetwork, draw_others
from testbed.experiment.file import experiment_from_dict
from testbed.run.agents import assign_agents, choose_contacts
from topologies.hosts import attach_hosts
from topologies.overlays.small_world import plan_fingers
from topologies.waxman import generate_waxman
from workloads.kinds import draw_workload


def none_asked(count: int) -> Any:
    raise AssertionError(f"nobody asks for {count} peers by their delay")


def network(peers: int) -> WholeNetwork:
    return WholeNetwork(1, peers, none_asked, none_asked)


@pytest.mark.parametrize("peers", [1, 2, 5, 40, 500])
@pytest.mark.parametrize("count", [1, 3, 10])
def test_others_are_drawn_as_from_a_list(peers: int, count: int) -> None:
    for me in range(0, peers, 7):
        others = [number for number in range(peers) if number != me]
        expected = Random(me).sample(others, min(count, len(others)))
        assert draw_others(Random(me), me, peers, count) == expected


def test_a_peer_knows_earlier_peers_and_the_first_know_each_other() -> None:
    contacts = choose_contacts(seed=1, peers=50, count=3)
    assert [sorted(known) for known in contacts[:4]] == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]
    for number, known in enumerate(contacts[4:], start=4):
        assert len(set(known)) == 3 and max(known) < number
    assert choose_contacts(seed=1, peers=1, count=3) == [[]]
    assert choose_contacts(seed=1, peers=3, count=5)[2] in ([0, 1], [1, 0])


@pytest.mark.parametrize("fingers", ["greedy", "chord"])
def test_peers_of_a_planned_overlay_get_their_own_rows(fingers: str) -> None:
    document = {
        "name": "planned",
        "seed": 4,
        "overlay": {"kind": "small-world", "fingers": fingers},
        "pubsub": {"kind": "topic-flood"},
        "workload": {"kind": "topics-zipf", "topics": 9, "topics_per_peer": 3},
    }
    experiment = experiment_from_dict(document, "planned")
    underlay = attach_hosts(generate_waxman(8, seed=1), 12, seed=1)
    hosts = [host.name for host in underlay.hosts]
    workload = draw_workload(experiment.workload, experiment.seed, hosts)
    specs = assign_agents(experiment, underlay, workload)
    wanted = [{one.content for one in spec.workload.interests} for spec in specs]
    rows = plan_fingers(wanted, "greedy", "floor", 4) if fingers == "greedy" else [[]] * 12
    assert [list(spec.plan) for spec in specs] == rows
    assert [spec.surroundings(1, {}).plan for spec in specs] == [spec.plan for spec in specs]


def seconds(do: Callable[[], object]) -> float:
    start_s = time.process_time()
    do()
    return time.process_time() - start_s


@pytest.mark.parametrize(
    "choose",
    [
        lambda peers: choose_contacts(1, peers, 3),
        lambda peers: choose_given_targets("tarrand", 10, network(peers)),
    ],
    ids=["contacts", "tarrand"],
)
def test_eight_times_the_peers_take_about_eight_times_as_long(
    choose: Callable[[int], object],
) -> None:
    few_s = min(seconds(lambda: choose(2_500)) for _ in range(3))
    many_s = min(seconds(lambda: choose(20_000)) for _ in range(3))
    assert many_s < 24 * few_s  # It would be 64 times if all earlier peers were listed for each.
