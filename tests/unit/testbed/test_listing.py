"""`tdo list`: kinds from the tables, and runs from their directories."""

import argparse
import json
import os
from pathlib import Path
from typing import Any

import pytest

from testbed.commands import listing
from testbed.experiment.catalogue import OFFLINE
from testbed.experiment.faults import FAULTS
from testbed.experiment.kinds import SECTIONS


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[list[str], Any]:
    """The lines that the command prints, and the JSON object at the end."""
    parser = argparse.ArgumentParser()
    listing.add_parser(parser.add_subparsers(required=True))
    options = parser.parse_args(["list", *map(str, arguments), "--json"])
    assert options.run(options) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    return lines, json.loads(last)


def test_every_kind_of_every_section_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    lines, found = run(capsys, "kinds")
    listed = [(kind["section"], kind["kind"]) for kind in found["kinds"]]
    offline = [(command, kinds) for command, (kinds, _) in OFFLINE.items()]
    tables = [*SECTIONS.items(), ("fault", FAULTS), *offline]
    assert listed == [(section, kind) for section, kinds in tables for kind in kinds]
    assert {"[topology]", "[overlay]", "[routing]", "[pubsub]", "[workload]", "[fault]"} <= {*lines}
    assert all(kind["description"] for kind in found["kinds"])


def test_a_kind_is_listed_with_types_defaults_and_ranges(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines, found = run(capsys, "kinds")
    (walk,) = [kind for kind in found["kinds"] if kind["kind"] == "tdo-walk"]
    settings = {setting["name"]: setting for setting in walk["settings"]}
    assert settings["ttl"] == {
        "name": "ttl", "type": "int", "default": 100, "is_required": False,
        "range": "1 to 65535", "choices": [], "description": "maximum number of hops of a walk",
    }  # fmt: skip
    assert settings["heuristic"]["choices"][:3] == ["dworst", "dbest", "mlink"]
    (line,) = [line for line in lines if line.split()[:1] == ["ttl"]]
    assert line.split()[1:3] == ["int", "100"] and line.endswith(
        "maximum number of hops of a walk (1 to 65535)"
    )


def test_a_fault_is_listed_with_its_keys(capsys: pytest.CaptureFixture[str]) -> None:
    _, found = run(capsys, "kinds")
    needs = {
        kind["kind"]: [setting["name"] for setting in kind["settings"]]
        for kind in found["kinds"]
        if kind["section"] == "fault"
    }
    assert needs["kill-agent"] == ["at_s", "target"]
    assert needs["delay"] == ["at_s", "target", "delay_us"]


def write_run(folder: Path, at_s: int, verdict: str | None, **experiment: Any) -> None:
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"experiment": experiment}))
    if verdict:
        (folder / "verdict.json").write_text(json.dumps({"verdict": verdict}))
    os.utime(folder / "run.json", (at_s, at_s))


def test_runs_are_listed_newest_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = tmp_path / "a", tmp_path / "b" / "sweep-1" / "runs" / "x-s3-0"
    write_run(a / "old", 100, "valid", name="a", backend="emulation", seed=1)
    write_run(a / "new.partial", 300, None, name="a", backend="simulation", seed=2)
    write_run(b, 200, "degraded", name="b", backend="simulation", seed=3)
    (a / "latest").symlink_to("old")
    (a / "no-run").mkdir()
    (a / "no-run" / "run.json").write_text("{")
    lines, found = run(capsys, "runs", "--out", tmp_path)
    keys = ("name", "backend", "seed", "verdict")
    assert [tuple(each[key] for key in keys) for each in found["runs"]] == [
        ("a", "simulation", 2, "not complete"),
        ("b", "simulation", 3, "degraded"),
        ("a", "emulation", 1, "valid"),
    ]
    assert found["runs"][1]["path"] == str(b)
    assert lines[2].split()[:4] == ["1970-01-01T00:01:40Z", "a", "emulation", "seed"]


def test_without_runs_the_output_explains_how_to_make_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, found = run(capsys, "runs", "--out", tmp_path)
    assert found == {"runs": []} and "`tdo run FILE` makes one" in lines[0]
