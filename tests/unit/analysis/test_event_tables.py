"""Tables of records, computed by hand and by brute force."""

from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.agent_lives import read_lives
from analysis.errors import AnalysisError
from analysis.tables.event_paths import EventPaths
from analysis.tables.events import (
    SETTLE_US,
    delivered_records,
    deliveries,
    lost_with_publishers,
    matches,
    published,
    receptions,
)
from analysis.tables.host_paths import HostPaths
from analysis.tables.interests import interest_spans, wanted_events
from analysis.tables.trees import tree_edges
from analysis.unicast import Unicast
from analysis.workload_files import WorkloadTables
from tests.fixtures.event_frames import frame_of, records_of
from topologies.underlay import Channel, Host, Link, Router, Underlay

LINE = Underlay(
    (Router("r1"), Router("r2")),
    (
        Link("r1", "r2", Channel(3), Channel(4)),
        Link("h1", "r1", Channel(1), Channel(1)),
        Link("h2", "r2", Channel(1), Channel(1)),
        Link("h3", "r2", Channel(1), Channel(1)),
    ),
    (Host("h1"), Host("h2"), Host("h3")),
)
HOSTS = [host.name for host in LINE.hosts]
PATHS = HostPaths(Unicast(LINE, HOSTS), None)
NAMES = {101: "h1", 102: "h2", 103: "h3"}
ADDRESS = {name: at for at, name in NAMES.items()}


def workload(
    interests: list[tuple[str, int]], pairs: list[tuple[int, int]] | None = None
) -> WorkloadTables:
    """A workload with these interests, as host and content; `pairs` match."""
    numbers = range(len(interests))
    return WorkloadTables(
        pd.DataFrame(
            {
                "interest": pd.Series(numbers, dtype="int64"),
                "host": pd.Series([host for host, _ in interests], dtype=object),
                "content": pd.Series([content for _, content in interests], dtype="int64"),
            }
        ),
        pd.DataFrame({"event_id": [], "host": [], "content": []}),
        pd.DataFrame(pairs or [], columns=["event_id", "interest"], dtype="int64"),
    )


def ends_of(*ends: tuple[str, int]) -> pd.DataFrame:
    hosts, times = [host for host, _ in ends], [end_us for _, end_us in ends]
    return pd.DataFrame(
        {"host": pd.Series(hosts, dtype=object), "end_us": pd.Series(times, dtype="int64")}
    )


def test_the_path_of_an_event_extends_that_of_its_sender_by_one_link() -> None:
    def came(host: str, sender: str, hops: int, event_id: int = 1) -> dict[str, Any]:
        return {"event_id": event_id, "host": host, "publisher": "a", "from_host": sender,
                "hops": hops, "link_us": 10 * hops}  # fmt: skip

    frame = frame_of(
        "receptions",
        came("c", "b", 2), came("b", "a", 1), came("d", "c", 3), came("e", "gone", 3),
        came("f", "e", 4), came("b", "a", 1, event_id=2), came("a", "b", 2, event_id=2),
    )  # fmt: skip
    rows = frame.drop(columns=["path", "path_us"]).join(EventPaths(frame).of(frame))
    found = {
        (r.event_id, r.host): (r.path_us, "".join(r.path)) for r in rows.itertuples() if r.path
    }
    assert found == {
        (1, "b"): (10, "ab"), (1, "c"): (30, "abc"), (1, "d"): (60, "abcd"), (2, "b"): (10, "ab"),
        (2, "a"): (30, "aba"),
    }  # fmt: skip


def test_a_repeated_copy_has_its_own_path() -> None:
    """It goes up from a over b to the root c, and down to b, a and d, as in a tree."""

    def came(host: str, sender: str, hops: int) -> dict[str, Any]:
        return {"event_id": 1, "host": host, "publisher": "a", "from_host": sender, "hops": hops}

    first = frame_of("receptions", came("b", "a", 1), came("c", "b", 2), came("d", "b", 4))
    again = frame_of("copies", came("b", "c", 3), came("a", "b", 4)).assign(link_us=10)
    ways = EventPaths(first.assign(link_us=10), again)
    rows = pd.DataFrame({"event_id": 1, "host": list("bbdae"), "hops": [1, 3, 4, 4, 1]})
    found = ways.of(rows)
    assert ["".join(hosts) if hosts else None for hosts in found["path"]] == [
        "ab", "abcb", "abcbd", "abcba", None
    ]  # fmt: skip
    assert found["path_us"].tolist() == [10, 30, 40, 40, pd.NA]


