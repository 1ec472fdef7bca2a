"""Metrics of the discovery overlay: by hand, and by brute force on random networks."""

import json
from itertools import pairwise, permutations
from pathlib import Path
from random import Random
from typing import Any

import networkx as nx
import pytest

from analysis.metrics.evidence import NOT_ANALYSED
from analysis.metrics.file import measure_run
from analysis.metrics.metric import Group
from analysis.metrics.table import METRICS
from tests.fixtures.overlay_runs import END_US, Recorder, random_overlay
from topologies.hosts import attach_hosts, make_anonymous, make_asymmetric
from topologies.underlay import Channel, Host, Link, Router, Underlay
from topologies.waxman import generate_waxman


@pytest.fixture
def line() -> Recorder:
    """h1, h2, h3 on routers r1 -10- r2 -20- r3 in a row, and r4 behind r1 without a host."""
    links = (
        Link.symmetric("r1", "r2", 10),
        Link.symmetric("r2", "r3", 20),
        Link.symmetric("r1", "r4", 5),
        *(Link.symmetric(f"h{n}", f"r{n}", n) for n in (1, 2, 3)),
    )
    routers = tuple(Router(f"r{n}") for n in (1, 2, 3, 4))
    return Recorder(Underlay(routers, links, tuple(Host(f"h{n}") for n in (1, 2, 3))))


def chain(recorder: Recorder) -> Recorder:
    """The overlay h1 - h2 - h3, with the route from h1 to h2 inferred, and all agents running."""
    recorder.start()
    recorder.join("h1", "h2")
    recorder.join("h2", "h3")
    recorder.infer("h1", "h2")
    recorder.end(sent=9, sent_Join=1, sent_Connect=2, sent_Accept=3, sent_Walk=4)
    return recorder


def test_metrics_of_a_line_are_those_computed_by_hand(line: Recorder, tmp_path: Path) -> None:
    metrics = measure_run(chain(line).write(tmp_path / "run"))
    # h1 to h3 takes 1 + 10 + 2 + 2 + 20 + 3 over h2, and 1 + 30 + 3 directly.
    assert metrics["rdp"]["mean"] == pytest.approx((1 + 1 + 38 / 34) / 3)
    assert metrics["rdp"]["max"] == pytest.approx(38 / 34)
    assert metrics["rdp"]["p50"] == 1
    assert metrics["rdp"]["of_sums"] == pytest.approx((13 + 25 + 38) / (13 + 25 + 34))
    assert metrics["rdp_without_last_miles"]["max"] == 1
    # Trees cross 3 + 3 links from every peer; unicast 3 to neighbours, 4 between the ends.
    assert metrics["stress_ratio"] == pytest.approx(18 / 20)
    assert metrics["stress_ratio_pairs"] == pytest.approx(24 / 20)
    # Of 6 links, all but r1-r4 are on routes between peers; probing found 3 of them.
    assert metrics["discovered_links"] == pytest.approx(3 / 5)
    assert metrics["discovered_links_of_all"] == pytest.approx(3 / 6)
    assert metrics["mapped_links"] == metrics["mapped_links_between_routers"] == 1
    assert metrics["discovered_links_between_routers"] == 1 / 2  # r1-r2, but not r2-r3
    assert metrics["inferences"] == pytest.approx(1 / 6)
    assert metrics["inferences_count"] == 1
    assert metrics["inference_score"]["precision"] == metrics["inference_score"]["recall"] == 1
    assert metrics["routes_true"] == 1
    assert metrics["degree"] == {"mean": 4 / 3, "max": 2, "histogram": {"1": 2, "2": 1}}
    assert metrics["components"] == 1
    assert metrics["unreachable_pairs"] == 0
    assert metrics["join_messages"] == 3 * (1 + 2 + 3)
    assert metrics["messages_by_kind"] == {"Accept": 9, "Connect": 6, "Join": 3, "Walk": 12}
    reasons = set(metrics["notes"].values()) - {"no event was published", NOT_ANALYSED}
    assert reasons == {
        "no agent derived a route", "nothing failed in this run",
        "of the discovery overlay, over all pairs of peers: no event was published",
        "no time at which all agents were ready is known", "the workload has no topics",
        "counted by agents that ran to the end",
    }  # fmt: skip
    assert metrics["rdp_over"] == "pairs"


