"""Events, deliveries, traffic by kind and faults in each second of a run."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from analysis.report.faults import played_faults, read_moments
from analysis.report.reported_run import ReportedRun
from analysis.run_directory import is_failure

Counts = dict[int, int]

_MOST_KINDS = 8  # as many as there are distinguishable colours
_SECOND_US = 1_000_000
_OTHER = "other"


def read_timeline(run: ReportedRun) -> dict[str, Any]:
    """The timeline in the form that the page reads."""
    events, traffic, faults = _events(run), _traffic(run), played_faults(run)
    last = max((second for column in (*events.values(), *traffic.values()) for second in column),
               default=-1)  # fmt: skip
    seconds = list(range(last + 1))
    kinds = sorted(traffic, key=lambda kind: (-sum(traffic[kind].values()), kind))
    return {
        "seconds": seconds,
        "events": _columns(events, events, seconds),
        "traffic": _columns(_few(traffic, kinds), _few(traffic, kinds), seconds),
        "all_traffic": _columns(traffic, kinds, seconds),
        "traffic_title": "Packets that entered the network",
        "faults": faults,
        "moments": read_moments(run),
        "moments_note": (run.metrics.get("notes") or {}).get("recovery", ""),
        "words": _words(events, traffic, faults),
        "missing": _missing(run, bool(traffic)),
    }


def _events(run: ReportedRun) -> dict[str, Counts]:
    """Published and delivered events by second; without tables, from what agents recorded."""
    times = {
        "events published": run.table("events", ("published_us",)),
        "deliveries": run.table("deliveries", ("time_us",)),
    }
    found = {
        label: _by_second(table.column(0).to_pylist())
        for label, table in times.items()
        if table is not None and table.num_rows
    }
    return found or _recorded_events(run)


def _recorded_events(run: ReportedRun) -> dict[str, Counts]:
    names = {"event_published": "events published", "delivered": "deliveries"}
    times: dict[str, list[int]] = {}
    for record in run.records(*names):
        times.setdefault(names[record.what], []).append(record.time_us)
    return {label: _by_second(times[label]) for label in names.values() if label in times}


def _by_second(times_us: Iterable[float | None]) -> Counts:
    return dict(Counter(int(at // _SECOND_US) for at in times_us if at is not None and at >= 0))


def _traffic(run: ReportedRun) -> dict[str, Counts]:
    table = run.table("traffic", ("second", "what", "packets"))
    found: dict[str, Counts] = {}
    for second, what, packets in _rows(table):
        if second is not None and second >= 0:
            kind = found.setdefault(str(what), {})
            kind[second] = kind.get(second, 0) + packets
    return found


def _rows(table: pa.Table | None) -> Iterable[tuple[Any, ...]]:
    if table is None:
        return []
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def _few(traffic: Mapping[str, Counts], kinds: list[str]) -> dict[str, Counts]:
    """The kinds with the most packets, and all others as one."""
    if len(kinds) <= _MOST_KINDS:
        return {kind: traffic[kind] for kind in kinds}
    few = {kind: traffic[kind] for kind in kinds[: _MOST_KINDS - 1]}
    rest: Counter[int] = Counter()
    for kind in kinds[_MOST_KINDS - 1 :]:
        rest.update(traffic[kind])
    return few | {_OTHER: dict(rest)}


def _columns(
    counts: Mapping[str, Counts], order: Iterable[str], seconds: list[int]
) -> list[dict[str, Any]]:
    return [
        {"label": label, "counts": [counts[label].get(second, 0) for second in seconds]}
        for label in order
    ]


def _words(
    events: Mapping[str, Counts], traffic: Mapping[str, Counts], faults: list[dict[str, Any]]
) -> str:
    parts = [f"{sum(counts.values()):,} {label}" for label, counts in events.items()]
    if traffic:
        total = sum(sum(counts.values()) for counts in traffic.values())
        parts.append(f"{total:,} packets of {len(traffic)} kinds, counted on their first link")
    failed = sum(map(is_failure, faults))
    if failed:
        parts.append(f"{failed} fault{'s' * (failed > 1)} (dashed)")
    if failed < len(faults):
        parts.append(f"{len(faults) - failed} repairs (dotted)")
    return " · ".join(parts)


def _missing(run: ReportedRun, has_traffic: bool) -> str:
    if has_traffic:
        return ""
    if run.table("traffic", ("second",)) is None:
        return "Traffic is not shown: the run has not been analysed (tdo analyze)."
    return "Traffic is not shown: the run has no packets."