@pytest.mark.parametrize("key", ["interest", "subscription"])
def test_an_interest_ends_by_a_record_or_with_its_agent_or_the_run(key: str) -> None:
    """Format 1 has the content, here 70 and more, in place of the number."""
    numbers = {7: 0, 8: 1}
    names = {7: 70, 8: 80} if key == "subscription" else numbers
    asked = workload([("h1", 70), ("h1", 80), ("h2", 70)])

    def change(time_us: int, host: str, what: str, content: int) -> Any:
        number = names[content] + (2 if host == "h2" and key == "interest" else 0)
        return time_us, host, what, {key: number}

    said = records_of(
        change(10, "h1", "subscribed", 7),
        change(20, "h1", "subscribed", 8),
        change(50, "h1", "unsubscribed", 7),
        change(70, "h1", "subscribed", 7),
        (0, "h2", "agent_started", {}),
        change(5, "h2", "subscribed", 7),
        (60, "h2", "agent_started", {}),
        change(61, "h2", "subscribed", 7),
    )
    lives = read_lives(said, [(40, "h2")])
    assert set(lives.ends) == {("h2", 40), ("h2", 60)}
    spans = interest_spans(said, asked, lives.ends_frame(), 100)
    assert {tuple(row) for row in spans.itertuples(index=False)} == {
        ("h1", 0, 10, 50), ("h1", 1, 20, 100), ("h1", 0, 70, 100), ("h2", 2, 5, 40),
        ("h2", 2, 61, 100),
    }  # fmt: skip


def test_an_agent_without_further_records_has_ended_unless_all_have_none() -> None:
    said: list[Any] = [
        (0, "h1", "x", {}), (7, "h1", "x", {}), (3, "h2", "x", {}), (5, "h3", "x", {}),
    ]  # fmt: skip
    silent = read_lives(records_of(*said), [(4, "h3")])
    assert silent.ends == (("h3", 4),) and silent.at_end == {"h1", "h2", "h3"}
    told = read_lives(records_of(*said, (9, "h2", "agent_ended", {"sent": 2})), [(4, "h3")])
    assert told.ends == (("h1", 7), ("h3", 4))
    assert told.at_end == set(told.lasting) == {"h2"}


def test_an_agent_that_left_is_a_peer_again_when_it_restarts() -> None:
    rows: list[Any] = [
        (0, "h1", "agent_started", {}), (0, "h2", "agent_started", {}),
        (5, "h1", "agent_left", {}), (5, "h2", "agent_left", {}), (6, "h2", "agent_started", {}),
        (9, "h1", "agent_ended", {}), (9, "h2", "agent_ended", {}),
    ]  # fmt: skip
    lives = read_lives(records_of(*rows), [])
    assert (lives.at_end, lives.ended, dict(lives.lasting)) == ({"h2"}, {"h1", "h2"}, {})


