"""The model of an underlay: derived values, and invalid underlays."""

import json
from pathlib import Path
from typing import Any

import pytest

from topologies.errors import TopologyError
from topologies.underlay import Channel, Host, Link, Router, Underlay
from topologies.underlay_file import (
    load_underlay,
    save_underlay,
    underlay_from_json,
    underlay_to_json,
)


def star(hosts: int) -> Underlay:
    links = tuple(Link.symmetric(f"h{n + 1}", "r1", 100) for n in range(hosts))
    return Underlay((Router("r1"),), links, tuple(Host(f"h{n + 1}") for n in range(hosts)))


def line(routers: int) -> Underlay:
    links = tuple(Link.symmetric(f"r{n}", f"r{n + 1}", 100) for n in range(1, routers))
    return Underlay(tuple(Router(f"r{n + 1}") for n in range(routers)), links)


def test_addresses_are_readable() -> None:
    underlay = line(1640)
    assert underlay.address["r1"] == "10.0.1.1"
    assert underlay.address["r1640"] == "10.16.40.1"
    assert underlay.network("r1640") == "10.16.40.0/24"
    assert underlay.name_at["10.16.40.1"] == "r1640"


def test_hosts_share_the_network_of_their_router() -> None:
    assert star(3).address == {
        "r1": "10.0.1.1",
        "h1": "10.0.1.2",
        "h2": "10.0.1.3",
        "h3": "10.0.1.4",
    }


def test_a_router_with_many_hosts_gets_a_larger_network() -> None:
    underlay = star(490)
    assert underlay.network("r1") == "10.1.0.0/16"
    assert underlay.address["r1"] == "10.1.0.1"
    assert underlay.address["h490"] == "10.1.4.91"
    assert len(underlay.name_at) == 491


def test_every_address_is_in_its_network_and_belongs_to_one_node() -> None:
    underlay = line(2_000)
    assert len(underlay.name_at) == 2_000


def test_a_time_scale_lengthens_delays_and_lowers_rates() -> None:
    there, back = Channel(100, rate_mbit=10, loss_percent=1, queue_packets=5), Channel(301)
    underlay = Underlay((Router("r1"), Router("r2")), (Link("r1", "r2", there, back),))
    (link,) = underlay.stretched(2.5).links
    assert link.ab == Channel(250, rate_mbit=4, loss_percent=1, queue_packets=5)
    assert link.ba == Channel(752)
    assert underlay.stretched(1) == underlay


def test_exhausted_addresses_are_an_error() -> None:
    with pytest.raises(TopologyError, match="addresses exhausted: .* found 25600 routers"):
        line(25_600)


def test_json_is_equal_after_reading_and_writing(tmp_path: Path) -> None:
    fast, slow = Channel(10, 100.0, 0.5, 50), Channel(20, 1.5)
    underlay = Underlay(
        (Router("r1", 1.5, 2.0, "transit", True, "Zürich"), Router("r2", role="stub")),
        (Link("r1", "r2", fast, slow), Link.symmetric("h1", "r2", 7)),
        (Host("h1", 3.0, 4.0, "peer"),),
        {"made": "by hand", "seed": 1},
    )
    path = tmp_path / "underlay.json"
    save_underlay(underlay, path)
    assert load_underlay(path) == underlay
    assert underlay_to_json(load_underlay(path)) == path.read_text()


def document(**changes: Any) -> str:
    """A small valid file, with changes."""
    good: dict[str, Any] = {
        "routers": [{"name": "r1"}, {"name": "r2"}],
        "hosts": [{"name": "h1"}],
        "links": [
            {"a": "r1", "b": "r2", "ab": {"delay_us": 5}},
            {"a": "h1", "b": "r1", "ab": {"delay_us": 1}},
        ],
    }
    return json.dumps(good | changes)


def one_link(**channel: Any) -> str:
    return document(hosts=[], links=[{"a": "r1", "b": "r2", "ab": {"delay_us": 5} | channel}])


def test_a_file_by_hand_needs_few_keys() -> None:
    assert underlay_from_json(document(), "mine").address["h1"] == "10.0.1.2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", ", line 1: expected JSON"),
        ("[]", "top level: expected an object, found"),
        (
            document(format="tdo-underlay/9"),
            "format: expected tdo-underlay/1, found 'tdo-underlay/9'",
        ),
        (document(router=[]), "expected the keys .*routers.*; found 'router'"),
        (document(routers=[], hosts=[], links=[]), "empty topology: .* found none"),
        (document(routers=3), "routers: expected a list, found 3"),
        (document(routers=[{"name": "r1"}, {"name": "r1"}]), "node r1: .* found it 2 times"),
        (
            document(routers=[{"name": "router-one"}]),
            "node 'router-one': expected a letter and up to",
        ),
        (document(routers=[{"name": "r1", "role": "core"}, {"name": "r2"}]), "found 'core'"),
        (
            document(routers=[{"name": "r1", "x": "5"}]),
            r"routers\[0\].x: expected int or float, found '5'",
        ),
        (
            document(hosts=[{"name": "h1", "address": "10.9.9.9"}]),
            r"hosts\[0\].address: expected 10.0.1.2",
        ),
        (
            document(hosts=[{"name": "h1"}, {"name": "h2"}]),
            "host h2: expected one last-mile link, found 0",
        ),
        (
            document(hosts=[], links=[]),
            "disconnected topology: expected all 2 routers connected",
        ),
        (one_link(delay_us=-5), "link r1-r2, ab, delay_us: .* found -5"),
        (one_link(delay_us="5ms"), r"links\[0\].ab.delay_us: expected int, found '5ms'"),
        (one_link(delay_us=True), "found True"),
        (one_link(delay=5), "expected the keys delay_us, .*; found 'delay'"),
        (one_link(rate_mbit=0), "rate_mbit: .* found 0"),
        (one_link(loss_percent=101), "loss_percent: .* found 101"),
        (one_link(queue_packets=0), "queue_packets: .* found 0"),
        (
            document(links=[{"a": "r1", "b": "r9", "ab": {"delay_us": 5}}]),
            "expected known nodes, found 'r9'",
        ),
        (document(links=[{"a": "r1", "b": "r1", "ab": {"delay_us": 5}}]), "two different ends"),
        (
            document(links=[{"a": "r1", "b": "h1", "ab": {"delay_us": 5}}]),
            "expected the host as `a`",
        ),
        (
            document(links=[{"a": "r1", "b": "r2", "ab": {}}]),
            r"links\[0\].ab: expected the key 'delay_us'",
        ),
        (
            document(links=[{"a": "r1", "b": "r2", "ab": {"delay_us": 5}}] * 2),
            "expected one link between two nodes, found two",
        ),
    ],
)
def test_an_error_of_a_bad_file_has_place_and_cause(text: str, message: str) -> None:
    with pytest.raises(TopologyError, match=f"^mine.*{message}") as caught:
        underlay_from_json(text, "mine")
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match=r"nothing\.json: expected a readable topology file"):
        load_underlay(tmp_path / "nothing.json")
