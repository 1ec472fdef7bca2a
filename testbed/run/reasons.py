"""Reasons why a run is not valid, with a name, a severity and a text."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

_MOST_LATE_SHARE = 0.01
_LAGS = {"lag": "timers", "datagram_lag": "datagrams"}
_MOST_MEAN_LAG_US = 5_000
_MOST_VANISHED_SHARE = 0.001
_STOLEN_SHARE = 0.02  # of processor time: reported from here on
_MOST_LATE_DELIVERIES = 1.25
Figures = Mapping[str, Any]


class Severity(StrEnum):
    """The severity of a reason; its value is also the verdict."""

    DEGRADED = "degraded"
    INVALID = "invalid"


class Reason(NamedTuple):
    """A reason why a run is not valid; reasons of one kind have one name."""

    name: str
    severity: Severity
    text: str


def emulation_reasons(figures: Figures) -> list[Reason]:
    """Reasons why the times of an emulated run are doubtful."""
    late = [*_late_links(figures["links"]), *_late_processes(figures["processes"])]
    if late and (stolen_share := figures["stolen_share"]) > _STOLEN_SHARE:
        late.append(
            _degraded(
                "processor-time-stolen",
                f"the host of this virtual machine took {100 * stolen_share:.0f} % of its "
                f"processor time; use a larger time_scale, or run when the host is less busy",
            )
        )
    found = [*late, *_capture_reasons(figures.get("capture"))]
    return [*found, *_other_runs(figures, is_doubtful=bool(found))]


def metric_reasons(metrics: Figures, is_delay_expected: bool = False) -> list[Reason]:
    """Reasons in the metrics of a run; longer delays than those of links may be expected in it.

    Without a file that it should have, a run is not judged by what its other files say: checks fail
    because of that file.
    """
    if unreadable := list(_unreadable_files(metrics)):
        return unreadable
    return [
        *_broken_checks(metrics),
        *_broken_guarantee(metrics),
        *(() if is_delay_expected else _late_deliveries(metrics)),
        *_late_window(metrics),
    ]


def _degraded(name: str, text: str) -> Reason:
    return Reason(name, Severity.DEGRADED, text)


def _late_links(links: Figures) -> Iterator[Reason]:
    late_share = links.get("late", 0) / max(links["forwarded"], 1)
    if late_share > _MOST_LATE_SHARE:
        yield _degraded(
            "links-late",
            f"{100 * late_share:.1f} % of the packets left a link over 1 ms late, expected at most "
            f"{100 * _MOST_LATE_SHARE:.0f} %; use a larger time_scale or a smaller network",
        )


def _late_processes(processes: list[Figures]) -> Iterator[Reason]:
    for key, what in _LAGS.items():
        worst_us = max((process[key]["mean_us"] for process in processes), default=0)
        if worst_us > _MOST_MEAN_LAG_US:
            yield _degraded(
                f"{what}-late",
                f"the {what} of a process were {worst_us / 1000:.1f} ms late on average, expected "
                f"at most {_MOST_MEAN_LAG_US / 1000:.0f} ms; use a larger time_scale",
            )


def _other_runs(figures: Figures, is_doubtful: bool) -> Iterator[Reason]:
    """Whether other runs on this machine disturbed this one, or may be why it is doubtful."""
    others = figures.get("other_networks")
    if not others:
        return
    lags = [process[key] for process in figures["processes"] for key in _LAGS]
    late_share = max((lag["late"] / max(lag["count"], 1) for lag in lags), default=0.0)
    if late_share > _MOST_LATE_SHARE:
        yield _degraded(
            "agents-disturbed",
            f"{100 * late_share:.1f} % of the timers or datagrams of a process were over 10 ms "
            f"late, expected at most {100 * _MOST_LATE_SHARE:.0f} % beside other runs",
        )
    if is_doubtful or late_share > _MOST_LATE_SHARE:
        yield _degraded(
            "other-runs",
            f"other runs used this machine at the same time: {', '.join(others)}; emulate one "
            f"experiment at a time",
        )


def _capture_reasons(capture: Figures | None) -> Iterator[Reason]:
    """Reasons in a capture, if there is one."""
    if capture is None:
        return
    if "error" in capture:
        yield _degraded("capture-lost", f"the capture was lost: {capture['error']}")
        return
    if capture["unwritten"]:
        yield _degraded(
            "capture-full",
            f"{capture['unwritten']:,} packets are not in the capture, because {capture['full']}; "
            'make room, raise capture_max_mb or set capture = "headers"',
        )
    missed = capture["dropped"] - capture["unwritten"]
    if missed:
        yield _degraded(
            "capture-dropped",
            f"{missed:,} packets are not in the capture, because the machine was too busy; "
            "use a larger time_scale or a smaller network",
        )
    if abs(capture["vanished"]) > _MOST_VANISHED_SHARE * capture["packets"]:
        yield _degraded(
            "capture-inconsistent",
            f"{capture['vanished']:,} of {capture['packets']:,} captured packets are unknown to "
            f"the links that carry them; use a larger time_scale or a smaller network",
        )


def _unreadable_files(metrics: Figures) -> Iterator[Reason]:
    for one in metrics.get("unreadable", ()):
        text = f"{one['file']}: {one['why']}; every run of this kind has this file"
        yield Reason("file-unreadable", Severity.INVALID, text)


def _broken_checks(metrics: Figures) -> Iterator[Reason]:
    for name, check in metrics.get("checks", {}).items():
        if check["ok"] is False:
            yield Reason(
                f"check-{name}",
                Severity.INVALID,
                f"packets and records disagree on {name}: expected {check['expected']}, found "
                f"{check['found']}; do not use the metrics of this run",
            )


def _broken_guarantee(metrics: Figures) -> Iterator[Reason]:
    found = metrics.get("guarantee") or {}
    for what in ("missing", "repeated"):
        if count := found.get(what):
            yield Reason(
                f"deliveries-{what}",
                Severity.INVALID,
                f"{count} deliveries are {what}, the first of {found[f'first_{what}']}; expected "
                f"none, as {found['promised']} delivery is promised",
            )


def _late_window(metrics: Figures) -> Iterator[Reason]:
    """Whether the measured window begins after the last event."""
    warm_up, events = metrics.get("warm_up"), metrics.get("events")
    if not warm_up or not events or not 0 < events["published"] <= warm_up["events"]:
        return
    ready_s = warm_up["until_s"]
    never = "when all agents are ready, which they never were"
    begin = never if ready_s is None else f"at {ready_s:.1f} s"
    yield _degraded(
        "window-late",
        f"all {events['published']} events were published before the measured window, which begins "
        f"{begin}; use a larger workload.start_s and duration_s",
    )


def _late_deliveries(metrics: Figures) -> Iterator[Reason]:
    """Whether the median delivery took much longer than the links on its path.

    After faults this is normal until all is repaired. Metrics are of the whole run, so there is no
    such reason for a run with faults or churn, not even for deliveries before the first fault.
    """
    measured, intended = metrics.get("rdp"), metrics.get("rdp_of_paths")
    if not measured or not intended or metrics.get("recovery"):
        return
    ratio = measured["p50"] / intended["p50"]
    if ratio > _MOST_LATE_DELIVERIES:
        yield _degraded(
            "deliveries-late",
            f"deliveries took {ratio:.2f} times the delays of their paths (median), expected at "
            f"most {_MOST_LATE_DELIVERIES}; use a larger time_scale or a less busy machine",
        )