def test_each_direction_has_its_own_delay(tmp_path: Path) -> None:
    links = (
        Link("r1", "r2", Channel(10), Channel(40)),
        Link("r2", "r3", Channel(10), Channel(10)),
        Link("h1", "r1", Channel(1), Channel(7)),
        Link("h2", "r2", Channel(2), Channel(8)),
        Link("h3", "r3", Channel(3), Channel(9)),
    )
    routers = tuple(Router(f"r{n}") for n in (1, 2, 3))
    hosts = tuple(Host(f"h{n}") for n in (1, 2, 3))
    metrics = measure_run(chain(Recorder(Underlay(routers, links, hosts))).write(tmp_path / "run"))
    there, back = (1 + 10 + 8 + 2 + 10 + 9) / (1 + 20 + 9), (3 + 10 + 8 + 2 + 40 + 7) / (3 + 50 + 7)
    assert metrics["rdp"]["mean"] == pytest.approx((4 + there + back) / 6)
    assert metrics["rdp_without_last_miles"]["max"] == 1


def test_without_distant_links_an_overlay_may_be_disconnected(
    line: Recorder, tmp_path: Path
) -> None:
    line.join("h1", "h2")
    line.join("h2", "h3", distant=True)
    line.end()
    metrics = measure_run(line.write(tmp_path / "run"))
    assert (metrics["components"], metrics["components_near"]) == (1, 2)
    assert (metrics["unreachable_pairs"], metrics["unreachable_pairs_near"]) == (0, 4)
    assert (metrics["overlay_links"], metrics["distant_links"]) == (2, 1)
    assert metrics["rdp_near"]["max"] == 1  # of h1 and h2 only
    assert metrics["mapped_links"] == pytest.approx(3 / 5)
    assert metrics["mapped_links_between_routers"] == 1 / 2
    assert metrics["degree_near"]["histogram"] == {"0": 1, "1": 2}


def test_disconnected_peers_have_no_penalty(line: Recorder, tmp_path: Path) -> None:
    line.infer("h1", "h2")
    line.end()
    metrics = measure_run(line.write(tmp_path / "run"))
    assert metrics["components"] == 3
    assert metrics["unreachable_pairs"] == 6
    assert metrics["rdp"] is metrics["stress_ratio"] is None
    assert metrics["notes"]["rdp"] == "no event was published; no pair of peers is connected"
    assert metrics["notes"]["overlay_rdp"] == "no pair of peers is connected"
    assert metrics["discovered_links"] == pytest.approx(3 / 5)


def test_a_link_requires_both_ends_alive(line: Recorder, tmp_path: Path) -> None:
    line.start()
    line.join("h1", "h2")
    line.remove("h2", "h1")
    line.join("h2", "h3")
    line.add("h1", "h3")
    line.end(["h1", "h2"])
    metrics = measure_run(line.write(tmp_path / "run"))
    assert metrics["peers"] == 2
    assert metrics["overlay_links"] == 0
    assert metrics["one_sided_links"] == 1  # h1 to h2
    assert metrics["stale_links"] == 2  # both to h3
    assert "1 agent ended before the end of the run" in metrics["notes"]["overlay"]


def test_a_restarted_agent_has_no_neighbours(line: Recorder, tmp_path: Path) -> None:
    chain(line)
    line.record("h3", "agent_started", time_us=5)
    metrics = measure_run(line.write(tmp_path / "run"))
    assert metrics["peers"] == 3
    assert (metrics["overlay_links"], metrics["one_sided_links"]) == (1, 1)
    assert "1 agent restarted" in metrics["notes"]["overlay"]


