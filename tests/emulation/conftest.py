"""Small real networks for tests; they need root, and are left out without it."""

import os
from collections.abc import Iterator

import pytest

from testbed.emulation.network import EmulatedNetwork
from topologies.underlay import Channel, Host, Link, Router, Underlay


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.geteuid() != 0:
        for item in items:
            if "emulation" in item.path.parts:
                item.add_marker(pytest.mark.skip(reason="needs root: run scripts/test"))


def diamond(**changes: Channel) -> Underlay:
    """Two ways from r1 to r4, the upper one shorter; a host on r1, r4 and r3.

           r2
         /    \\
    h1-r1      r4-h2        `changes` replaces channels of links, by name
         \\    /
           r3-h3
    """
    delays = {
        ("r1", "r2"): 2_000,
        ("r2", "r4"): 3_000,
        ("r1", "r3"): 4_000,
        ("r3", "r4"): 5_000,
        ("h1", "r1"): 500,
        ("h2", "r4"): 700,
        ("h3", "r3"): 600,
    }
    channels = {f"{a}_{b}": Channel(delay) for (a, b), delay in delays.items()} | changes
    links = [
        Link(a, b, channels[name], channels[name])
        for (a, b), name in zip(delays, channels, strict=True)
    ]
    routers = tuple(Router(f"r{number}") for number in (1, 2, 3, 4))
    return Underlay(routers, tuple(links), tuple(Host(f"h{number}") for number in (1, 2, 3)))


@pytest.fixture
def network() -> Iterator[EmulatedNetwork]:
    """The diamond, built."""
    with EmulatedNetwork(diamond()) as built:
        yield built
