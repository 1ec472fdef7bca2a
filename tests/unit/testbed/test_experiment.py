"""Experiment files: their resolved form, and errors of wrong ones."""

from pathlib import Path

import pytest

from testbed.errors import ExperimentError
from testbed.experiment.file import experiment_from_dict, load_experiment, parse_change
from testbed.run.underlay import make_underlay

TREES = {"overlay": {"kind": "tdo-walk"}, "routing": {"kind": "mst"}}


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text)
    return path


def test_an_empty_file_is_an_experiment(tmp_path: Path) -> None:
    experiment = load_experiment(write(tmp_path, ""))
    assert experiment.name == "mine"
    assert experiment.overlay == {"kind": "hello", "greetings": 3, "period_us": 500_000}
    assert experiment.topology.kind == "waxman"


def test_a_resolved_experiment_can_be_read_again(tmp_path: Path) -> None:
    text = """
    links = "netem"
    seed = 7
    time_scale = 2
    [topology]
    kind = "transit-stub"
    anonymous_routers = 0.25
    [overlay]
    kind = "gossip"
    [[fault]]
    at_s = 1
    action = "kill-agent"
    target = "h3"
    """
    experiment = load_experiment(write(tmp_path, text))
    assert experiment_from_dict(experiment.to_dict(), "again") == experiment
    assert experiment.faults[0].action == "kill-agent"


def test_a_hierarchical_network_has_the_settings_of_the_file(tmp_path: Path) -> None:
    text = """
    seed = 3
    [topology]
    kind = "waxman-hierarchical"
    routers = 60
    hosts = 5
    edge_connection = "smallest-k-degree"
    border_degree = 5
    """
    underlay = make_underlay(load_experiment(write(tmp_path, text)))
    expected = {"routers": 60, "edge_connection": "smallest-k-degree", "border_degree": 5}
    assert expected.items() <= underlay.source.items()
    assert (len(underlay.routers), len(underlay.hosts), underlay.source["seed"]) == (60, 5, 3)