def test_an_agent_that_left_is_no_peer_until_it_returns(line: Recorder, tmp_path: Path) -> None:
    chain(line)
    line.record("h3", "agent_left", time_us=5)
    metrics = measure_run(line.write(tmp_path / "left"))
    assert (metrics["peers"], metrics["overlay_links"], metrics["stale_links"]) == (2, 1, 1)
    assert metrics["join_messages"] == 18  # Its messages still count.
    assert "1 agent left" in metrics["notes"]["overlay"]
    line.record("h3", "agent_started", time_us=6)
    assert measure_run(line.write(tmp_path / "back"))["peers"] == 3


def test_records_count_in_the_order_of_their_times(line: Recorder, tmp_path: Path) -> None:
    line.remove("h1", "h2", time_us=3)
    line.remove("h1", "h3", time_us=1)
    line.join("h1", "h2")
    line.join("h1", "h3")
    line.add("h1", "h3", time_us=4)
    line.end()
    metrics = measure_run(line.write(tmp_path / "run"))
    assert (metrics["overlay_links"], metrics["one_sided_links"]) == (1, 1)


@pytest.mark.parametrize(("first", "second", "distant"), [(1, 1, 1), (1, 0, 0), (0, 1, 0)])
def test_a_link_is_distant_if_both_ends_record_it(
    line: Recorder, tmp_path: Path, first: int, second: int, distant: int
) -> None:
    line.add("h1", "h2", distant=bool(first))
    line.add("h2", "h1", distant=bool(second))
    line.end()
    assert measure_run(line.write(tmp_path / "run"))["distant_links"] == distant


def test_silent_routers_hide_their_links(line: Recorder, tmp_path: Path) -> None:
    r1 = line.address("r1")
    line.infer("h1", "h3", f"{r1} 0 {line.address('r3')}")
    line.end()
    metrics = measure_run(line.write(tmp_path / "run"))
    assert metrics["routes_true"] == 1
    assert metrics["discovered_links"] == pytest.approx(2 / 5)  # the last miles of h1 and h3
    assert metrics["inference_score"] == {
        "precision": 1.0,
        "recall": pytest.approx(2 / 4),
        "router_precision": 1.0,
        "router_recall": pytest.approx(2 / 3),
    }


def test_wrong_routes_are_found(line: Recorder, tmp_path: Path) -> None:
    r1, r2, r3, r4 = (line.address(f"r{n}") for n in (1, 2, 3, 4))
    line.infer("h1", "h3", f"{r1} {r3}")  # h1-r1 and r3-h3 are right, r1-r3 does not exist
    line.infer("h1", "h2", f"{r1} {r4}", reached=False)  # r1-r4 is a link, but not on the route
    line.infer("h3", "h1")
    line.know("h1", "h2", f"{r1} {r2}")
    line.know("h2", "h1", f"{r2} 0 {r1}")
    line.end()
    metrics = measure_run(line.write(tmp_path / "run"))
    assert metrics["routes_true"] == pytest.approx(1 / 3)
    assert metrics["routes_reached"] == pytest.approx(2 / 3)
    assert metrics["known_routes_true"] == pytest.approx(1 / 2)
    assert metrics["discovered_links_precision"] == pytest.approx(5 / 6)
    assert metrics["inference_score"]["precision"] == pytest.approx(4 / 6)
    assert metrics["inference_score"]["recall"] == pytest.approx(4 / 5)  # not h2's last mile
    assert metrics["discovered_links"] == pytest.approx(4 / 5)
    assert metrics["discovered_links_of_all"] == pytest.approx(5 / 6)


def test_a_route_that_does_not_reach_its_peer_is_incomplete(line: Recorder, tmp_path: Path) -> None:
    line.infer("h1", "h2", reached=False)
    line.end()
    metrics = measure_run(line.write(tmp_path / "run"))
    assert metrics["routes_true"] == metrics["routes_reached"] == 0
    assert metrics["discovered_links"] == pytest.approx(2 / 5)  # h1-r1 and r1-r2
    assert metrics["inference_score"]["recall"] == pytest.approx(2 / 3)


