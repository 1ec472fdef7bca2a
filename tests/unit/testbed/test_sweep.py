"""Sweeps: the experiments of a file, and errors of wrong files."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from testbed.commands.carriers import choose_master
from testbed.commands.sweep import repeat_lines
from testbed.errors import ExperimentError
from testbed.experiment.file import load_experiment, parse_change
from testbed.sweeps.directory import SweepDirectory, name_run
from testbed.sweeps.file import Sweep, load_sweep
from testbed.sweeps.runs import perform_here, play_sweep

EXPERIMENTS = sorted((Path(__file__).parents[3] / "experiments").glob("*.toml"))


def sweep_of(folder: Path, text: str, **changes: Any) -> Sweep:
    path = folder / "mine.toml"
    path.write_text(text)
    return load_sweep(path, changes)


def values_of(sweep: Sweep) -> list[tuple[Any, ...]]:
    return [tuple(swept.values.values()) for swept in sweep.experiments]


def test_a_plain_file_is_a_sweep_of_one_unchanged_experiment(tmp_path: Path) -> None:
    text = "seed = 7\n[[figure]]\nname = 'f'\nx = 'peers'\ny = 'rdp.mean'"
    sweep = sweep_of(tmp_path, text)
    assert sweep.is_plain
    assert [swept.experiment for swept in sweep.experiments] == [
        load_experiment(tmp_path / "mine.toml")
    ]
    assert sweep.text == text


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_the_experiment_files_of_the_testbed_are_valid(path: Path) -> None:
    sweep = load_sweep(path)
    assert {swept.experiment.name for swept in sweep.experiments} == {path.stem}


def test_lists_are_combined_in_the_order_of_the_file(tmp_path: Path) -> None:
    sweep = sweep_of(
        tmp_path,
        "seed = [1, 2]\n[overlay]\nkind = 'hello'\ngreetings = [3, 1]\n[topology]\nhosts = [9, 8]",
    )
    assert sweep.keys == ("seed", "overlay.greetings", "topology.hosts")
    assert values_of(sweep) == [
        (1, 3, 9), (1, 3, 8), (1, 1, 9), (1, 1, 8), (2, 3, 9), (2, 3, 8), (2, 1, 9), (2, 1, 8),
    ]  # fmt: skip
    last = sweep.experiments[-1].experiment
    assert (last.seed, last.overlay["greetings"], last.topology.hosts) == (2, 1, 8)
    assert not sweep.is_plain


VARIANTS = """
seed = [1, 2]
duration_s = 20
[topology]
routers = 20
[[fault]]
at_s = 1
action = "kill-agent"
target = "h1"
[[variant]]
label = "big"
topology = {kind = "waxman", routers = 1640}
[[variant]]
topology = {kind = "transit-stub"}
overlay = {kind = "gossip", rounds = [10, 20]}
"""


def test_variants_set_several_keys_and_are_combined_with_the_lists(tmp_path: Path) -> None:
    sweep = sweep_of(tmp_path, VARIANTS)
    assert sweep.keys == (
        "variant", "topology.kind", "topology.routers", "seed", "overlay.kind", "overlay.rounds",
    )  # fmt: skip
    second = "kind=transit-stub, kind=gossip, rounds=[10, 20]"
    assert values_of(sweep) == [
        ("big", "waxman", 1640, 1, "hello", None),
        ("big", "waxman", 1640, 2, "hello", None),
        (second, "transit-stub", 20, 1, "gossip", 10),
        (second, "transit-stub", 20, 1, "gossip", 20),
        (second, "transit-stub", 20, 2, "gossip", 10),
        (second, "transit-stub", 20, 2, "gossip", 20),
    ]
    assert all(len(swept.experiment.faults) == 1 for swept in sweep.experiments)


def test_the_command_line_can_sweep_and_fix_keys(tmp_path: Path) -> None:
    changes = dict([parse_change("topology.hosts=[5, 6]"), parse_change("seed=3")])
    sweep = sweep_of(tmp_path, "seed = [1, 2]", **changes)
    assert values_of(sweep) == [(5,), (6,)]
    assert {swept.experiment.seed for swept in sweep.experiments} == {3}


def test_the_digest_changes_exactly_with_the_runs(tmp_path: Path) -> None:
    text = "seed = [1, 2]\n[topology]\nhosts = 5"
    digest = sweep_of(tmp_path, text).digest
    figure = "\n[[figure]]\nname = 'f'\nx = 'topology.hosts'\ny = 'rdp.mean'\n# a remark"
    assert sweep_of(tmp_path, text + figure).digest == digest
    (tmp_path / "elsewhere").mkdir()
    assert sweep_of(tmp_path / "elsewhere", text).digest == digest
    assert sweep_of(tmp_path, 'links = "best"\n' + text).digest == digest
    assert sweep_of(tmp_path, 'links = "netem"\n' + text).digest != digest
    assert sweep_of(tmp_path, text.replace("5", "6")).digest != digest
    assert sweep_of(tmp_path, text.replace("2]", "2, 3]")).digest != digest


def test_the_digest_changes_with_the_content_of_a_topology_file(tmp_path: Path) -> None:
    text = "seed = [1, 2]\n[topology]\nkind = 'file'\nfile = 'net.json'"
    (tmp_path / "net.json").write_text("{}")
    digest = sweep_of(tmp_path, text).digest
    (tmp_path / "net.json").write_text("{ }")
    assert sweep_of(tmp_path, text).digest != digest


def test_runs_have_readable_and_different_names(tmp_path: Path) -> None:
    names = [name_run(swept) for swept in sweep_of(tmp_path, VARIANTS).experiments]
    assert len(set(names)) == 6
    assert names[1].startswith("big-kind-waxman-routers-1640-kind-hello-s2-")
    assert all(len(name) < 130 and not set("/ =") & set(name) for name in names)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed = []", "seed: expected at least one value, found an empty list"),
        ("seed = [1, 'x']", r"seed\[1\]: expected a whole number, found 'x'"),
        ("seed = [1, -1]", r"seed\[1\]: expected 0 or more, found -1"),
        ("seed = [1, 2, 1]", r"seed\[2\]: expected each value once, found 1 again"),
        ("seed = [[1, 2]]", r"seed\[0\]: expected a single value, found a list: \[1, 2\]"),
        ("sede = [1]", r"sede\[0\]: expected a known key.* nearest known key is seed"),
        ("name = ['a', 'b']", "name: expected one text for all runs, found a list"),
        ("[[topology]]\nhosts = 3", r"topology\[0\]: expected a single value, found a table"),
        ("[topology]\nhosts = [3, 1]", r"topology.hosts\[1\]: expected 2 or more, found 1"),
        (
            "[topology]\nkind = ['waxman', 'ring']",
            r"topology.kind\[1\]: expected one of waxman, .*; found 'ring'",
        ),
        (
            "[overlay]\nkind = 'hello'\ngreetings = [1, 2.5]",
            r"overlay.greetings\[1\]: expected a whole number, found 2.5",
        ),
        (
            "[topology]\nkind = ['waxman', 'file']",
            r"topology.file: expected a file .*found none \(in the run with kind=file\)",
        ),
        ("variant = 3", r"variant: expected tables, as in \[\[variant\]\], found 3"),
        ("[[variant]]\nlabel = 'a'", r"variant\[0\]: expected at least one key beside the label"),
        ("[[variant]]\nlabel = 1", r"variant\[0\].label: expected a text, found 1"),
        ("[[variant]]\nname = 'x'", r"variant\[0\].name: expected a key that can differ"),
        (
            "[[variant]]\ntopology = {hosts = 5}\n[[variant]]\ntopology = {hosts = 'x'}",
            r"variant\[1\].topology.hosts: expected a whole number, found 'x'",
        ),
        (
            "[[variant]]\ntopology = {hosts = [5, 'x']}",
            r"variant\[0\].topology.hosts\[1\]: expected a whole number, found 'x'",
        ),
        (
            "[[variant]]\nlabel = 'a'\nseed = 1\n[[variant]]\nlabel = 'a'\nseed = 2",
            r"variant\[1\].label: expected one of its own, found 'a' as for variant\[0\]",
        ),
        (
            "[[variant]]\nlabel = 'a'\nseed = 1\n[[variant]]\nlabel = 'b'\nseed = 1",
            "expected each combination once, found the same run as variant=a, seed=1 and as",
        ),
        ("figure = 1", r"figure: expected tables, as in \[\[figure\]\], found 1"),
        ("[[figure]]\nname = 'f'", r"figure\[0\].x: expected a value, found none"),
        (
            "[[figure]]\nname = 'f'\nx = 'seed'\ny = 'rdp'\npanel = 'seed'",
            r"figure\[0\].panel: expected a known key.* is figure\[0\].panels",
        ),
        (
            "[[figure]]\nname = '../f'\nx = 'seed'\ny = 'rdp'",
            r"figure\[0\].name: expected letters, .* found '../f'",
        ),
        (
            "[[figure]]\nname = 'f'\nx = 'seed'\ny = 'rdp'\nlines = ['overlay.bogus']",
            r"figure\[0\].lines\[0\]: expected a key of the experiment, .*'overlay.bogus'",
        ),
        (
            "[[figure]]\nname = 'f'\nx = 'seed'\ny = 'rdp'\nlog_x = 1",
            r"figure\[0\].log_x: expected true or false, found 1",
        ),
    ],
)
def test_an_error_of_a_wrong_sweep_has_place_and_cause(
    text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ExperimentError, match=f"mine.toml: {message}") as caught:
        sweep_of(tmp_path, text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("master", "jobs", "chosen"),
    [
        ("local[7]", None, "local[7,3]"),
        ("local", None, "local[1,3]"),
        ("local[*]", 5, "local[5,3]"),
        (None, 2, "local[2,3]"),
        ("local[2,9]", None, "local[2,9]"),
        ("spark://there:7077", 2, "spark://there:7077"),
    ],
)
def test_local_masters_retry(master: str | None, jobs: int | None, chosen: str) -> None:
    assert choose_master(master, jobs) == chosen


@pytest.mark.parametrize("section", ["pubsub", "workload"])
def test_settings_of_pubsub_are_swept_in_either_section(section: str, tmp_path: Path) -> None:
    kinds = {"workload": 'kind = "content-zipf"', "pubsub": 'kind = "content"'}
    kinds[section] += "\nmerging = [true, false]"
    kinds |= {"overlay": 'kind = "tdo-walk"', "routing": 'kind = "mst"'}
    text = "".join(f"[{name}]\n{lines}\n" for name, lines in kinds.items())
    file = tmp_path / "mine.toml"
    file.write_text(text)
    sweep = load_sweep(file)
    key = f"{section}.merging"
    assert [swept.values for swept in sweep.experiments] == [{key: True}, {key: False}]
    assert [swept.experiment.pubsub["merging"] for swept in sweep.experiments] == [True, False]


def test_a_simulated_run_of_a_sweep_is_judged_by_its_metrics(tmp_path: Path) -> None:
    """Like a single run: a failed check makes it invalid, and it is not measured again."""
    sweep = sweep_of(tmp_path, 'name = "s"\nbackend = "simulation"\nduration_s = 2\nseed = [1, 2]\n'
                 "[topology]\nrouters = 5\nhosts = 3\n")  # fmt: skip
    measured: list[str] = []

    def measure(run: Path) -> None:
        measured.append(run.name)
        is_ok = not run.name.startswith("s2")
        check = {"ok": is_ok, "expected": 3, "found": 3 if is_ok else 2}
        (run / "analysis").mkdir(exist_ok=True)
        text = json.dumps({"checks": {"copies_sent": check}})
        (run / "analysis" / "metrics.json").write_text(text)

    directory = SweepDirectory.of(sweep, tmp_path / "results")
    carriers = {"simulation": partial(perform_here, measure=measure)}
    for _ in range(2):
        rows = play_sweep(sweep, directory, carriers, True, lambda _line: None)
        assert [row["verdict"] for row in rows] == ["valid", "invalid"]
    assert len(measured) == 2
    failed = {"verdict": "failed", "seed": 3, "path": None, "error": "h2: no such key", "hosts": 8}
    line, again = repeat_lines(directory.path, [*rows, failed], "mine.toml", ["hosts"])
    command = "tdo run mine.toml --set seed=3 --set hosts=8"
    assert again == f"failed, seed 3: h2: no such key: repeat it with {command}"
    said, _, run = line.partition(": repeat it with tdo rerun ")
    assert said.startswith("invalid, seed 2: packets and records disagree on copies_sent")
    assert (Path(run) / "experiment.toml").is_file()
