"""Computations: points computed once, stored one by one, retried, and outdated by changed code."""

import csv
import json
import math
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from analysis.claims import Computation, find_claims
from testbed.commands.claim_evidence import load_sources
from testbed.errors import UsageError
from testbed.sweeps.computation_directory import ComputationDirectory
from testbed.sweeps.computations import play_computation
from testbed.sweeps.points import GiveUp, PointCarrier, Work, compute_here
from testbed.sweeps.rows import Row, locked
from topologies.errors import TopologyError

ROOT = Path(__file__).parents[3]
PACKAGES = ("topologies", "workloads", "agents", "testbed", "analysis")

calls: list[tuple[int, int]] = []


@pytest.fixture(autouse=True)
def no_calls() -> Iterator[None]:
    calls.clear()
    yield


def power(seed: int, base: int) -> dict[str, Any]:
    calls.append((base, seed))
    return {"power": {"of": base**seed}}


def fail_at_two(seed: int, base: int) -> dict[str, Any]:
    calls.append((base, seed))
    if (base, seed) == (2, 1):
        raise RuntimeError("no\nluck")
    return {"value": base}


def fail_twice(seed: int, base: int) -> dict[str, Any]:
    calls.append((base, seed))
    if calls.count((base, seed)) < 3:
        raise OSError("not yet")
    return {"value": base}


def refuse(seed: int, base: int) -> dict[str, Any]:
    calls.append((base, seed))
    raise TopologyError(f"base: expected 7, found {base}")


def not_a_number(seed: int, base: int) -> dict[str, Any]:
    return {"value": math.nan * base * seed}


def computation(function: Any, bases: Sequence[int] = (2, 3), seeds: Sequence[int] = (1, 2)) -> Any:
    return Computation("powers", function, {"base": tuple(bases)}, tuple(seeds))


def play(
    results: Path, some: Any, said: list[str] | None = None, carrier: PointCarrier = compute_here
) -> list[Row]:
    lines = [] if said is None else said
    rows, _ = play_computation(some, results, carrier, lines.append)
    return rows


def points(results: Path) -> dict[str, int]:
    return {path.name: path.stat().st_ino for path in (results / "powers" / "points").iterdir()}


def table(results: Path, some: Any) -> list[dict[str, str]]:
    path = ComputationDirectory.of(some, results).path / "points.csv"
    with path.open() as file:
        return list(csv.DictReader(file))


def test_a_point_is_a_row_and_a_file(tmp_path: Path) -> None:
    said: list[str] = []
    rows = play(tmp_path, computation(power), said)
    assert [(row["base"], row["seed"], row["power.of"]) for row in rows] == [
        (2, 1, 2), (2, 2, 4), (3, 1, 3), (3, 2, 9),
    ]  # fmt: skip
    assert all((row["verdict"], row["error"]) == ("valid", None) for row in rows)
    assert said[0] == "4 points, 0 of them done before, 4 to do"
    assert said[1].startswith("1 of 4: base=2, seed=1: valid (0.0 s); about 0 s left")
    assert [line["power.of"] for line in table(tmp_path, computation(power))] == list("2439")
    folder = ComputationDirectory.of(computation(power), tmp_path).path
    content = json.loads((folder / rows[3]["path"]).read_text())
    assert (content["values"], content["seed"]) == ({"base": 3}, 2)
    assert content["result"] == {"power": {"of": 9}}


def test_finished_points_are_reused_by_any_command(tmp_path: Path) -> None:
    play(tmp_path, computation(power))
    before, said = points(tmp_path), list[str]()
    more = computation(power, (2, 3, 5), (1, 2, 3))
    rows = play(tmp_path, more, said)
    assert said[0] == "9 points, 4 of them done before, 5 to do"
    assert sorted(calls[4:]) == [(2, 3), (3, 3), (5, 1), (5, 2), (5, 3)]
    assert [row["power.of"] for row in rows] == [2, 4, 8, 3, 9, 27, 5, 25, 125]
    assert before.items() <= points(tmp_path).items()
    assert play(tmp_path, more) == rows and len(calls) == 9


def test_an_interrupted_computation_keeps_finished_points_and_continues(tmp_path: Path) -> None:
    def interrupted(
        work: Work, give_up: GiveUp, tasks: Sequence[str]
    ) -> Generator[tuple[str, str]]:
        yield from compute_here(work, give_up, tasks[:2])
        raise KeyboardInterrupt

    some = computation(power)
    with pytest.raises(KeyboardInterrupt):
        play(tmp_path, some, carrier=interrupted)
    assert len(points(tmp_path)) == 2
    assert [(line["base"], line["seed"]) for line in table(tmp_path, some)] == [
        ("2", "1"),
        ("2", "2"),
    ]

    said: list[str] = []
    assert len(play(tmp_path, some, said)) == len(table(tmp_path, some)) == 4
    assert said[0] == "4 points, 2 of them done before, 2 to do"
    assert calls == [(2, 1), (2, 2), (3, 1), (3, 2)]


def test_only_required_points_are_computed(tmp_path: Path) -> None:
    rows, _ = play_computation(
        computation(power),
        tmp_path,
        compute_here,
        [].append,
        lambda point: point.values["base"] == 3,
    )
    assert [row["base"] for row in rows] == [3, 3]
    assert calls == [(3, 1), (3, 2)]


