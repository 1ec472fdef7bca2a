"""Cumulative distributions of RDP and link stress, reduced to what a figure can show."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.overlay_paths import find_paths
from analysis.report.reported_run import ReportedRun

Values = NDArray[np.float64]

_MOST_STEPS = 600


class Series(NamedTuple):
    """The share `y` of values that are at most `x`; `counted` is their number and name."""

    label: str
    counted: str
    x: list[float]
    y: list[float]


class Distribution(NamedTuple):
    """A figure of one or more series; `missing` is the text if there are none.

    `column` is the name of its values in a file, `explain` their explanation.
    """

    file: str
    title: str
    explain: str
    column: str
    x_label: str
    series: list[Series]
    missing: str = ""
    start: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The form that the page reads."""
        fields = self._asdict() | {"series": [series._asdict() for series in self.series]}
        return fields | {"from": fields.pop("start")}


def cumulate(label: str, what: str, values: Values) -> Series:
    """The cumulative distribution of some values, with its ends and at most 600 steps."""
    x, counts = np.unique(values, return_counts=True)
    share = np.cumsum(counts) / len(values)
    if len(x) > _MOST_STEPS:
        wanted = np.linspace(0, 1, _MOST_STEPS)
        kept = np.unique([0, *np.minimum(np.searchsorted(share, wanted), len(x) - 1), len(x) - 1])
        x, share = x[kept], share[kept]
    steps = ([float(f"{value:.7g}") for value in column] for column in (x, share))
    return Series(label, f"{len(values):,} {what}", *steps)


def read_distributions(run: ReportedRun) -> list[Distribution]:
    """The distributions of a run: delay penalty, then stress (without events: packets on links)."""
    return [_delay_penalty(run), _stress(run)]


def _delay_penalty(run: ReportedRun) -> Distribution:
    series = []
    table = run.table("deliveries", ("rdp", "is_own", "copy"))
    if table is not None:
        rows = zip(*(table[name].to_pylist() for name in ("rdp", "is_own", "copy")), strict=True)
        values = [rdp for rdp, is_own, copy in rows if rdp is not None and not is_own and copy == 1]
        if values:
            series.append(cumulate("events", "deliveries", np.array(values, dtype=np.float64)))
    pairs = _overlay_penalties(run)
    if pairs is not None and pairs.size:
        series.append(cumulate("overlay", "pairs of peers", pairs))
    return Distribution(
        "rdp_cdf",
        "Relative delay penalty",
        "Delay over the overlay divided by the unicast delay between the same two hosts. "
        "1 is the minimum without detours.",
        "rdp",
        "delay over the overlay / unicast delay",
        series,
        "No event was delivered and no overlay recorded, so there is no delay to compare.",
        1.0,
    )


def _overlay_penalties(run: ReportedRun) -> Values | None:
    overlay, unicast = run.overlay, run.unicast
    if overlay is None or unicast is None:
        return None
    paths = find_paths(unicast, overlay.links, is_directed=overlay.is_directed)
    counts = paths.is_reached & (unicast.delay_us > 0)
    penalties: Values = paths.delay_us[counts] / unicast.delay_us[counts]
    return penalties


def _stress(run: ReportedRun) -> Distribution:
    table = run.table("stress", ("copies",))
    if table is not None and table.num_rows:
        copies = table["copies"].to_numpy().astype(np.float64)
        return Distribution(
            "stress_cdf",
            "Link stress",
            "Copies of one event on one link in one direction, over all events and all links that "
            "the event crossed. 1 is the minimum.",
            "copies",
            "copies of an event on a link",
            [cumulate("events", "events on links", copies)],
            start=0.0,
        )
    return _packets_on_links(run)


def _packets_on_links(run: ReportedRun) -> Distribution:
    """Packets on links: the replacement for stress in runs without events."""
    table = run.table("link_loads", ("packets",))
    series = []
    if table is not None and table.num_rows:
        packets = table["packets"].fill_null(0).to_numpy().astype(np.float64)
        series = [cumulate("all packets", "links and directions", packets)] if any(packets) else []
    return Distribution(
        "link_packets_cdf",
        "Packets on a link",
        "All packets that entered a link in one direction. Without events there is no link stress.",
        "packets",
        "packets in one direction of a link",
        series,
        "The packets of this run were not analysed (tdo analyze)."
        if table is None
        else "No events and no packets were found, so links have no load.",
        0.0,
    )