def test_unknown_peers_have_no_effect(line: Recorder, tmp_path: Path) -> None:
    chain(line)
    line.record("h1", "neighbour_added", 1, peer=1, delay_us=1, is_distant=False)
    line.record("h1", "route_inferred", 1, peer=1, is_reached=True, routers="")
    metrics = measure_run(line.write(tmp_path / "run"))
    assert metrics["stale_links"] == 1
    assert metrics["routes_true"] == pytest.approx(1 / 2)
    assert metrics["discovered_links_precision"] == pytest.approx(3 / 4)


def test_peers_on_one_router_and_links_without_delay(tmp_path: Path) -> None:
    links = [Link.symmetric("h1", "r1", 0), Link.symmetric("h2", "r1", 0)]
    links += [Link.symmetric("h3", "r1", 5)]
    recorder = Recorder(
        Underlay((Router("r1"),), tuple(links), tuple(map(Host, ("h1", "h2", "h3"))))
    )
    metrics = measure_run(chain(recorder).write(tmp_path / "run"))
    assert metrics["rdp"] == {"mean": 1, "p50": 1, "p90": 1, "max": 1, "of_sums": 1}
    assert metrics["stress_ratio"] == 1
    assert metrics["stress_ratio_pairs"] == pytest.approx((2 + 2 + 4) / 6)
    assert metrics["unreachable_pairs"] == 0


def test_a_run_without_an_overlay_reports_it(line: Recorder, tmp_path: Path) -> None:
    line.end(sent=3)
    metrics = measure_run(line.write(tmp_path / "run"))
    assert metrics["peers"] == 3
    names = {m.name for m in METRICS if m.group in (Group.OVERLAY, Group.DISCOVERY)} - {"peers"}
    assert {name for name in names if metrics[name] is None} == names
    assert {metrics["notes"][name] for name in names} == {"no agent recorded neighbours or routes"}


def test_a_single_peer_has_no_overlay(line: Recorder, tmp_path: Path) -> None:
    line.add("h1", "h2")
    line.end(["h1"])
    metrics = measure_run(line.write(tmp_path / "run"))
    assert metrics["notes"]["overlay_rdp"] == "expected at least 2 peers at the end, found 1"


def test_metrics_are_written_atomically(line: Recorder, tmp_path: Path) -> None:
    run = chain(line).write(tmp_path / "run")
    (run / "analysis").mkdir()
    file = run / "analysis" / "metrics.json"
    old = {"delivery": 1, "rdp": None, "notes": {"rdp": "old", "overlay": "old", "delivery": "why"}}
    file.write_text(json.dumps(old))
    metrics = measure_run(run)
    assert json.loads(file.read_text()) == metrics
    assert metrics["delivery"] is None
    assert metrics["notes"]["delivery"] == "no event was published"
    written = sorted(path.name for path in file.parent.iterdir())
    assert written == ["metrics.json", "overlay.json"]


def test_a_run_that_died_is_measured_as_far_as_recorded(line: Recorder, tmp_path: Path) -> None:
    chain(line)
    line.rows = [row for row in line.rows if row[2] != "agent_ended"]
    run = line.write_logs(tmp_path / "run.partial")
    log = run / "agents" / "h3-1.jsonl"
    log.write_text(log.read_text() + '{"time_us": 3, "host": "h3", "what": "neighbour_rem')
    (run / "agents" / "records.parquet").write_bytes(b"PAR1 and then it died")
    metrics = measure_run(run)
    assert metrics["overlay_links"] == 2
    assert metrics["rdp"]["max"] == pytest.approx(38 / 34)
    assert metrics["join_messages"] is None
    for words in ("not complete", "never gathered", "1 lines", "every host with records"):
        assert words in metrics["notes"]["overlay"]


