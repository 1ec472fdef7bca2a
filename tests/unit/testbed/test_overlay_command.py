"""`tdo overlay` through its parser: files, output and errors."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed.cli import main
from topologies.overlays.kinds import OVERLAYS
from topologies.overlays.overlay_file import load_overlay
from workloads.topics.social import draw_social_interests
from workloads.topics.synthetic_social import draw_synthetic_interests

FRIENDS = Path(__file__).parents[2] / "fixtures" / "social" / "friends.txt"
DRAWN = ("--nodes", 40, "--topics", 12, "--topics-per-node", "2..4")


def run(*arguments: object) -> int:
    return main(["overlay", *map(str, arguments)])


def last_json(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return result


@pytest.mark.parametrize("kind", OVERLAYS)
def test_build_then_route(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "o.json"
    assert run("build", kind, *DRAWN, "--popularity", "zipf", "-o", file, "--json") == 0
    built = last_json(capsys)
    assert {"edges", "degree", "weighted_degree", "tco_support", "topic_connected",
            "topic_diameter", "seconds", "peak_mb"} <= built.keys()  # fmt: skip
    overlay = load_overlay(file)
    assert (overlay.kind, overlay.nodes, overlay.topics, overlay.seed) == (kind, 40, 12, 1)
    assert built["edges"] == len(overlay.edges) and built["weighted_degree"] is None
    assert run("route", file, "--pubsub", "scribe", "--events", 30, "--json") == 0
    routed = last_json(capsys)
    assert routed["publications"] == 30 and routed["deliveries"] > 0
    assert routed["missed"] == routed["duplicates"] == 0
    assert routed["path_length"]["mean"] <= routed["path_length"]["max"]
    assert list(routed) == ["publications", "messages", "pure_forwarding", "deliveries",
                            "duplicates", "missed", "path_length"]  # fmt: skip


@pytest.mark.parametrize("social", [str(FRIENDS), "friends.txt", "synthetic"])
def test_interests_of_a_social_graph(social: str, tmp_path: Path) -> None:
    file = tmp_path / "o.json"
    given = ("--social", social, "--data", FRIENDS.parent, "--seed", 7)
    assert run("build", "ring", *given, "--nodes", 60, "-o", file) == 0
    overlay = load_overlay(file)
    if social == "synthetic":
        wanted = draw_synthetic_interests("friends", 60, 7)
    else:
        wanted = draw_social_interests(FRIENDS, "friends", 60, 7)
    assert (overlay.nodes, overlay.topics) == (60, 60)
    assert overlay.interests.pairs().tolist() == np.column_stack(wanted).tolist()
    if social != "synthetic":
        assert run("build", "ring", *given, "-o", file) == 0
        assert load_overlay(file).nodes == 150


def test_the_same_seed_gives_the_same_file(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("one", "two", "three")]
    for file, seed in zip(files, (3, 3, 4), strict=True):
        assert (
            run("build", "ring", *DRAWN, "--set", "fingers=random", "--seed", seed, "-o", file) == 0
        )
    assert files[0].read_bytes() == files[1].read_bytes() != files[2].read_bytes()


def test_settings_and_weights_change_the_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, interests, weights = (tmp_path / name for name in ("o.json", "i.txt", "w.txt"))
    interests.write_text("# nodes 5 topics 2\n0 0\n1 0\n4 1\n")
    weights.write_text("\n".join(" ".join("2" for _ in range(5)) for _ in range(5)))
    given = ("--interests", interests, "--weights", weights, "--set", "phases=ceil")
    assert run("build", "ring", *given, "-o", file, "--json") == 0
    built = last_json(capsys)
    assert (built["edges"], built["weighted_degree"]) == (15, 6)
    assert load_overlay(file).settings == {"fingers": "chord", "phases": "ceil"}


def test_an_overlay_and_publications_by_hand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, publications = tmp_path / "o.json", tmp_path / "p.txt"
    edges = [[0, 1], [1, 2], [2, 3], [3, 0]]
    document = {"nodes": 4, "interests": [[0, 0], [2, 0]], "edges": edges, "rendezvous": [3]}
    file.write_text(json.dumps(document))
    publications.write_text("0 0\n")
    assert run("route", file, "--pubsub", "scribe", "--publications", publications, "--json") == 0
    # Both directions of an edge are fingers, but routes go clockwise to the farthest: 0 knows 3.
    assert last_json(capsys) == {
        "publications": 1, "messages": 3, "pure_forwarding": 1, "deliveries": 1, "duplicates": 0,
        "missed": 0, "path_length": {"mean": 2, "max": 2},
    }  # fmt: skip


def test_an_overlay_without_a_ring_is_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "o.json"
    file.write_text('{"nodes": 4, "interests": [[0, 0], [2, 0]], "edges": [[0, 1]]}')
    assert run("route", file, "--pubsub", "iscribe", "--events", 2) == 0
    printed = capsys.readouterr().out
    assert "3 of 4 nodes have no edge to the next node of the ring" in printed
    assert "missed           2" in printed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("build", "ring", "-o", "{o}"), "--nodes: expected a value, as --interests is not given"),
        (("build", "ring", *DRAWN, "--interests", "{i}", "-o", "{o}"), "--nodes: expected none"),
        (("build", "ring", "--social", "none", "-o", "{o}"), "--social: expected an edge list"),
        (("build", "ring", "--social", "synthetic", "-o", "{o}"), "--nodes: expected a value"),
        (("build", "ring", "--social", "synthetic", *DRAWN, "-o", "{o}"), "--topics: .* none"),
        (("build", "ring", *DRAWN, "--links", "follows", "-o", "{o}"), "--links: expected none"),
        (("build", "ring", "--social", FRIENDS, "--nodes", 151, "-o", "{o}"), "at least 151 users"),
        (("build", "ring", "--social", "synthetic", "--nodes", 0, "-o", "{o}"), "--nodes: .* 1 to"),
        (("build", "ring", *DRAWN, "--nodes", 10**12, "-o", "{o}"), "--nodes: .* 1 to 100,000,000"),
        (("build", "ring", *DRAWN, "--topics", 10**12, "-o", "{o}"), "--topics: .* 0 to 100,000,"),
        (("build", "ring", *DRAWN, "--set", "finger=x", "-o", "{o}"), "nearest known .* fingers"),
        (("build", "ring", *DRAWN, "--set", "fingers=x", "-o", "{o}"), "one of chord, random"),
        (("build", "pastry", *DRAWN, "--set", "leaves=5", "-o", "{o}"), "leaves: .* even number"),
        (("build", "pastry", *DRAWN, "--set", "b=3", "-o", "{o}"), "b: expected one of 1, 2, 4, 8"),
        (("build", "ring", *DRAWN, "--seed", -1, "-o", "{o}"), "--seed: expected 0 or more"),
        (("build", "ring", *DRAWN, "-o", "{o}/none/o"), "expected a file that can be written"),
        (("build", "ring", "--interests", "{i}", "-o", "{o}"), "line 1: expected `node topic`"),
        (("route", "{o}", "--pubsub", "scribe", "--events", 1), "expected a readable overlay file"),
        (("route", "{f}", "--pubsub", "scribe", "--events", -1), "--events: expected 0 to"),
        (("route", "{f}", "--pubsub", "scribe", "--events", 10**30), "--events: expected 0 to 10"),
        (("route", "{f}", "--pubsub", "scribe", "--publications", "{i}"), "line 1: .* `publisher"),
        (("route", "{p}", "--pubsub", "iscribe", "--events", 1), "by position, found pastry"),
        (("route", "{f}", "--pubsub", "scribe", "--events", 1, "--set", "min_subscribers=9"),
         "expected a topic with 9 subscribers or more"),
    ],
)  # fmt: skip
def test_an_error_is_one_line_with_exit_status_2(
    arguments: tuple[object, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {name: tmp_path / name for name in "oifp"}
    names["i"].write_text("a b\n")
    overlay = {"nodes": 2, "interests": [[0, 0], [1, 0]], "edges": [[0, 1]]}
    names["f"].write_text(json.dumps(overlay))
    names["p"].write_text(json.dumps({**overlay, "kind": "pastry", "ids": ["1", "2"]}))
    assert run(*(str(word).format(**names) for word in arguments)) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert re.search(said, error), error


@pytest.mark.parametrize("words", [("build", "torus"), ("route", "f", "--pubsub", "flood")])
def test_unknown_kinds_are_refused_with_status_2(words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as error:
        run(*words)
    assert error.value.code == 2
