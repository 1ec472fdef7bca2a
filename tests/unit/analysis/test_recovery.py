"""Recovery from faults on a few literal rows, computed by hand."""

from collections.abc import Mapping
from typing import Any

import pytest

from analysis.metrics.recovery import moments, recovery, recovery_document
from tests.fixtures.event_frames import frame_of

SECOND_US = 1_000_000
CUT = {"at_s": 10.0, "action": "link-down", "target": "r1-r2", "is_repair": False}
MEND = {"at_s": 14.0, "action": "link-up", "target": "r1-r2", "is_repair": True}
KILL = {"at_s": 20.0, "action": "kill-agent", "target": "h9", "is_repair": False}
KILL_ANOTHER = KILL | {"target": "h8"}

# Times of publication and delivery in seconds. Before the first fault no delivery took longer
# than 0.5 s, so every delivery is due 1 s after publication.
BEFORE = [(1.0, 1.5), (2.0, 2.1)]
NEVER = None


def measure(
    faults: list[dict[str, Any]],
    times_s: list[tuple[float, float | None]],
    **changes: Any,
) -> dict[str, Any] | None:
    """The recovery of a run in which each event is owed to one host; `changes` apply to matches."""
    owed = {"host": "h1", "is_owed": True, "is_steady": True, "is_own": False} | changes
    matches = [
        owed | {"event_id": number, "published_us": round(published_s * SECOND_US)}
        for number, (published_s, _) in enumerate(times_s)
    ]
    deliveries = [
        {"event_id": number, "host": "h1", "time_us": round(at_s * SECOND_US), "copy": 1}
        for number, (_, at_s) in enumerate(times_s)
        if at_s is not None
    ]
    tables = frame_of("matches", *matches), frame_of("deliveries", *deliveries)
    return recovery_document(recovery(*tables, moments(faults)))


def one_fault(document: Mapping[str, Any] | None) -> dict[str, Any]:
    assert document is not None
    (fault,) = document["faults"]
    return dict(fault)


def test_a_fault_lasts_until_the_last_late_delivery() -> None:
    after = [(10.5, 13.0), (11.0, 11.2), (12.0, 16.5), (17.0, 17.9), (18.0, 18.1)]
    found = measure([CUT, MEND], [*BEFORE, *after])
    assert found == {
        "due_after_s": 1.0, "late": 2, "missing": 0, "longest_s": 6.5,
        "faults": [
            {"at_s": 10.0, "what": ["link-down r1-r2"], "recovery_s": 6.5, "deliveries": 5,
             "late": 2, "missing": 0},
        ],
    }  # fmt: skip


def test_an_event_in_transit_counts_for_the_fault_that_stopped_it() -> None:
    fault = one_fault(measure([CUT], [*BEFORE, (9.9, 12.0), (15.0, 15.1)]))
    assert (fault["recovery_s"], fault["late"], fault["deliveries"]) == (2.0, 1, 2)


def test_after_lost_events_recovery_ends_with_the_next_delivery() -> None:
    fault = one_fault(measure([CUT], [*BEFORE, (12.5, NEVER), (12.6, 12.7)]))
    assert (fault["recovery_s"], fault["late"], fault["missing"]) == (2.5, 0, 1)
    at_once = one_fault(measure([CUT], [*BEFORE, (9.5, NEVER), (12.6, 12.7)]))
    assert (at_once["recovery_s"], at_once["missing"]) == (0.0, 1)


def test_without_disturbed_deliveries_recovery_takes_no_time() -> None:
    fault = one_fault(measure([CUT], [*BEFORE, (11.0, 11.99)]))
    assert (fault["recovery_s"], fault["late"], fault["missing"]) == (0.0, 0, 0)


def test_each_fault_has_the_deliveries_due_before_the_next() -> None:
    after = [(11.0, 15.0), (16.0, 16.1), (21.0, 24.0), (25.0, 25.1)]
    found = measure([KILL_ANOTHER, MEND, KILL, CUT], [*BEFORE, *after])
    assert found is not None
    assert [(fault["what"], fault["recovery_s"]) for fault in found["faults"]] == [
        (["link-down r1-r2"], 5.0),
        (["kill-agent h8", "kill-agent h9"], 4.0),
    ]
    assert (found["late"], found["longest_s"]) == (2, 5.0)


@pytest.mark.parametrize(
    ("after", "notes"),
    [
        ([(11.0, 19.5), (21.5, 21.6)], ["not recovered before the next fault", None]),
        ([(11.0, 22.0), (21.0, 24.0)], ["not recovered before the next fault",
                                        "not recovered before the end"]),
        ([(21.0, NEVER)], ["no delivery fell due before the next fault",
                           "not recovered before the end"]),
        ([(11.0, 11.1)], [None, "no delivery fell due before the end"]),
    ],
)  # fmt: skip
def test_without_later_deliveries_recovery_has_no_time(
    after: list[tuple[float, float | None]], notes: list[str | None]
) -> None:
    found = measure([CUT, KILL], [*BEFORE, *after])
    assert found is not None
    assert [fault.get("note") for fault in found["faults"]] == notes
    assert [fault["recovery_s"] is None for fault in found["faults"]] == [n is not None for n in notes]  # fmt: skip  # noqa: E501
    assert found["longest_s"] is None


@pytest.mark.parametrize("change", [{"is_owed": False}, {"is_steady": False}, {"is_own": True}])
def test_only_deliveries_of_others_to_hosts_that_stayed_count(change: dict[str, bool]) -> None:
    assert measure([CUT], [*BEFORE, (11.0, 30.0), (31.0, 31.1)], **change) is None


def test_without_deliveries_before_the_first_fault_recovery_is_unknown() -> None:
    assert measure([CUT], [(9.0, NEVER), (9.5, 11.0), (12.0, 12.5)]) is None