def test_a_run_without_records_reports_it(line: Recorder, tmp_path: Path) -> None:
    run = chain(line).write(tmp_path / "run")
    (run / "agents" / "records.parquet").unlink()
    metrics = measure_run(run)
    assert metrics["overlay_rdp"] is metrics["events"] is None
    assert "expected agents/records.parquet or" in metrics["notes"]["overlay_rdp"]
    unreadable = [one["file"] for one in metrics["unreadable"]]
    assert unreadable == ["run.json", "verdict.json", "agents/records.parquet"]


def test_faults_that_change_routes_are_noted(line: Recorder, tmp_path: Path) -> None:
    run = chain(line).write(tmp_path / "run")
    faults = [{"at_s": 1, "action": "link-down", "target": "r1-r2"}]
    (run / "run.json").write_text(json.dumps({"experiment": {"fault": faults}}))
    assert "link-down" in measure_run(run)["notes"]["overlay"]
    faults[0]["action"] = "kill-agent"
    (run / "run.json").write_text(json.dumps({"experiment": {"fault": faults}}))
    assert "overlay" not in measure_run(run)["notes"]


def small_network(seed: int) -> Underlay:
    """A random network with short delays that differ by direction, so that many are equal."""
    chance = Random(seed)
    graph = nx.connected_watts_strogatz_graph(8, 4, 0.5, seed=seed)
    names = [f"r{node}" for node in graph]
    links = [
        Link(names[a], names[b], Channel(chance.randint(1, 3)), Channel(chance.randint(1, 3)))
        for a, b in graph.edges
    ]
    hosts = [Host(f"h{n}") for n in range(7)]
    for host in hosts:
        ends = Channel(chance.randint(0, 2)), Channel(chance.randint(0, 2))
        links.append(Link(host.name, chance.choice(names), *ends))
    return Underlay(tuple(map(Router, names)), tuple(links), tuple(hosts))


def all_paths(recorder: Recorder, overlay: nx.Graph, last_miles: bool) -> dict[Any, list[Any]]:
    """Delay, crossings and last-link crossings of every overlay path of every pair."""
    routes, last_mile = recorder.routes, recorder.underlay.last_mile
    found: dict[Any, list[Any]] = {}
    for source, target in permutations(recorder.names, 2):
        for path in nx.all_simple_paths(overlay, source, target):
            ways = [routes.path(a, b) for a, b in pairwise(path)]
            delay_us = sum(routes.path_delay_us(a, b) for a, b in pairwise(path))
            middle_us = sum(last_mile[p].ab.delay_us + last_mile[p].ba.delay_us for p in path[1:-1])
            crossings = [len(way) - 1 for way in ways]
            found.setdefault((source, target), []).append(
                (delay_us - (0 if last_miles else middle_us), sum(crossings), crossings[-1])
            )
    return found


@pytest.mark.parametrize("seed", range(12))
def test_metrics_equal_brute_force(seed: int, tmp_path: Path) -> None:
    recorder = random_overlay(small_network(seed), seed, links=1 + seed % 3)
    metrics = measure_run(recorder.write(tmp_path / "run"))
    routes, names = recorder.routes, recorder.names
    overlay = nx.Graph()
    for _, host, what, values in recorder.rows:
        if what == "neighbour_added":
            peer = next(name for name in names if recorder.address(name) == values["peer"])
            overlay.add_edge(host, peer)
    for key, last_miles in (("rdp", True), ("rdp_without_last_miles", False)):
        best = {pair: min(ways) for pair, ways in all_paths(recorder, overlay, last_miles).items()}
        penalties = [
            best[pair][0] / routes.path_delay_us(*pair)
            for pair in best
            if routes.path_delay_us(*pair)
        ]
        assert metrics[key]["mean"] == pytest.approx(sum(penalties) / len(penalties))
        assert metrics[key]["max"] == pytest.approx(max(penalties))
        assert min(penalties) >= 1
    best = {pair: min(ways) for pair, ways in all_paths(recorder, overlay, True).items()}
    direct = sum(len(routes.path(*pair)) - 1 for pair in best)
    assert metrics["stress_ratio"] == pytest.approx(sum(way[2] for way in best.values()) / direct)
    assert metrics["stress_ratio_pairs"] == pytest.approx(
        sum(way[1] for way in best.values()) / direct
    )