def test_changes_reach_into_sections(tmp_path: Path) -> None:
    changes = dict(parse_change(text) for text in ("topology.hosts=5", "seed=9", "name=other"))
    experiment = load_experiment(write(tmp_path, "seed = 1"), changes)
    assert (experiment.topology.hosts, experiment.seed, experiment.name) == (5, 9, "other")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed = ", "expected TOML, found: Invalid value"),
        ("sede = 1", "sede: expected a known key, found 'sede'; the nearest known key is seed"),
        ("seed = 'one'", "seed: expected a whole number, found 'one'"),
        ("seed = true", "seed: expected a whole number, found True"),
        ("seed = -1", "seed: expected 0 or more, found -1"),
        ("duration_s = 0", "duration_s: expected above 0, found 0"),
        ("time_scale = 0.5", "time_scale: expected 1 or more, found 0.5"),
        ("backend = 'magic'", "backend: expected one of emulation, simulation; found 'magic'"),
        ("links = 'wifi'", "links: expected one of best, netem, delay-line; found 'wifi'"),
        ("topology = 3", "topology: expected a table, found 3"),
        (
            "[topology]\nkind = 'ring'",
            "topology.kind: expected one of waxman, waxman-hierarchical, transit-stub, file",
        ),
        (
            "[topology]\nkind = 'waxman-hierarchical'\nedge_connection = 'best'",
            "topology.edge_connection: expected one of random, .*; found 'best'",
        ),
        (
            "[topology]\nkind = 'waxman-hierarchical'\nborder_degree = 0",
            "topology.border_degree: expected 1 or more, found 0",
        ),
        (
            "[topology]\nrooters = 3",
            "topology.rooters: .* the nearest known key is topology.routers",
        ),
        (
            "[topology]\nborder_degree = 2",
            "topology.border_degree: expected a setting of waxman, found one of waxman-hier",
        ),
        ("[topology]\nhosts = 1", "topology.hosts: expected 2 or more, found 1"),
        ("[topology]\nkind = 'file'", "topology.file: expected a file for the kind `file`"),
        ("[overlay]\nkind = 'chord'", "overlay.kind: expected one of .*; found 'chord'"),
        (
            '[overlay]\nkind = "hello"\ngreeting = 3',
            "overlay.greeting: .* nearest known key is overlay.greetings",
        ),
        (
            '[overlay]\nkind = "hello"\ngreetings = "x"',
            "overlay.greetings: expected a whole number, found 'x'",
        ),
        (
            '[workload]\nkind = "content-zipf"\npsi = 0',
            "workload.psi: expected 1 or more, found 0",
        ),
        (
            '[workload]\nkind = "content-zipf"\n[pubsub]\npsi = 0',
            "pubsub.psi: expected 1 or more, found 0",
        ),
        (
            '[workload]\nkind = "content-zipf"\neventz = 9',
            "workload.eventz: .* the nearest known key is workload.events",
        ),
        ("workload = 3", "workload: expected a table, found 3"),
        ("duration_s = inf", "duration_s: expected above 0, found inf"),
        ("name = '../up'", "name: expected letters, digits, dots and hyphens.* found '../up'"),
        (
            "[[fault]]\nat_s = 1\naction = 'delay'\ntarget = 'r1-r2'",
            r"fault\[0\].delay_us: expected microseconds above 0, found 0",
        ),
        ("fault = 3", "fault: expected a list, found 3"),
        ("[[fault]]\nat_s = 1", r"fault\[0\].action: expected a value, found none"),
        (
            "[[fault]]\nat_s = 1\naction = 'burn'\ntarget = 'h1'",
            r"fault\[0\].action: expected one of kill-agent, .*; found 'burn'",
        ),
        (
            "[[fault]]\nat_s = 99\naction = 'kill-agent'\ntarget = 'h1'",
            r"fault\[0\].at_s: expected a time within the 10.0 s of the run, found 99",
        ),
    ],
)
def test_an_error_of_a_wrong_file_has_place_and_cause(
    text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ExperimentError, match=f"mine.toml: {message}") as caught:
        load_experiment(write(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="no.toml: expected an experiment file"):
        load_experiment(tmp_path / "no.toml")


def test_a_number_is_accepted_as_a_text(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text('[overlay]\nkind = "tdo-walk"\n')
    limits = [
        load_experiment(path, dict([parse_change(text)])).overlay["degree_limit"]
        for text in ("overlay.degree_limit=8", 'overlay.degree_limit="8"')
    ]
    assert limits == ["8", "8"]


def test_a_changed_kind_with_settings_of_another_is_refused_with_these_settings(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.toml"
    path.write_text('[overlay]\nkind = "tdo-walk"\nheuristic = "mlink"\n')
    wanted = "overlay.heuristic: expected a setting of hello, found one of tdo-walk.*greetings"
    with pytest.raises(ExperimentError, match=wanted):
        load_experiment(path, dict([parse_change("overlay.kind=hello")]))


def test_a_change_needs_a_value() -> None:
    with pytest.raises(ExperimentError, match="--set seed: expected key=value"):
        parse_change("seed")


@pytest.mark.parametrize(
    ("workload", "pubsub", "message"),
    [
        ({}, {"kind": "content"}, "pubsub: expected a section \\[workload\\] with it, found none"),
        (
            {"kind": "content-zipf", "psi": 3},
            {"kind": "content", "psi": 4},
            "pubsub.psi: expected it in one section, found it in \\[workload\\] as well",
        ),
        (
            {"kind": "content-zipf"},
            {"kind": "flood"},
            "pubsub.kind: expected one of content, .*topic-flood.*; found 'flood'",
        ),
        (
            {"kind": "topics-zipf"},
            {},
            "pubsub.kind: expected a publish/subscribe system for topics-zipf, one of "
            ".*topic-flood.*; found none$",
        ),
        (
            {"kind": "topics-zipf"},
            {"kind": "content"},
            "pubsub.kind: expected .* for topics-zipf, one of .*topic-flood.*; found 'content'$",
        ),
        (
            {"kind": "content-zipf"},
            {"kind": "topic-flood"},
            "pubsub.kind: expected .* for content-zipf, one of content; found 'topic-flood'$",
        ),
        ({"kind": "content-zipf", "topics": 3}, {}, "workload.topics: .*"),
        ({"kind": "content-zipf"}, {"merging": 1}, "pubsub.merging: expected true or false"),
        ({"kind": "content-zipf", "merging": 1}, {}, "(pubsub|workload).merging: expected true"),
    ],
)
def test_invalid_sections_of_events_are_refused(
    workload: dict[str, object], pubsub: dict[str, object], message: str
) -> None:
    document = {"name": "mine", "workload": workload, "pubsub": pubsub}
    with pytest.raises(ExperimentError, match=message):
        experiment_from_dict(document, "mine.toml")


@pytest.mark.parametrize(
    ("overlay", "pubsub", "message"),
    [
        ("pastry", "iscribe", "beaconvey, ring, small-world, as iscribe needs positions on a ring"),
        ("skip-net", "nsmf", "beaconvey, ring, small-world, as nsmf needs positions on a ring"),
        ("tdo-walk", "scribe", "beaconvey, pastry, .*, as scribe needs routes to keys"),
        ("hello", "topic-flood", "beaconvey, given, .*, as topic-flood needs links between peers"),
    ],
)
def test_an_overlay_without_a_required_service_is_refused(
    overlay: str, pubsub: str, message: str
) -> None:
    document = {
        "name": "mine",
        "overlay": {"kind": overlay},
        "workload": {"kind": "topics-zipf"},
        "pubsub": {"kind": pubsub},
    }
    wanted = f"mine.toml: overlay.kind: expected one of {message}; found '{overlay}'$"
    with pytest.raises(ExperimentError, match=wanted):
        experiment_from_dict(document, "mine.toml")


@pytest.mark.parametrize("overlay", ["tdo-walk", "hello", "ring"])
def test_trees_require_a_routing_layer_and_that_requires_links(overlay: str) -> None:
    document = {
        "name": "mine", "overlay": {"kind": overlay}, "workload": {"kind": "content-zipf"},
    }  # fmt: skip
    with pytest.raises(ExperimentError, match="routing.kind: .* content needs trees; found none"):
        experiment_from_dict(document, "mine.toml")
    document["routing"] = {"kind": "mst"}
    if overlay != "tdo-walk":
        with pytest.raises(ExperimentError, match="mst needs links in both directions; found"):
            experiment_from_dict(document, "mine.toml")
    else:
        assert experiment_from_dict(document, "mine.toml").layers.keys() == {
            "overlay", "routing", "pubsub",
        }  # fmt: skip


def test_the_default_pubsub_is_that_of_the_workload() -> None:
    workload = {"kind": "content-zipf", "events": 7, "psi": 3}
    document = {"name": "mine", "workload": workload, **TREES}
    found = experiment_from_dict(document, "mine.toml")
    assert found.pubsub["kind"] == "content" and found.pubsub["psi"] == 3
    assert found.workload["events"] == 7 and "psi" not in found.workload
    assert experiment_from_dict(found.to_dict(), "run.json") == found
