"""The metrics of events on a few literal rows, computed by hand."""

from pathlib import Path
from typing import Any

import pytest

from analysis.metrics.delays import delivery_rdp, hops, rdp, rdp_over
from analysis.metrics.delivery import delivery, event_counts, false_positives
from analysis.metrics.evidence import Evidence, PacketSummary
from analysis.metrics.file import measure
from analysis.metrics.routing import routing_cost
from analysis.metrics.statistics import relative_delay
from analysis.metrics.table import METRICS
from analysis.metrics.traffic import control_efficiency
from analysis.run_directory import RecordedRun, open_run
from analysis.tables.events import routing_load, to_others
from tests.fixtures.event_frames import evidence_of, frame_of
from tests.fixtures.overlay_runs import Recorder
from topologies.underlay import Host, Link, Router, Underlay

# Event 1, published by a, goes directly to b, and from b to c and d; d does not subscribe.
# Event 2, published by c, goes only to c.
DELIVERIES = [
    {"event_id": 1, "host": "b", "publisher": "a", "delay_us": 30, "unicast_us": 20,
     "opt_us": 20, "hops": 1, "path_us": 20, "is_own": False, "is_matching": True, "copy": 1,
     "path": ["a", "b"]},
    {"event_id": 1, "host": "c", "publisher": "a", "delay_us": 90, "unicast_us": 30,
     "opt_us": 45, "hops": 2, "path_us": 60, "is_own": False, "is_matching": True, "copy": 1,
     "path": ["a", "b", "c"]},
    {"event_id": 1, "host": "c", "publisher": "a", "delay_us": 99, "unicast_us": 30,
     "opt_us": 45, "hops": 2, "path_us": 60, "is_own": False, "is_matching": True, "copy": 2},
    {"event_id": 2, "host": "c", "publisher": "c", "delay_us": 0, "unicast_us": 0,
     "opt_us": 0, "hops": 0, "path_us": 0, "is_own": True, "is_matching": False, "copy": 1},
]  # fmt: skip
RECEPTIONS: list[dict[str, Any]] = [
    {"event_id": 1, "host": "b", "publisher": "a", "from_host": "a", "is_match": True,
     "hops": 1, "link_us": 20, "path_us": 20, "path": ["a", "b"]},
    {"event_id": 1, "host": "c", "publisher": "a", "from_host": "b", "is_match": True,
     "hops": 2, "link_us": 40, "path_us": 60, "path": ["a", "b", "c"]},
    {"event_id": 1, "host": "d", "publisher": "a", "from_host": "b", "is_match": False,
     "hops": 2, "link_us": 10, "path_us": 30, "path": ["a", "b", "d"]},
]  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RecordedRun:
    """Hosts a to d in a row: 20 us from a to b, then 40 us to c and 10 us to d."""
    delay_us = {"ab": 18, "bc": 38, "bd": 8}
    links = [Link.symmetric(f"r{x}", f"r{y}", delay_us[x + y]) for x, y in delay_us]
    links += [Link.symmetric(host, f"r{host}", 1) for host in "abcd"]
    routers = tuple(Router(f"r{host}") for host in "abcd")
    underlay = Underlay(routers, tuple(links), tuple(Host(host) for host in "abcd"))
    path: Path = tmp_path_factory.mktemp("runs") / "run"
    return open_run(Recorder(underlay).write(path))


@pytest.fixture(scope="module")
def evidence(run: RecordedRun) -> Evidence:
    events = [{"event_id": 1, "publisher": "a"}, {"event_id": 2, "publisher": "c"}]
    return evidence_of(run, events=events, receptions=RECEPTIONS, deliveries=DELIVERIES)