@pytest.mark.parametrize("seed", range(6))
def test_links_equal_brute_force(seed: int, tmp_path: Path) -> None:
    underlay = attach_hosts(generate_waxman(25, seed=seed), 9, seed)
    underlay = make_anonymous(make_asymmetric(underlay, 0.3, seed), 0.2, seed)
    recorder = random_overlay(underlay, seed)
    metrics = measure_run(recorder.write(tmp_path / "run"))
    routes = recorder.routes
    silent = {router.name for router in underlay.routers if router.anonymous}

    def links(pairs: Any) -> set[frozenset[str]]:
        return {frozenset(link) for pair in pairs for link in pairwise(routes.path(*pair))}

    name_of = {recorder.address(name): name for name in recorder.names}
    probed = links(
        (host, name_of[values["peer"]])
        for _, host, what, values in recorder.rows
        if what == "route_inferred"
    )
    seen = {link for link in probed if not link & silent}
    used = links(permutations(recorder.names, 2))
    mapped = links(
        (host, name_of[values["peer"]])
        for _, host, what, values in recorder.rows
        if what == "neighbour_added" and not values["is_distant"]
    )
    assert metrics["discovered_links"] == pytest.approx(len(seen) / len(used))
    assert metrics["discovered_links_of_all"] == pytest.approx(len(seen) / len(underlay.links))
    assert metrics["mapped_links"] == pytest.approx(len(mapped) / len(used))
    hosts = set(recorder.names)
    seen_there, mapped_there, used_there = (
        sum(not link & hosts for link in some) for some in (seen, mapped, used)
    )
    assert metrics["discovered_links_between_routers"] == pytest.approx(seen_there / used_there)
    assert metrics["mapped_links_between_routers"] == pytest.approx(mapped_there / used_there)
    assert metrics["inference_score"]["recall"] == pytest.approx(len(seen) / len(probed))
    assert metrics["routes_true"] == metrics["inference_score"]["precision"] == 1


def test_logs_give_the_same_metrics_as_tables(line: Recorder, tmp_path: Path) -> None:
    chain(line)
    assert max(time_us for time_us, *_ in line.rows) == END_US
    tables, logs = line.write(tmp_path / "tables"), line.write_logs(tmp_path / "logs")
    first, second = measure_run(tables), measure_run(logs)
    assert "never gathered" in second["notes"].pop("overlay")
    missing = [one["file"] for one in second.pop("unreadable")]
    assert missing == ["run.json", "verdict.json", "agents/records.parquet"]
    assert first.pop("unreadable")[0]["file"] == "run.json"
    assert first == second


def test_rdp_over_near_links_is_compared_over_the_same_pairs(
    line: Recorder, tmp_path: Path
) -> None:
    """Near links connect only h1 and h2, which have the least penalty; h3 has a distant link."""
    line.start()
    line.join("h1", "h2")
    line.join("h2", "h3", distant=True)
    line.end()
    metrics = measure_run(line.write(tmp_path / "run"))
    assert metrics["rdp_near"]["mean"] == 1 < metrics["overlay_rdp"]["mean"]
    assert metrics["rdp_near_left_out"] == pytest.approx(4 / 6)
    assert metrics["rdp_of_near_pairs"]["mean"] == 1


@pytest.mark.parametrize("seed", range(8))
def test_over_the_same_pairs_near_links_are_never_faster(seed: int, tmp_path: Path) -> None:
    underlay = attach_hosts(generate_waxman(20, seed=seed), 14, seed)
    metrics = measure_run(random_overlay(underlay, seed).write(tmp_path / "run"))
    assert metrics["rdp_near"]["of_sums"] >= metrics["rdp_of_near_pairs"]["of_sums"]
    left_out = metrics["unreachable_pairs_near"] / (14 * 13)
    assert metrics["rdp_near_left_out"] == pytest.approx(left_out)
