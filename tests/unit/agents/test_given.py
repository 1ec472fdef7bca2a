"""Overlays and subscriptions from the experiment file: their meaning, and errors."""

from pathlib import Path
from typing import Any

import pytest

from agents.overlays.given import parse_links
from testbed.cli import main
from testbed.errors import ExperimentError
from testbed.experiment.file import experiment_from_dict
from testbed.run.agents import assign_agents
from testbed.run.underlay import make_underlay
from testbed.run.workload import make_workload
from workloads.content.given import make_given_workload, parse_subscriptions
from workloads.content.subscription import HIGHEST, subscribe

HOSTS = ("h1", "h2", "h3", "h4")


def document(**changes: Any) -> dict[str, Any]:
    """Four hosts in a row, of which one publishes; a dotted key changes a setting."""
    plain: dict[str, Any] = {
        "name": "given",
        "topology": {"routers": 5, "hosts": 4},
        "overlay": {"kind": "given", "links": "h1-h2 h2-h3 h3-h4"},
        "routing": {"kind": "mst"},
        "workload": {"kind": "content-given", "subscriptions": "h2: 1<=a0<=3; h4: everything"},
    }
    for key, value in changes.items():
        section, name = key.split("_")
        plain[section][name] = value
    return plain


def test_links_are_read_as_pairs() -> None:
    assert parse_links("h1-h2\n h2-h3 ") == (("h1", "h2"), ("h2", "h3"))


def test_subscriptions_are_read_by_host() -> None:
    text = "h2: 3 <= a0 <= 7\nh3: everything; h2: 0<=a0<=1 and 2<=a1<=2\n\n"
    assert parse_subscriptions(text, 2) == {
        "h2": (subscribe({0: (3, 7)}), subscribe({0: (0, 1), 1: (2, 2)})),
        "h3": (subscribe({}),),
    }


def test_events_are_of_publishers_and_have_the_configured_number_of_attributes() -> None:
    made = make_given_workload("h2: 1<=a1<=3", "h4 h1", 7, HOSTS, 400, 2)
    assert [len(held) for held in made.subscriptions] == [0, 1, 0, 0]
    assert {event.publisher for event in made.events} == {0, 3}
    seen = [{event.point.values[attribute] for event in made.events} for attribute in range(5)]
    assert seen == [{*range(HIGHEST + 1)}] * 2 + [{0}] * 3
    anybody = make_given_workload("h2: everything", "", 7, HOSTS, 100, 1)
    assert {event.publisher for event in anybody.events} == {0, 1, 2, 3}
    assert anybody == make_given_workload("h2: everything", "", 7, HOSTS, 100, 1)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("overlay_links", "", "overlay.links: expected pairs of hosts, .* found none"),
        ("overlay_links", "h1-h2 h3", "overlay.links: expected pairs of hosts, .* found 'h3'"),
        ("overlay_links", "h1-h2-h3", "overlay.links: expected pairs .* found 'h1-h2-h3'"),
        ("overlay_links", "h1-h1", "overlay.links: expected two different .* found 'h1-h1'"),
        ("overlay_links", "h1-h2 h2-h1", "overlay.links: expected each .* found 'h2-h1' again"),
        ("overlay_links", 3, "overlay.links: expected pairs of hosts, .* found '3'"),
        ("workload_subscriptions", "", "workload.subscriptions: expected lines .* found none"),
        ("workload_subscriptions", 1, "workload.subscriptions: expected lines .* found '1'"),
        (
            "workload_subscriptions",
            "1<=a0<=3",
            "workload.subscriptions: expected lines .* found '1<=a0<=3'",
        ),
        (
            "workload_subscriptions",
            "h2: a0=3",
            "workload.subscriptions: 'h2: a0=3': expected ranges like '3<=a0<=7', found 'a0=3'",
        ),
        (
            "workload_subscriptions",
            "h1: everything; h2: 4<=a0<=3",
            "workload.subscriptions: 'h2: 4<=a0<=3': expected a low .* found '4<=a0<=3'",
        ),
        ("workload_subscriptions", "h2: 4<=a0<=11", "workload.*from 0 to 10, found '4<=a0<=11'"),
        ("workload_subscriptions", "h2: 4<=a5<=7", "workload.* from a0 to a4, found a5"),
        (
            "workload_subscriptions",
            "h2: 4<=a0<=7 and 1<=a0<=9",
            "workload.* expected each attribute once, found a0 again",
        ),
        ("workload_attributes", 0, "workload.attributes: expected 1 to 5, found 0"),
        ("workload_match", 0.5, "workload.match: expected a setting of content-given, found one"),
    ],
)
def test_unreadable_values_are_refused_in_one_line(key: str, value: Any, message: str) -> None:
    with pytest.raises(ExperimentError, match=f"mine.toml: {message}") as caught:
        experiment_from_dict(document(**{key: value}), "mine.toml")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("overlay_links", "h1-h2 h2-h9", "overlay.links: expected hosts .* 'h1'; found 'h9'"),
        ("overlay_links", "h1-h2 h3-h4", "overlay.links: .* found no path from h1 to h3; add a"),
        ("workload_subscriptions", "h5: everything", "workload.subscriptions: .* found 'h5'"),
        ("workload_publishers", "h1 r1", "workload.publishers: .* found 'r1'"),
    ],
)
def test_unknown_hosts_are_refused(key: str, value: str, message: str) -> None:
    experiment = experiment_from_dict(document(**{key: value}), "mine.toml")
    underlay = make_underlay(experiment)
    with pytest.raises(ExperimentError, match=message):
        assign_agents(experiment, underlay, make_workload(experiment, underlay))


def test_a_link_to_an_unknown_host_ends_the_command_before_anything_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, results = tmp_path / "mine.toml", tmp_path / "results"
    file.write_text('backend = "simulation"\n[overlay]\nkind = "given"\nlinks = "h1-h99"\n')
    assert main(["run", str(file), "--out", str(results)]) == 2
    assert capsys.readouterr().err == (
        "tdo: overlay.links: expected hosts of this network, as in 'h1'; found 'h99'\n"
    )
    assert not results.exists()


def test_only_protocols_that_use_names_of_hosts_get_them() -> None:
    given = experiment_from_dict(document(), "mine.toml")
    told = assign_agents(given, make_underlay(given), None)
    assert tuple(told[2].surroundings(1, {}).hosts.items()) == tuple(
        (spec.host, spec.address) for spec in told
    )
    others = experiment_from_dict({"name": "other", "topology": {"hosts": 4}}, "mine.toml")
    nameless = assign_agents(others, make_underlay(others), None)
    assert [dict(spec.hosts) for spec in nameless] == [{}] * 4
