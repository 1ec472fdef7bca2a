"""The similarity of neighbours in the verdict of a run: links that both ends held at the end."""

import json
from pathlib import Path

from testbed.experiment.file import experiment_from_dict
from testbed.run.lifecycle import run_experiment
from testbed.run.neighbours import last_links
from topologies.underlay import Host, Link, Router, Underlay

UNDERLAY = Underlay(
    (Router("r1"),),
    tuple(Link.symmetric(f"h{number}", "r1", 100) for number in (1, 2, 3)),
    tuple(Host(f"h{number}") for number in (1, 2, 3)),
)


def address(host: str) -> int:
    first, second, third, fourth = map(int, UNDERLAY.address[host].split("."))
    return first << 24 | second << 16 | third << 8 | fourth


def changes(*given: tuple[str, str, str]) -> list[tuple[str, str, int]]:
    return [(host, what, address(peer) if peer else 0) for host, what, peer in given]


def test_a_link_counts_if_both_ends_hold_it_at_the_end() -> None:
    names = ["h1", "h2", "h3"]
    both = [("h1", "neighbour_added", "h2"), ("h2", "neighbour_added", "h1")]
    one = [("h3", "neighbour_added", "h1")]
    assert last_links(changes(*both, *one), names, UNDERLAY) == {(0, 1)}
    gone = ("h2", "neighbour_removed", "h1")
    assert last_links(changes(*both, gone), names, UNDERLAY) == set()
    again = ("h1", "agent_started", "")
    assert last_links(changes(*both, again), names, UNDERLAY) == set()


def test_a_run_with_events_has_the_similarity_of_neighbours(tmp_path: Path) -> None:
    document = {
        "name": "alike", "backend": "simulation", "duration_s": 12.0, "capture": "none",
        "topology": {"routers": 6, "hosts": 4},
        "overlay": {"kind": "given", "links": "h1-h2 h2-h3 h3-h4"},
        "routing": {"kind": "opt", "first_trees_s": 3.0},
        "workload": {
            "kind": "content-given", "attributes": 1, "publishers": "h1", "events": 20,
            "rate_per_s": 10.0, "start_s": 8.0,
            "subscriptions": "h1: everything\nh2: everything\nh3: everything",
        },
    }  # fmt: skip
    experiment = experiment_from_dict(document, "alike")
    outcome = run_experiment(experiment, "", tmp_path, lambda _line: None)
    found = json.loads((outcome.path / "verdict.json").read_text())["figures"]
    assert found["similarity_of_neighbours"] == round(2 / 3, 6)  # h4 subscribes to nothing.
    assert found["similarity_of_pairs"] == 0.5
