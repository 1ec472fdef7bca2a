"""Pictures of overlays: lanes along routes, and links that nobody discovered."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from analysis.figures.lanes import LaneWidths, bow, lane_counts, lay_lanes
from analysis.figures.overlay import compose_overlay, draw_overlay
from analysis.run_directory import open_run
from tests.fixtures.overlay_runs import Recorder, random_overlay
from topologies.errors import TopologyError
from topologies.hosts import attach_hosts, make_anonymous
from topologies.underlay import Host, Link, Router, Underlay
from topologies.waxman import generate_waxman

SVG = "{http://www.w3.org/2000/svg}"
WIDTHS = LaneWidths(pitch=0.1, widest=0.25, turn=0.2)


@pytest.fixture(scope="module")
def recorder() -> Recorder:
    underlay = attach_hosts(generate_waxman(20, seed=1), 12, 1)
    return random_overlay(make_anonymous(underlay, 0.2, 1), 1, targets=3)


def lines(figure: Figure) -> dict[str, int]:
    """The number of lines of each kind in a picture, by the text after the number in the legend."""
    (axes,) = figure.axes
    found = (mark for mark in axes.collections if isinstance(mark, LineCollection))
    return {str(mark.get_label()).partition(" ")[2]: len(mark.get_segments()) for mark in found}


def composed(recorder: Recorder, run: Path) -> Figure:
    recorder.write(run)
    return compose_overlay(recorder.underlay, open_run(run).overlay)


@pytest.mark.parametrize(("extension", "start"), [(".svg", b"<?xml"), (".png", b"\x89PNG")])
def test_files_are_equal_each_time(
    recorder: Recorder, tmp_path: Path, extension: str, start: bytes
) -> None:
    run = recorder.write(tmp_path / "run")
    paths = [tmp_path / f"one{extension}", tmp_path / f"two{extension}"]
    for path in paths:
        draw_overlay(run, path)
    first, second = (path.read_bytes() for path in paths)
    assert first.startswith(start)
    assert first == second


def test_bad_extension_is_an_error(recorder: Recorder, tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match=r"\.svg, \.png, \.pdf, found"):
        draw_overlay(recorder.write(tmp_path / "run"), tmp_path / "picture.jpeg")


def test_every_link_is_drawn_by_its_kind(tmp_path: Path) -> None:
    links = [Link.symmetric("r1", "r2", 10), Link.symmetric("r2", "r3", 20)]
    links += [Link.symmetric(f"h{n}", f"r{n}", n) for n in (1, 2, 3)]
    routers = tuple(Router(f"r{n}", n, n % 2) for n in (1, 2, 3))
    recorder = Recorder(Underlay(routers, tuple(links), tuple(Host(f"h{n}") for n in (1, 2, 3))))
    recorder.infer("h1", "h2")
    recorder.join("h1", "h2")
    recorder.join("h2", "h3")
    recorder.join("h1", "h3", distant=True)
    recorder.end()
    assert lines(composed(recorder, tmp_path / "run")) == {
        "links not discovered": 2,
        "links discovered": 3,
        "overlay links": 2,
        "distant links": 1,
    }


def test_svg_has_the_metrics(recorder: Recorder, tmp_path: Path) -> None:
    draw_overlay(recorder.write(tmp_path / "run"), tmp_path / "picture.svg")
    root = ElementTree.parse(tmp_path / "picture.svg").getroot()
    texts = {"".join(text.itertext()) for text in root.iter(f"{SVG}text")}
    assert set(recorder.underlay.node_names) <= texts
    assert {"Topology discovery overlay", "12 peers on 20 routers", "12 hosts"} <= texts
    assert any(text.startswith("RDP 1.") for text in texts)


def test_hosts_without_a_peer_are_crossed_out(tmp_path: Path) -> None:
    recorder = random_overlay(attach_hosts(generate_waxman(20, seed=1), 12, 1), 1)
    recorder.rows = [row for row in recorder.rows if row[1:3] != ("h3", "agent_ended")]
    figure = composed(recorder, tmp_path / "run")
    (axes,) = figure.axes
    assert "1 without a peer" in {str(mark.get_label()) for mark in axes.collections}


def test_a_run_without_an_overlay_can_be_drawn(tmp_path: Path) -> None:
    recorder = Recorder(attach_hosts(generate_waxman(5, seed=1), 3, 1))
    recorder.end()
    assert lines(composed(recorder, tmp_path / "run")).keys() == {"links not discovered"}


def test_many_lanes_are_drawn_as_bands(tmp_path: Path) -> None:
    recorder = random_overlay(attach_hosts(generate_waxman(60, seed=1), 80, 1), 1, links=22)
    drawn = lines(composed(recorder, tmp_path / "run"))
    (bands,) = (count for label, count in drawn.items() if "on one link" in label)
    assert 80 <= bands <= len(recorder.underlay.links)


def test_lanes_of_one_link_are_side_by_side() -> None:
    places = {name: np.array(at, dtype=float) for name, at in {"a": (0, 0), "b": (4, 0)}.items()}
    there, back = lay_lanes(places, [("a", "b"), ("b", "a")], WIDTHS)
    assert there[0].tolist() == back[-1].tolist() == [0, 0]
    assert there[1].tolist() == pytest.approx([0.2, -0.05])
    assert back[1].tolist() == pytest.approx([3.8, 0.05])


def test_many_lanes_of_one_link_share_its_width() -> None:
    places = {"a": np.zeros(2), "b": np.array([4.0, 0.0])}
    lanes = lay_lanes(places, [("a", "b")] * 5, WIDTHS)
    assert [lane[1][1] for lane in lanes] == pytest.approx([-0.1, -0.05, 0, 0.05, 0.1])
    assert WIDTHS.total(5) == WIDTHS.widest
    assert WIDTHS.total(2) == pytest.approx(0.2)


def test_a_lane_turns_close_to_its_routers() -> None:
    corners = {"a": (0, 0), "b": (4, 0), "c": (4, 4), "d": (0, 4)}
    places = {name: np.array(at, dtype=float) for name, at in corners.items()}
    (lane,) = lay_lanes(places, [("a", "b", "c", "d")], WIDTHS)
    assert (lane[0] == places["a"]).all() and (lane[-1] == places["d"]).all()
    for name in ("b", "c"):
        assert np.hypot(*(lane - places[name]).T).min() < WIDTHS.turn


def test_lanes_are_counted_in_both_directions() -> None:
    assert lane_counts([("a", "b", "c"), ("b", "a")]) == {("a", "b"): 2, ("b", "c"): 1}


def test_a_curve_begins_and_ends_at_its_nodes() -> None:
    arc = bow(np.zeros(2), np.array([2.0, 0.0]), height=0.25)
    assert arc[0].tolist() == [0, 0] and arc[-1].tolist() == [2, 0]
    assert arc[:, 1].max() == pytest.approx(0.5)


def test_a_single_router_can_be_drawn(tmp_path: Path) -> None:
    links = tuple(Link.symmetric(f"h{n}", "r1", n) for n in (1, 2))
    recorder = Recorder(Underlay((Router("r1"),), links, (Host("h1"), Host("h2"))))
    recorder.join("h1", "h2")
    recorder.end()
    draw_overlay(recorder.write(tmp_path / "run"), tmp_path / "one.svg")
    assert (tmp_path / "one.svg").stat().st_size > 0