TIMES = st.integers(0, 60).map(lambda tenths: tenths * SETTLE_US // 10)
CHANGES = st.lists(
    st.tuples(TIMES, st.integers(0, 3), st.sampled_from(["subscribed", "unsubscribed"])),
    max_size=12,
)
EVENTS = st.lists(st.tuples(TIMES, st.sampled_from(HOSTS)), max_size=6)
OWNERS = ["h1", "h1", "h2", "h3"]


@settings(deadline=None)
@given(
    CHANGES,
    EVENTS,
    st.sets(st.tuples(st.integers(1, 6), st.integers(0, 3))),
    st.sets(st.tuples(st.sampled_from(HOSTS), TIMES), max_size=4),
    st.dictionaries(st.integers(1, 6), TIMES),
)
def test_matches_equal_brute_force(
    changes: list[tuple[int, int, str]],
    events: list[tuple[int, str]],
    pairs: set[tuple[int, int]],
    ends: set[tuple[str, int]],
    left_us: dict[int, int],
) -> None:
    end_us = 6 * SETTLE_US
    asked = workload([(host, 5) for host in OWNERS], sorted(pairs))
    rows: list[Any] = [
        (time_us, OWNERS[number], what, {"interest": number}) for time_us, number, what in changes
    ]
    rows += [
        (time_us, host, "event_published", {"event_id": number})
        for number, (time_us, host) in enumerate(events, start=1)
    ]
    said = records_of(*rows)
    spans = interest_spans(said, asked, ends_of(*ends), end_us)
    none = pd.DataFrame({"event_id": pd.Series(dtype="int64"), "host": pd.Series(dtype=object)})
    came = pd.DataFrame(
        [(number, "another", "its publisher", at_us) for number, at_us in left_us.items()],
        columns=["event_id", "host", "publisher", "time_us"],
    )
    orphans = lost_with_publishers(published(said), ends_of(*ends), came)
    wanted = wanted_events(spans, asked)
    found = matches(published(said), wanted, ends_of(*ends), orphans, none, PATHS)
    assert {(r.event_id, r.host): r.is_owed for r in found.itertuples()} == _brute_force(
        changes, events, pairs, ends, left_us, end_us
    )


def _brute_force(
    changes: list[tuple[int, int, str]],
    events: list[tuple[int, str]],
    pairs: set[tuple[int, int]],
    ends: set[tuple[str, int]],
    left_us: dict[int, int],
    end_us: int,
) -> dict[tuple[int, str], bool]:
    owed: dict[tuple[int, str], bool] = {}
    order = sorted(changes, key=lambda change: (change[0], change[2] == "subscribed"))
    for number, (at_us, publisher) in enumerate(events, start=1):
        is_orphan = any(
            host == publisher
            and at_us <= end
            and (end < at_us + SETTLE_US or number not in left_us or left_us[number] > end)
            for host, end in ends
        )
        for event, interest in pairs:
            own = [change for change in order if change[1] == interest]
            for place, (from_us, _, what) in enumerate(own):
                later = [end for host, end in ends if host == OWNERS[interest] and end > from_us]
                until_us = min([*later, *(c[0] for c in own[place + 1 :][:1]), end_us])
                if event == number and what == "subscribed" and from_us <= at_us <= until_us:
                    key = number, OWNERS[interest]
                    lasts = at_us <= until_us - SETTLE_US and not is_orphan
                    owed[key] = owed.get(key, False) or lasts
    return owed


def test_an_event_without_version_and_content_is_followed() -> None:
    """Records of a topic flood: h1 publishes, h2 subscribes, h3 only forwards."""
    said = records_of(
        (0, "h2", "subscribed", {"interest": 0}),
        (10, "h1", "event_published", {"event_id": 1}),
        (20, "h3", "event_received", {"event_id": 1, "from": ADDRESS["h1"], "hop_count": 1}),
        (30, "h2", "event_received", {"event_id": 1, "from": ADDRESS["h3"], "hop_count": 2}),
        (30, "h2", "delivered", {"event_id": 1, "hop_count": 2, "from": ADDRESS["h3"]}),
        (31, "h2", "delivered", {"event_id": 1, "hop_count": 5, "from": ADDRESS["h1"]}),
    )
    events, none = published(said), ends_of()
    asked = workload([("h2", 3)], [(1, 0)])
    wanted = wanted_events(interest_spans(said, asked, none, 10 * SETTLE_US), asked)
    got = delivered_records(said, NAMES)
    came = receptions(said, events, NAMES, wanted, PATHS)
    due = matches(events, wanted, none, lost_with_publishers(events, none, came), got, PATHS)
    assert dict(zip(came["host"], came["is_match"], strict=True)) == {"h2": True, "h3": False}
    assert came["is_match_recorded"].isna().all()
    rows = deliveries(got, events, came, due, PATHS, EventPaths(came))
    columns = ["copy", "hops", "delay_us", "is_matching"]
    assert rows[columns].values.tolist() == [[1, 2, 20, True], [2, 5, 21, True]]


def test_a_record_without_a_required_field_is_an_error() -> None:
    with pytest.raises(AnalysisError, match="records event_published: expected event_id as int64"):
        published(records_of((1, "h1", "event_published", {"version": 3})))


def test_a_link_of_a_tree_ends_when_neither_end_has_it() -> None:
    def link(time_us: int, host: str, change: str, peer: str, version: int) -> Any:
        values = {"version": version, "peer": ADDRESS[peer]}
        return time_us, host, f"tree_link_{change}", values

    said = records_of(
        link(10, "h1", "added", "h2", 1), link(12, "h2", "added", "h1", 1),
        link(30, "h2", "removed", "h1", 1), link(33, "h1", "removed", "h2", 1),
        link(40, "h2", "added", "h1", 2),
        # h2 crashes at 60 without a record; h1 detects it later, or has crashed as well.
        link(41, "h1", "added", "h2", 3), link(42, "h2", "added", "h1", 3),
        link(70, "h1", "removed", "h2", 3),
        link(43, "h2", "added", "h1", 4), link(44, "h1", "added", "h2", 4),
        link(80, "h1", "added", "h2", 5), link(81, "h2", "added", "h1", 5),
    )  # fmt: skip
    found = tree_edges(said, NAMES, ends_of(("h2", 60), ("h2", 30)), PATHS)
    columns = ["version", "a", "b", "added_us", "removed_us", "ends", "delay_us", "delay_back_us"]
    first, *others = (
        found[columns].astype(object).where(found[columns].notna(), None).values.tolist()
    )
    assert first == [1, "h1", "h2", 10, 33, 2, 5, 6]
    # Version 4 is still held by h1; in version 5, h2 is back.
    assert [(row[0], row[4], row[5]) for row in others] == [
        (2, 60, 1), (3, 70, 2), (4, None, 2), (5, None, 2),
    ]  # fmt: skip
