"""Faults on a network: partitions become failed links, and unknown targets are refused."""

import pytest

from testbed.errors import ExperimentError
from testbed.experiment.faults import Fault, name_agents, plan_faults
from topologies.underlay import Host, Link, Router, Underlay


@pytest.fixture
def square() -> Underlay:
    """r1 to r4 in a ring with the diagonal r1-r3, and a host at each of r1 and r3."""
    ring = [("r1", "r2"), ("r2", "r3"), ("r3", "r4"), ("r4", "r1"), ("r1", "r3")]
    links = [Link.symmetric(a, b, 10) for a, b in (*ring, ("h1", "r1"), ("h2", "r3"))]
    routers = tuple(Router(f"r{n}") for n in range(1, 5))
    return Underlay(routers, tuple(links), (Host("h1"), Host("h2")))


def test_a_partition_fails_every_link_across_it(square: Underlay) -> None:
    planned = plan_faults([Fault(5, "partition", "r1 r2"), Fault(9, "heal", "r1 r2")], square)
    across = ["r2-r3", "r4-r1", "r1-r3"]
    assert planned == [
        *(Fault(5, "link-down", name) for name in across),
        *(Fault(9, "link-up", name) for name in across),
    ]


@pytest.mark.parametrize(
    ("action", "target", "expected", "found"),
    [
        ("partition", "r1 r9", "some of the routers", "'r9'"),
        ("partition", "", "some of the routers", "0 of 4"),
        ("heal", "r1 r2 r3 r4", "not all", "4 of 4"),
        ("router-down", "h1", "a router", "'h1'"),
        ("kill-agent", "r1", "an agent", "'r1'"),
        ("delay", "r2-r4", "a link", "'r2-r4'"),
    ],
)
def test_an_unknown_target_is_named(
    square: Underlay, action: str, target: str, expected: str, found: str
) -> None:
    with pytest.raises(ExperimentError) as raised:
        plan_faults([Fault(1, "link-down", "r1-r2"), Fault(1, action, target)], square)
    said = str(raised.value)
    assert said.startswith("fault[1].target") and expected in said and found in said


def test_the_lowest_address_is_that_of_a_running_agent(square: Underlay) -> None:
    kills = [Fault(at_s, "kill-agent", "lowest-address") for at_s in (1, 3, 5)]
    churn = [Fault(2, "restart-agent", "h1"), Fault(4, "restart-agent", "h1")]
    planned = plan_faults(kills, square)
    named = name_agents([*planned, *churn], square)
    assert [(fault.at_s, fault.target) for fault in named] == [
        (1, "h1"), (2, "h1"), (3, "h1"), (4, "h1"), (5, "h1"),
    ]  # fmt: skip
    assert [fault.target for fault in name_agents(planned[:2], square)] == ["h1", "h2"]
    with pytest.raises(ExperimentError, match="runs at 5 s, found none"):
        name_agents(planned, square)
    with pytest.raises(ExperimentError, match="found 'lowest-address'"):
        plan_faults([Fault(1, "restart-agent", "lowest-address")], square)
