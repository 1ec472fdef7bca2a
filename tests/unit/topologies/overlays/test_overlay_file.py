"""Overlay files: written by hand, written and read again, and invalid ones."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from topologies.errors import TopologyError
from topologies.overlays.interests import make_interests
from topologies.overlays.overlay import Overlay
from topologies.overlays.overlay_file import load_overlay, save_overlay

BY_HAND = {"nodes": 3, "interests": [[0, 1], [2, 1], [0, 1]], "edges": [[0, 1], [1, 2], [1, 0]]}


def write(folder: Path, **changes: Any) -> Path:
    path = folder / "overlay.json"
    document = {key: value for key, value in (BY_HAND | changes).items() if value != "absent"}
    path.write_text(json.dumps(document))
    return path


def test_three_keys_are_enough(tmp_path: Path) -> None:
    overlay = load_overlay(write(tmp_path))
    assert (overlay.nodes, overlay.topics, overlay.directed) == (3, 2, False)
    assert overlay.interests.pairs().tolist() == [[0, 1], [2, 1]]
    assert overlay.edges.tolist() == [[0, 1], [1, 2]]
    assert sorted(overlay.fingers.tolist()) == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert overlay.position is overlay.rendezvous is overlay.ids is overlay.kind is None


def test_a_directed_edge_and_its_reverse_are_two_edges(tmp_path: Path) -> None:
    overlay = load_overlay(write(tmp_path, directed=True))
    assert overlay.fingers.tolist() == [[0, 1], [1, 2], [1, 0]]
    assert overlay.links.tolist() == [[0, 1], [1, 2]]


def test_all_keys_are_written_and_read(tmp_path: Path) -> None:
    largest = 2**64 - 1
    overlay = Overlay(
        make_interests(3, 5, [[2, 4], [0, 0]]),
        np.array([[2, 0], [1, 2]]),
        directed=True,
        position=np.array([7, 0, largest], dtype=np.uint64),
        rendezvous=np.array([0, 1, 2, 2, 1]),
        ids=np.array([largest, 10, 1 << 63], dtype=np.uint64),
        kind="pastry",
        settings={"b": 2, "leaves": 4},
        seed=9,
    )
    save_overlay(overlay, tmp_path / "one.json")
    again = load_overlay(tmp_path / "one.json")
    save_overlay(again, tmp_path / "two.json")
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    assert again.interests.pairs().tolist() == [[0, 0], [2, 4]] and again.topics == 5
    assert again.edges.tolist() == [[2, 0], [1, 2]]
    assert again.position is not None and again.position.tolist() == [7, 0, largest]
    assert again.ids is not None and again.ids.tolist() == [largest, 10, 1 << 63]
    assert again.rendezvous is not None and again.rendezvous.tolist() == [0, 1, 2, 2, 1]
    assert (again.kind, again.settings, again.seed) == ("pastry", {"b": 2, "leaves": 4}, 9)


def test_edges_in_several_pieces_are_all_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topologies.overlays.overlay_file._PAIRS_AT_ONCE", 2)
    edges = np.array([[a, a + 1] for a in range(7)])
    save_overlay(Overlay(make_interests(8, 0, []), edges), tmp_path / "o.json")
    assert load_overlay(tmp_path / "o.json").edges.tolist() == edges.tolist()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"nodes": "absent"}, "expected the key 'nodes', found none"),
        ({"edges": "absent"}, "expected the key 'edges', found none"),
        ({"edge": []}, "expected the keys nodes, interests, edges, .*; found 'edge'"),
        ({"nodes": 0}, "nodes: expected 1 to 100,000,000, found 0"),
        ({"nodes": 10**30}, "nodes: expected 1 to 100,000,000, found 10+$"),
        ({"nodes": "3"}, 'nodes: expected int, found "3"'),
        ({"topics": -1}, "topics: expected 0 to 100,000,000, found -1"),
        ({"topics": 1}, r"interests\[0\]: expected a topic number, 0 to 0; found 1"),
        ({"topics": 0}, r"interests\[0\]: expected a topic number, none, as there are 0; found 1"),
        ({"interests": [[0, 0], [3, 0]]}, r"interests\[1\]: .* node number, 0 to 2; found 3"),
        ({"edges": [[0, 1], [0, -1]]}, r"edges\[1\]: expected a node number, 0 to 2; found -1"),
        ({"edges": [[0, 10**30]]}, r"edges\[0\]: expected a node number, 0 to 2; found"),
        ({"edges": [[1, 1]]}, r"edges\[0\]: expected two different nodes, found 1 and 1"),
        ({"edges": [[0, 1, 2]]}, r"edges\[0\]: expected array of length 2, found \[0, 1, 2\]"),
        ({"edges": [[0, "a"]]}, r"edges\[0\]\[1\]: expected int, found .a."),
        ({"edges": [[0, 1.5]]}, r"edges\[0\]\[1\]: expected int, found 1.5"),
        ({"position": [0, 1]}, "position: expected 3, one for each node; found 2"),
        ({"position": [5, 1, 5]}, "position: expected a different value .* found 5 twice"),
        ({"position": [0, 1, 2**64]}, r"position\[2\]: expected 0 to 2\^64 - 1, found 1844"),
        ({"position": [0, 1, -1]}, r"position\[2\]: expected 0 to 2\^64 - 1, found -1"),
        ({"rendezvous": [0]}, "rendezvous: expected 2, one for each topic; found 1"),
        ({"rendezvous": [0, 3]}, r"rendezvous\[1\]: expected a node number, 0 to 2; found 3"),
        ({"rendezvous": [0, 2**63]}, r"rendezvous\[1\]: expected a node number, 0 to 2; found"),
        ({"ids": ["a", "b", "xyz"]}, r"ids\[2\]: expected 1 to 16 hexadecimal .* found 'xyz'"),
        (
            {"ids": ["a", "b", "0A"]},
            "ids: expected a different value for each node, found 10 twice",
        ),
        ({"directed": 1}, "directed: expected bool, found 1"),
    ],
)
def test_an_error_of_a_wrong_file_is_one_line(
    changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    path = write(tmp_path, **changes)
    with pytest.raises(TopologyError, match=said) as error:
        load_overlay(path)
    assert str(error.value).startswith(f"{path}: ") and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "content",
    [b"{", b"[1]", b"\xff\xfe", b"", b"[" * 100_000, b'{"nodes": ' + b"9" * 5_000 + b"}"],
)
def test_an_error_of_a_file_without_an_overlay_is_one_line(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(TopologyError, match="expected .*, found") as error:
        load_overlay(path)
    assert "\n" not in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match="none.json: expected a readable overlay file, found"):
        load_overlay(tmp_path / "none.json")
