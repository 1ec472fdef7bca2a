"""`tdo init`: the experiment file is valid, and stays valid with any of its keys."""

import argparse
import tomllib
from pathlib import Path

import pytest

from testbed.commands import init
from testbed.errors import UsageError
from testbed.experiment.catalogue import describe_settings
from testbed.experiment.file import Experiment, load_experiment
from testbed.experiment.kinds import SECTIONS
from testbed.experiment.template import template


def write(file: Path) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser()
    init.add_parser(parser.add_subparsers(required=True))
    options = parser.parse_args(["init", str(file)])
    status: int = options.run(options)
    return status


def test_the_file_is_an_experiment_with_all_sections(tmp_path: Path) -> None:
    assert write(tmp_path / "mine.toml") == 0
    experiment = load_experiment(tmp_path / "mine.toml")
    assert experiment.name == "mine" and experiment.topology.kind == "waxman"
    assert {*experiment.layers} == {"overlay", "routing", "pubsub"} and experiment.workload


def test_the_file_has_all_keys_with_their_defaults(tmp_path: Path) -> None:
    shown = [line.removeprefix("# ") for line in template().splitlines()]
    shown = [line for line in shown if not line.startswith("kind = ")]
    chosen = [line for line in template().splitlines() if line.startswith("kind = ")]
    for section, kind in zip(SECTIONS, chosen, strict=True):
        shown.insert(shown.index(f"[{section}]") + 1, kind)
    (tmp_path / "all.toml").write_text("\n".join(shown[4:]))
    experiment = load_experiment(tmp_path / "all.toml")
    document = tomllib.loads((tmp_path / "all.toml").read_text())
    top = {one.name for one in describe_settings(Experiment)} - {"name", "folder", "data", "faults"}
    assert {*document} == top | {"fault"} and len(experiment.faults) == 1
    assert {*document["overlay"]} == {*experiment.overlay}
    assert {*document["workload"]} == {*experiment.workload}


def test_every_kind_is_named() -> None:
    named = [
        line.partition(" = ")[2].split()[0] for line in template().splitlines() if "kind =" in line
    ]
    assert named == [f'"{kind}"' for kinds in SECTIONS.values() for kind in kinds]


def test_an_existing_file_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("kept")
    with pytest.raises(UsageError, match="exists already"):
        write(tmp_path / "mine.toml")
    assert (tmp_path / "mine.toml").read_text() == "kept"