def test_a_failed_point_is_retried_and_affects_no_other(tmp_path: Path) -> None:
    some, said = computation(fail_at_two), list[str]()
    rows = play(tmp_path, some, said)
    assert [row["verdict"] for row in rows] == ["failed", "valid", "valid", "valid"]
    assert rows[0]["error"] == "RuntimeError: no luck"
    assert calls.count((2, 1)) == 3 and len(calls) == 6
    assert "base=2, seed=1: RuntimeError: no luck; about" in said[1]
    (noted,) = (ComputationDirectory.of(some, tmp_path).path / "failures").iterdir()
    assert "in fail_at_two" in noted.read_text()
    assert len(points(tmp_path)) == 3

    said.clear()
    play(tmp_path, some, said)  # retries it once more
    assert said[0] == "4 points, 3 of them done before, 1 to do"


def test_the_third_attempt_counts(tmp_path: Path) -> None:
    rows = play(tmp_path, computation(fail_twice))
    assert [row["verdict"] for row in rows] == ["valid"] * 4
    assert len(calls) == 12


def test_wrong_arguments_are_not_tried_again(tmp_path: Path) -> None:
    rows = play(tmp_path, computation(refuse, [2], [1]))
    assert [row["error"] for row in rows] == ["base: expected 7, found 2"]
    assert calls == [(2, 1)]


def test_a_result_that_is_no_number_fails(tmp_path: Path) -> None:
    (row,) = play(tmp_path, computation(not_a_number, [2], [1]))
    assert row["verdict"] == "failed" and row["error"].startswith("ValueError: ")
    assert points(tmp_path) == {}


@pytest.mark.parametrize("content", ["", '{"result": {"power"', "[1]", "{}"])
def test_a_damaged_point_is_computed_again(tmp_path: Path, content: str) -> None:
    rows = play(tmp_path, computation(power))
    damaged = sorted((tmp_path / "powers" / "points").iterdir())[0]
    damaged.write_text(content)
    again = play(tmp_path, computation(power))
    assert [row["power.of"] for row in again] == [row["power.of"] for row in rows]
    assert len(calls) == 5


def test_only_one_command_at_a_time_works_on_a_computation(tmp_path: Path) -> None:
    folder = ComputationDirectory.of(computation(power), tmp_path).path
    message = "expected no other tdo on this computation"
    with locked(folder, "computation"), pytest.raises(UsageError, match=message):
        play(tmp_path, computation(power))


def digests(root: Path) -> list[str]:
    """The code digests of two functions, with the code below a folder."""
    script = (
        "from testbed.sweeps.code_digest import code_digest as digest\n"
        "from analysis.claims.generators.networks import measure_waxman\n"
        "from topologies.addresses import choose_prefix\n"
        "print(digest(measure_waxman), digest(choose_prefix))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_the_digest_of_a_function_depends_on_the_code_that_it_uses(tmp_path: Path) -> None:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pyc*"))
    first = digests(tmp_path)
    for module in ("analysis/claims/page.py", "topologies/picture.py", "testbed/cli.py"):
        with (tmp_path / module).open("a") as file:
            file.write("\n# another line\n")
    assert digests(tmp_path) == first
    with (tmp_path / "topologies/plane.py").open("a") as file:  # imported by the generators
        file.write("\n# another line\n")
    waxman, addresses = digests(tmp_path)
    assert waxman != first[0]
    assert addresses == first[1]


def test_points_of_other_code_are_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(tmp_path, computation(power))
    monkeypatch.setattr(
        "testbed.sweeps.computation_directory.code_digest", lambda _: "of another version"
    )
    play(tmp_path, computation(power))
    assert len(calls) == len(points(tmp_path)) == 8


def count_lines(seed: int, graph: str) -> dict[str, Any]:
    calls.append((len(graph), seed))
    return {"lines": len(Path(graph).read_text().splitlines()) if graph else 0}


def with_graph(path: str) -> Computation:
    files = {"graph": ("social/graph.txt", "graph.txt")}
    return Computation("powers", count_lines, {"graph": (path,)}, (1,), files=files)


def test_the_content_of_a_data_file_determines_a_point_and_its_path_does_not(
    tmp_path: Path,
) -> None:
    files = [tmp_path / name for name in ("one.txt", "two.txt")]
    for file in files:
        file.write_text("0 1\n1 2\n")
    found = [play(tmp_path / "r", with_graph(str(file)))[0]["lines"] for file in (*files, files[0])]
    assert found == [2, 2, 2] and len(calls) == 1
    files[0].write_text("0 1\n")
    (row,) = play(tmp_path / "r", with_graph(str(files[0])))
    assert (row["lines"], len(calls)) == (1, 2) and "graph" not in row
    (row,) = play(tmp_path / "r", with_graph(""))
    assert (row["lines"], len(calls)) == (0, 3)


def test_data_files_are_searched_in_the_data_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def found() -> Any:
        sources = load_sources(claims, "small", {"sample": "1K"}, "simulation", tmp_path)
        return sources["beaconvey-twitter"].parameters["graph"]  # type: ignore[union-attr]

    claims = find_claims(["B2"])
    assert found() == ("",)
    assert (
        f"beaconvey-twitter: expected social/out.ego-twitter or out.ego-twitter in {tmp_path}, "
        "found none; a synthetic graph is used instead"
    ) in capsys.readouterr().out
    (tmp_path / "social").mkdir()
    for place in (tmp_path / "out.ego-twitter", tmp_path / "social" / "out.ego-twitter"):
        place.write_text("0 1\n")
        assert found() == (str(place),)
    assert capsys.readouterr().out == ""
