"""`tdo reproduce` with real runs: table, page and exit status."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from testbed.cli import main
from tests.fixtures.claim_runs import reproduce_here

TINY = 'variant=[{label = "Waxman", topology = {kind = "waxman", routers = 20}}]'
CHANGES = ("--set", "topology.hosts=12", "--set", TINY)


def spoil(folder: Path, runs: str) -> None:
    """Change one run of a sweep to look like an emulated one on a busy machine."""
    (verdict,) = folder.glob(f"{runs}/verdict.json")
    verdict.write_text(verdict.read_text().replace('"valid"', '"degraded"'))


def outcome(capsys: pytest.CaptureFixture[str]) -> tuple[str, list[dict[str, Any]]]:
    text = capsys.readouterr().out
    claims = json.loads(text.splitlines()[-1])["claims"]
    assert all({"id", "paper", "ours", "interval", "holds", "runs"} <= c.keys() for c in claims)
    return text, claims


def test_example1_is_reproduced_once_and_then_reused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reproduce_here(tmp_path, "T12") == 0
    text, (claim,) = outcome(capsys)
    assert (claim["id"], claim["holds"], claim["runs"]) == ("T12", True, 6)
    low, high = claim["interval"]
    assert 10 < low < high < 30  # percent of messages saved
    assert re.search(r"^T12 .* yes$", text, re.MULTILINE)

    page = (tmp_path / "reproduce" / "small" / "T12.html").read_text()
    assert page.count("<svg") == 2
    ((commit, count),) = claim["commits"].items()
    assert count == 6
    assert f"<dt>Runs</dt><dd>6 of commit {commit}</dd>" in page
    assert "<!--" not in page

    assert reproduce_here(tmp_path, "t12") == 0
    again, claims = outcome(capsys)
    assert "6 runs, 6 of them done before, 0 to do" in again
    assert claims == [claim]


def test_only_the_sources_of_a_claim_are_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reproduce_here(tmp_path, "T3", *CHANGES) == 0
    text, (claim,) = outcome(capsys)
    assert "45 runs, 0 of them done before, 3 to do" in text
    assert "60 runs, 3 of them done before, 3 to do" in text  # fig5-targets, for its figure
    assert claim["runs"] == 6  # runs of fig5-limits, and of fig5-readings for information
    assert isinstance(claim["holds"], bool)
    (table,) = tmp_path.glob("fig5-limits/sweep-*/runs.csv")
    assert len(table.read_text().splitlines()) == 4
    assert not (tmp_path / "reproduce/small/T3.html").exists()  # has the runs of unchanged sweeps
    (written,) = tmp_path.glob("reproduce/small/T3-topology.hosts-12-variant-label-Waxman-*.html")
    page = written.read_text()
    assert "changed by topology.hosts=12" in page
    assert re.findall('<svg role=.img. aria-label=.([^ ]*)"', page) == [
        "T3-fig5-targets-fig5cd-targets",
        "T3-fig5-targets-fig5cd-targets-without",
        "T3-fig5-limits-fig5cd",
        "T3-fig5-limits-fig5cd-without",
        "T3-fig5-readings-readings-rdp",
    ]

    assert reproduce_here(tmp_path, "T5", *CHANGES) == 1  # no transit-stub networks
    text, _ = outcome(capsys)
    assert (
        "12 runs, 3 of them done before, 9 to do" in text
    )  # MLink without limit, from the other command


def test_runs_that_are_not_valid_leave_a_claim_undecided(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reproduce_here(tmp_path, "T3", *CHANGES) == 0
    _, (claim,) = outcome(capsys)
    spoil(tmp_path, "fig5-targets/sweep-*/runs/*targets-5*-s1-*")
    assert reproduce_here(tmp_path, "T3", *CHANGES) == 3
    _, (again,) = outcome(capsys)
    assert again == claim  # This run is only for the figure.
    spoil(tmp_path, "fig5-limits/sweep-*/runs/*-s1-*")
    assert reproduce_here(tmp_path, "T3", *CHANGES) == 3
    _, (again,) = outcome(capsys)
    assert (again["holds"], again["runs"], again["failed"]) == (None, 5, 1)


def test_failed_runs_are_reported_and_leave_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fault = 'fault=[{at_s = 1, action = "kill-agent", target = "h99"}]'
    assert reproduce_here(tmp_path, "T12", "--set", fault) == 1
    text, (claim,) = outcome(capsys)
    assert (claim["holds"], claim["runs"], claim["failed"]) == (None, 0, 6)
    assert claim["ours"].startswith("undecided: ")
    assert "h99" in text
    (page,) = (tmp_path / "reproduce" / "small").glob("T12-fault-*.html")
    assert "was not drawn" in page.read_text()


def test_an_unknown_claim_is_a_wrong_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "T1", "T55"]) == 2
    assert capsys.readouterr().err.startswith("tdo: claim T55: expected one of T1, ")


def test_claims_without_a_network_are_computed_and_reused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = ("--set", "routers=[100, 1640]", "--set", "seed=[1, 2, 3]")
    assert reproduce_here(tmp_path, "G1", *sizes) == 0
    text, (claim,) = outcome(capsys)
    assert "6 points, 0 of them done before, 6 to do" in text
    assert (claim["id"], claim["holds"], claim["runs"], claim["failed"]) == ("G1", True, 3, 0)
    low, high = claim["interval"]
    assert 5.0 < low < high < 5.5 and claim["interval_of"] == "mean hops"
    (written,) = tmp_path.glob("reproduce/small/G1-*.html")
    page = written.read_text()
    assert re.findall('<svg role=.img. aria-label=.([^ ]*)"', page) == [
        "G1-waxman-networks-waxman-hops",
        "G1-waxman-networks-waxman-degree",
    ]
    assert 'download="waxman-networks-points.csv"' in page and "<!--" not in page

    assert reproduce_here(tmp_path, "g1", *sizes) == 0
    again, claims = outcome(capsys)
    assert "6 points, 6 of them done before, 0 to do" in again
    assert claims == [claim]


def test_a_failed_point_is_reported_and_leaves_a_claim_undecided(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ("--set", "routers=[2, 1640]", "--set", "seed=[1, 2, 3]")
    assert reproduce_here(tmp_path, "G1", *few) == 1
    text, (claim,) = outcome(capsys)
    assert "failed: routers: expected more routers than links_per_router" in text
    assert (claim["holds"], claim["failed"]) == (True, 0)  # The others were for the figures.

    (point,) = tmp_path.glob("waxman-networks/points/routers-1640-s2-*.json")
    point.unlink()
    point.mkdir()  # can be neither read nor written
    with pytest.raises(OSError):
        reproduce_here(tmp_path, "G1", *few)
    (table,) = tmp_path.glob("waxman-networks/computation-*/points.csv")
    assert [line.split(",")[1] for line in table.read_text().splitlines() if "1640" in line] == [
        "1", "3",
    ]  # fmt: skip


def test_changes_apply_to_the_runs_and_computations_that_have_the_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = ("--set", "seed=[4, 5, 6]", "--set", "routers=1584", "--set", "duration_s=70")
    assert reproduce_here(tmp_path, "T12", "G2", *changes) == 0
    _, (example, networks) = outcome(capsys)
    assert (example["id"], example["runs"]) == ("T12", 6)
    assert (networks["id"], networks["runs"]) == ("G2", 3)
    names = [path.name[:14] for path in sorted(tmp_path.glob("*/points/*.json"))]
    assert names == ["routers-1584-s", "routers-1584-s", "routers-1584-s"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["G", "--set", "hosts=3"],
            "--set: expected one of routers, seed, as these claims need no",
        ),
        (["G1", "--set", "routers=many"], "--set: waxman-networks: routers: expected different"),
        (["G1", "X1"], "claim X1: expected one of T1, T2, "),
        (["Q"], "claim Q: expected one of T1, T2, "),
    ],
)
def test_a_wrong_command_is_refused_in_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", *arguments]) == 2
    found = capsys.readouterr().err
    assert found.startswith(f"tdo: {message}") and found.count("\n") == 1


def test_claims_are_listed_with_paper_and_section(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--list", "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("T  Tariq, Koldehofe and Rothermel, “Efficient content-based ")
    assert lines[1] == "   6.1 Performance of TDO"
    claims = json.loads(lines[-1])["claims"]
    ids = [claim["id"] for claim in claims]
    small_worlds = [f"S{number}" for number in range(1, 5)]
    beaconvey = ["B1", "B2", "B4", "B5", "B3"]  # in the order of the paper's sections
    discovery = [f"T{number}" for number in range(1, 13)]
    assert ids == [*discovery, *small_worlds, *beaconvey, "G1", "G2"]
    assert all(any(line.startswith(f"     {id_} ") for line in lines) for id_ in ids)
    assert (claims[11]["section"], claims[11]["figure"]) == ("1 Introduction", "1")
    assert claims[-1]["paper"].startswith("Networks of the programs BRITE")
    assert claims[-1]["needs"] == ["transit-stub-networks"]

    assert main(["reproduce", "--list", "g2"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.slow
def test_the_command_distributes_runs_on_spark(tmp_path: Path) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("tdo"), "reproduce", "T12", "--out", tmp_path, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (claim,) = json.loads(done.stdout.splitlines()[-1])["claims"]
    assert (claim["holds"], claim["runs"]) == (True, 6)
