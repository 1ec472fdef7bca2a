"""The oracle of deliveries, and the plan of churn, on cases computed by hand."""

from typing import Any

from tests.fixtures.delivery_oracle import Delivery, account
from workloads.churn import draw_churn
from workloads.content.generator import DrawnContent, Publication
from workloads.content.subscription import make_point, subscribe
from workloads.schedule import Schedule

HIGH, LOW = subscribe({0: (6, 10)}), subscribe({0: (0, 5)})
POINT = make_point([8])
WORKLOAD = DrawnContent(((LOW,), (HIGH,), (HIGH,)), (Publication(0, POINT), Publication(0, POINT)))
HOSTS = ("h1", "h2", "h3")
Row = tuple[int, str, str, dict[str, Any]]


def subscribed(at_us: int, host: str, number: int, what: str = "subscribed") -> Row:
    return at_us, host, what, {"subscription": number}


def published(at_us: int, event_id: int, point: int = POINT.number) -> Row:
    return at_us, "h1", "event_published", {"event_id": event_id, "version": 1, "point": point}


def delivered(host: str, event_id: int, at_us: int = 50) -> Row:
    return at_us, host, "delivered", {"event_id": event_id}


START = [
    subscribed(0, "h1", LOW.number),
    subscribed(0, "h2", HIGH.number),
    subscribed(0, "h3", HIGH.number),
]


def judge(*rows: Row, ends: tuple[tuple[int, str], ...] = (), settle_us: int = 10) -> Delivery:
    return account(WORKLOAD, HOSTS, [*START, *rows], ends, 100, settle_us)


def test_complete_deliveries_are_exact() -> None:
    found = judge(published(10, 1), delivered("h2", 1), delivered("h3", 1))
    assert (found.published, found.steady.expected, found.steady.delivered) == (1, 2, 2)
    assert found.steady.is_exact and not found.unasked and not found.departures


def test_missing_and_repeated_deliveries_are_reported_by_host_and_event() -> None:
    found = judge(published(10, 1), published(20, 2), *[delivered("h2", 1)] * 2, delivered("h3", 2))
    assert found.steady.missing == {"h2": (2,), "h3": (1,)}
    assert found.steady.duplicates == {"h2": (1,)}
    assert (found.steady.expected, found.steady.delivered) == (4, 2)


def test_a_delivery_without_a_match_is_found() -> None:
    found = judge(published(10, 1), delivered("h1", 1), delivered("h2", 2), delivered("h3", 1))
    assert found.unasked == (("h1", 1), ("h2", 2))


def test_a_peer_that_was_away_is_counted_separately_and_owed_events_of_its_presence() -> None:
    again = subscribed(40, "h3", HIGH.number)
    rows = [published(30, 1), published(60, 2), again, delivered("h2", 1), delivered("h2", 2)]
    found = judge(*rows, ends=((20, "h3"),))
    assert found.steady.is_exact and found.steady.expected == 2
    assert found.unsteady_hosts == ("h3",)
    assert found.unsteady.missing == {"h3": (2,)}


def test_a_peer_that_unsubscribes_or_ends_soon_after_may_get_an_event() -> None:
    leaves = subscribed(35, "h2", HIGH.number, "unsubscribed")
    found = judge(published(30, 1), leaves, delivered("h3", 1), ends=((39, "h3"),))
    assert (found.steady.expected, found.unsteady.expected, found.unasked) == (0, 0, ())


def test_an_event_whose_publisher_ended_soon_after_is_owed_to_nobody() -> None:
    found = judge(published(30, 1), published(10, 2), ends=((31, "h1"),))
    assert found.orphans == (1,)
    assert found.steady.missing == {"h2": (2,), "h3": (2,)}


def test_differences_from_the_workload_are_reported() -> None:
    found = account(WORKLOAD, HOSTS, [subscribed(0, "h2", 7), published(1, 1, 3)], (), 100)
    assert found.departures == (
        "h2: did not subscribe to what the workload says",
        "event 1: not published as the workload says",
    )


def test_after_a_number_of_events_some_peers_leave_and_earlier_ones_return() -> None:
    hosts = [f"h{n}" for n in range(1, 41)]
    plan = draw_churn(1, hosts, 400, Schedule(30.0, 20.0), 0.05, 100)
    assert plan == draw_churn(1, hosts, 400, Schedule(30.0, 20.0), 0.05, 100)
    assert plan != draw_churn(2, hosts, 400, Schedule(30.0, 20.0), 0.05, 100)
    times = sorted({step.at_s for step in plan})
    assert times == [34.975, 39.975, 44.975]
    away: set[str] = set()
    for at_s in times:
        back = {step.host for step in plan if step[:2] == (at_s, "restart-agent")}
        gone = {step.host for step in plan if step[:2] == (at_s, "kill-agent")}
        assert back == away and len(gone) == 2 and not gone & away
        away = gone


def test_without_churn_no_peer_leaves() -> None:
    assert draw_churn(1, ["h1", "h2"], 400, Schedule(0.0, 20.0), 0.0, 100) == ()