def test_rdp_is_of_first_deliveries_to_other_hosts(evidence: Evidence) -> None:
    assert delivery_rdp(evidence) == {
        "mean": 2.25, "p50": 2.25, "p90": pytest.approx(2.85), "max": 3.0, "count": 2,
        "of_sums": 120 / 50,
    }  # fmt: skip
    assert (rdp(evidence), rdp_over(evidence)) == (delivery_rdp(evidence), "deliveries")
    paths = relative_delay(evidence.to_others, "path_us")
    assert paths is not None
    assert (paths["mean"], paths["max"], paths["of_sums"]) == (1.5, 2.0, 80 / 50)
    lengths = {"mean": 1.5, "max": 2, "count": 2, "distribution": {"1": 1, "2": 1}}
    assert hops(evidence) == lengths


def test_false_positives_are_per_delivery_to_other_hosts(evidence: Evidence) -> None:
    assert false_positives(evidence.tables) == 0.5


def test_the_routing_load_times_delay_is_the_routing_cost(evidence: Evidence) -> None:
    loads = routing_load(evidence.tables, evidence.host_paths)
    found = {
        (row.from_host, row.to_host): (row.load, row.events, row.delay_us)
        for row in loads.itertuples()
    }
    assert found == {("a", "b"): (2, 1, 20), ("b", "c"): (1, 1, 40), ("b", "d"): (0, 1, 10)}
    cost = routing_cost(evidence.to_others)
    assert (loads["load"] * loads["delay_us"]).sum() / 1e6 == cost.cost_s == 80 / 1e6
    assert (cost.opt_s, cost.efficiency, cost.per_delivery_s) == (65 / 1e6, 80 / 65, 40 / 1e6)


def test_routing_efficiency_is_of_deliveries_with_both_paths_known() -> None:
    lost = DELIVERIES[0] | {"event_id": 3, "path_us": None}
    alone = DELIVERIES[0] | {"event_id": 4, "opt_us": None, "path_us": 500}
    found = routing_cost(to_others(frame_of("deliveries", *DELIVERIES, lost, alone)))
    assert found.cost_s == 580 / 1e6 and found.per_delivery_s == pytest.approx(580 / 3e6)
    assert (found.opt_s, found.efficiency) == (65 / 1e6, 80 / 65)


def test_control_efficiency_counts_every_transmission(evidence: Evidence, run: RecordedRun) -> None:
    counts = tuple({"kind": str(n), "copies": copies} for n, copies in enumerate((1, 4, 0)))
    packets = PacketSummary(messages=counts)
    assert control_efficiency(Evidence(run, packets, tables=evidence.tables)) == 2.5


def test_delivery_distinguishes_owed_from_made_deliveries(run: RecordedRun) -> None:
    owed = {"is_owed": True, "is_steady": True, "is_delivered": True}
    matches = [
        owed, owed, owed | {"is_delivered": False}, owed | {"is_owed": False},
        owed | {"is_steady": False}, owed | {"is_steady": False, "is_delivered": False},
    ]  # fmt: skip
    assert delivery(evidence_of(run, matches=matches, deliveries=DELIVERIES)) == {
        "expected": 3, "delivered": 2, "unsteady_expected": 2, "unsteady_delivered": 1,
        "duplicates": 1, "unasked": 1,
    }  # fmt: skip


def test_events_are_counted(evidence: Evidence) -> None:
    assert event_counts(evidence.tables, evidence.host_paths) == {
        "published": 2, "received": 3, "in_vain": 1, "false_positives": 1, "delivered": 2, "own": 1,
        "crossings": 9,
    }  # fmt: skip


def test_without_events_every_metric_is_null_or_0_with_a_reason(run: RecordedRun) -> None:
    found = measure(Evidence(run), [])
    values: dict[str, Any] = {k: v for k, v in found.items() if k in {m.name for m in METRICS}}
    assert {name for name, value in values.items() if value is not None} == {"events", "peers"}
    assert set(values["events"].values()) == {0} and values["peers"] == 0
    assert found["notes"].keys() >= {name for name, value in values.items() if value is None}
