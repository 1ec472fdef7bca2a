"""The tables of agents at one time, and positions in the form of `tdo overlay`."""

import json
from pathlib import Path

import pytest

from analysis.agent_tables import TableEntry, read_agent_tables
from analysis.metrics.evidence import Evidence, Input
from analysis.metrics.file import measure_run
from analysis.overlay_file import compose_overlay
from analysis.run_directory import open_run
from tests.fixtures.overlay_runs import END_US, Recorder
from topologies.hosts import attach_hosts
from topologies.overlays.overlay_file import load_overlay
from topologies.waxman import generate_waxman

RANK = 1 << 40


@pytest.fixture
def recorder() -> Recorder:
    found = Recorder(attach_hosts(generate_waxman(6, seed=1), 4, 1))
    found.start()
    return found


def write(recorder: Recorder, path: Path, *, directed: bool, kind: str = "ring") -> Path:
    recorder.end(sent=1)
    recorder.write(path)
    experiment = {"overlay": {"kind": kind, "b": 4}, "seed": 3, "duration_s": END_US / 1e6}
    about = {"experiment": experiment, "overlay": {"is_directed": directed}}
    (path / "run.json").write_text(json.dumps(about))
    return path


def link(recorder: Recorder, host: str, peer: str, role: str, time_us: int = 1) -> None:
    recorder.record(host, "neighbour_added", time_us, peer=recorder.address(peer), role=role)


def unlink(recorder: Recorder, host: str, peer: str, time_us: int, **role: str) -> None:
    values = {"peer": recorder.address(peer), "reason": "test", **role}
    recorder.record(host, "neighbour_removed", time_us, **values)


def test_each_role_of_a_neighbour_is_added_and_removed_separately(
    recorder: Recorder, tmp_path: Path
) -> None:
    link(recorder, "h1", "h2", "leaf")
    link(recorder, "h1", "h2", "table", 2)
    link(recorder, "h1", "h3", "leaf", 3)
    link(recorder, "h1", "h4", "table", 4)
    unlink(recorder, "h1", "h2", 5, role="leaf")
    unlink(recorder, "h1", "h3", 6, role="table")  # a role that it does not have
    unlink(recorder, "h1", "h4", 7)
    run = open_run(write(recorder, tmp_path / "run", directed=True))
    tables = read_agent_tables(run)
    assert tables.entries == (TableEntry(0, 1, "table"), TableEntry(0, 2, "leaf"))
    assert run.overlay.links == {("h1", "h2"), ("h1", "h3")}


def test_table_entries_are_the_first_edges(recorder: Recorder, tmp_path: Path) -> None:
    for host, peer, role in (("h2", "h1", "leaf"), ("h1", "h3", "leaf"), ("h1", "h4", "table"),
                             ("h1", "h2", "leaf"), ("h1", "h3", "table")):  # fmt: skip
        link(recorder, host, peer, role)
    run = open_run(write(recorder, tmp_path / "run", directed=True, kind="pastry"))
    overlay = compose_overlay(run, read_agent_tables(run))
    assert overlay.edges.tolist() == [[0, 2], [0, 3], [0, 1], [1, 0]]
    assert (overlay.kind, dict(overlay.settings), overlay.seed) == ("pastry", {"b": 4}, 3)


def test_links_of_an_undirected_overlay_have_both_ends(recorder: Recorder, tmp_path: Path) -> None:
    for host, peer in (("h2", "h1"), ("h1", "h2"), ("h3", "h1")):
        link(recorder, host, peer, "level")
    run = open_run(write(recorder, tmp_path / "run", directed=False))
    assert compose_overlay(run, read_agent_tables(run)).edges.tolist() == [[0, 1]]


def test_tables_are_those_at_the_time_when_all_agents_were_ready(
    recorder: Recorder, tmp_path: Path
) -> None:
    link(recorder, "h1", "h2", "finger", 10)
    for host in recorder.names:
        recorder.record(host, "ready", 20)
    unlink(recorder, "h1", "h2", 21)
    link(recorder, "h1", "h3", "finger", 21)
    path = write(recorder, tmp_path / "run", directed=True)
    tables = read_agent_tables(open_run(path))
    assert (tables.at_us, tables.is_ready) == (20, True)
    assert tables.entries == (TableEntry(0, 1, "finger"),)


@pytest.mark.parametrize(
    ("positions", "modulus", "expected"),
    [
        ((2, 0, 3, 1), 4 * RANK, [2, 0, 3, 1]),  # a full ring in ranks
        ((5, 1 << 60, 7, 9), None, [5, 1 << 60, 7, 9]),  # of 2^64
        ((0, 1, 2, 3), 8 * RANK, None),  # half a ring: stretched
    ],
)
def test_positions_are_ranks_on_a_full_ring(
    positions: tuple[int, ...],
    modulus: int | None,
    expected: list[int] | None,
    recorder: Recorder,
    tmp_path: Path,
) -> None:
    scale = RANK if modulus else 1
    size = {"modulus": f"{modulus:x}"} if modulus else {}
    for host, position in zip(recorder.names, positions, strict=True):
        recorder.record(host, "placed", 1, position=f"{position * scale:016x}", **size)
    link(recorder, "h1", "h2", "successor")
    path = write(recorder, tmp_path / "run", directed=True)
    measure_run(path)
    found = load_overlay(path / "analysis" / "overlay.json").position
    assert found is not None
    if expected is not None:
        assert found.tolist() == expected
        return
    assert modulus is not None
    for number, place in enumerate(found.tolist()):  # the last key that maps onto the position
        assert place * modulus >> 64 == positions[number] * RANK
        assert (place + 1) * modulus >> 64 == positions[number] * RANK + 1


def test_a_missing_position_is_reported(recorder: Recorder, tmp_path: Path) -> None:
    recorder.record("h1", "placed", 1, id=f"{7:016x}")
    link(recorder, "h1", "h2", "table")
    path = write(recorder, tmp_path / "run", directed=True, kind="pastry")
    reason = Evidence(open_run(path)).why_missing(Input.TABLES)
    assert reason == "expected a place of every agent, found none of 3, h2 first"
    assert measure_run(path)["notes"]["table_entries"] == reason
    assert not (path / "analysis" / "overlay.json").exists()


def test_identifiers_are_kept(recorder: Recorder, tmp_path: Path) -> None:
    for number, host in enumerate(recorder.names):
        recorder.record(host, "placed", 1, id=f"{number + (1 << 63):016x}")
    link(recorder, "h1", "h2", "table")
    path = write(recorder, tmp_path / "run", directed=True, kind="pastry")
    measure_run(path)
    found = load_overlay(path / "analysis" / "overlay.json").ids
    assert found is not None and found.tolist() == [n + (1 << 63) for n in range(4)]


def test_tables_of_the_pubsub_layer_are_its_last_counts(recorder: Recorder, tmp_path: Path) -> None:
    link(recorder, "h1", "h2", "finger")
    for host in recorder.names:
        recorder.record(host, "ready", 20)
    for host, time_us, entries, peers in (("h1", 5, 1, 1), ("h1", 15, 7, 4), ("h2", 20, 3, 3),
                                          ("h1", 21, 9, 9)):  # fmt: skip
        recorder.record(host, "table_counted", time_us, entries=entries, peers=peers)
    found = measure_run(write(recorder, tmp_path / "run", directed=True))["table_entries"]
    counts = {"mean": 10 / 4, "max": 7, "peers_mean": 7 / 4, "peers_max": 4}
    assert found["pubsub"] == counts and found["mean"] == 1 / 4
