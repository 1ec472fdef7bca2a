"""Pictures: every node is drawn once, with the mark of its kind, into the requested file."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import PathCollection

from topologies.domain_sizes import choose_domain_sizes
from topologies.errors import TopologyError
from topologies.hosts import attach_hosts, make_anonymous
from topologies.layout import place_nodes, typical_gap
from topologies.picture import compose_figure, draw
from topologies.transit_stub import generate_transit_stub
from topologies.underlay import Host, Link, Router, Underlay
from topologies.waxman import generate_waxman

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def waxman() -> Underlay:
    return make_anonymous(attach_hosts(generate_waxman(20, seed=1), 12, 1), 0.2, 1)


@pytest.fixture(scope="module")
def transit_stub() -> Underlay:
    return attach_hosts(generate_transit_stub(choose_domain_sizes(200), seed=1), 30, 1)


def drawn(underlay: Underlay) -> dict[str, int]:
    """The number of marks of each kind in a picture."""
    (axes,) = compose_figure(underlay).axes
    marks = (mark for mark in axes.collections if isinstance(mark, PathCollection))
    return {str(mark.get_gid()): len(mark.get_offsets()) for mark in marks}


@pytest.mark.parametrize(
    ("extension", "start"), [(".svg", b"<?xml"), (".png", b"\x89PNG"), (".PDF", b"%PDF")]
)
def test_files_are_equal_each_time(
    tmp_path: Path, waxman: Underlay, extension: str, start: bytes
) -> None:
    paths = [tmp_path / f"one{extension}", tmp_path / f"two{extension}"]
    for path in paths:
        draw(waxman, path)
    first, second = (path.read_bytes() for path in paths)
    assert first.startswith(start)
    assert first == second


def test_an_error_of_a_bad_extension_has_the_supported_ones(
    tmp_path: Path, waxman: Underlay
) -> None:
    for name in ("picture.jpeg", "picture"):
        with pytest.raises(TopologyError, match=r"\.svg, \.png, \.pdf, found"):
            draw(waxman, tmp_path / name)
        assert not (tmp_path / name).exists()


def test_every_node_is_drawn_by_its_kind(waxman: Underlay, transit_stub: Underlay) -> None:
    assert drawn(waxman) == {"router": 16, "anonymous-router": 4, "host": 12}
    transit = sum(router.role == "transit" for router in transit_stub.routers)
    assert drawn(transit_stub) == {"transit-router": transit, "stub-router": 200 - transit,
                                   "host": 30}  # fmt: skip


def test_svg_has_names_title_and_legend(tmp_path: Path, waxman: Underlay) -> None:
    draw(waxman, tmp_path / "picture.svg")
    root = ElementTree.parse(tmp_path / "picture.svg").getroot()
    texts = {"".join(text.itertext()) for text in root.iter(f"{SVG}text")}
    assert set(waxman.node_names) <= texts
    assert {"waxman", "4 anonymous routers", "20 routers · 40 links · 12 hosts"} <= texts


def test_large_networks_have_no_names(transit_stub: Underlay) -> None:
    (axes,) = compose_figure(transit_stub).axes
    assert not axes.texts


def test_positions_are_different(transit_stub: Underlay) -> None:
    points = np.array(list(place_nodes(transit_stub).values()))
    assert len(np.unique(points.round(6), axis=0)) == len(points) == 230


def test_network_without_coordinates_gets_a_layout() -> None:
    routers = tuple(Router(f"r{n}") for n in range(1, 6))
    links = tuple(Link.symmetric(f"r{n}", f"r{n + 1}", 1) for n in range(1, 5))
    positions = place_nodes(Underlay(routers, links))
    assert typical_gap(positions) > 0.1
    again = place_nodes(Underlay(routers, links))
    assert all((positions[name] == again[name]).all() for name in positions)


def test_routers_in_one_city_are_drawn_apart(waxman: Underlay) -> None:
    first, second, *others = waxman.routers
    crowded = (first, replace(second, x=first.x, y=first.y), *others)
    positions = place_nodes(replace(waxman, routers=crowded))
    assert np.hypot(*(positions["r1"] - positions["r2"])) > 0.1


def test_an_exchange_draws_hosts_by_their_distance() -> None:
    hosts = (Host("h1"), Host("h2"))
    links = (Link.symmetric("h1", "r1", 1000), Link.symmetric("h2", "r1", 9000))
    positions = place_nodes(Underlay((Router("r1"),), links, hosts))
    assert np.hypot(*positions["h2"]) > 4 * np.hypot(*positions["h1"])


def test_a_single_router_can_be_drawn(tmp_path: Path) -> None:
    draw(Underlay((Router("r1"),), ()), tmp_path / "one.svg")
    assert (tmp_path / "one.svg").stat().st_size > 0


def test_a_layout_is_the_same_in_every_process() -> None:
    program = (
        "from topologies.layout import place_nodes\n"
        "from topologies.domain_sizes import choose_domain_sizes\n"
        "from topologies.transit_stub import generate_transit_stub\n"
        "places = place_nodes(generate_transit_stub(choose_domain_sizes(100), seed=1))\n"
        "print({name: at.tolist() for name, at in places.items()})\n"
    )
    layouts = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(layouts) == 1
