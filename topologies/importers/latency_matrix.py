"""Matrices of round-trip times between hosts (PlanetLab, King, Meridian).

The routers between the hosts are unknown, so each host has a last mile to one exchange. The
delays a_i of last miles are fitted: the a_i ≥ 0 with the least sum of squares of
a_i + a_j - rtt_ij / 2 over all measured pairs. One delay for each host cannot reproduce n delays
for each host: the notes have the error of the fit.

Two layouts: N rows of N round-trip times in milliseconds, or lines `i j microseconds`.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from topologies.delays import LARGEST_DELAY_US
from topologies.errors import TopologyError
from topologies.importers.draft import Draft
from topologies.importers.options import ImportOptions
from topologies.importers.source_file import SourceFile
from topologies.underlay import Host, Link, Router, Underlay

Matrix = NDArray[np.float64]

_US_PER_MS = 1000
_MOST_STEPS = 10_000
_PRECISION_US = 1e-3


def read_matrix(source: SourceFile, _options: ImportOptions) -> Underlay:
    """Hosts around one exchange, from N rows of N round-trip times in milliseconds."""
    count = len(source.lines)
    rows_ms = [_matrix_row(source, line, text, count) for line, text in source.lines]
    rtt_us = np.array(rows_ms) * _US_PER_MS
    _check_measured(source, rtt_us, [line for line, _ in source.lines])
    return _exchange(Draft(source, "latency-matrix"), rtt_us, range(1, count + 1))


def read_pairs(source: SourceFile, _options: ImportOptions) -> Underlay:
    """Hosts around one exchange, from lines `i j microseconds`."""
    pairs: dict[tuple[int, int], int] = {}
    lines: dict[int, int] = {}
    for line, columns in source.rows():
        if len(columns) != 3:
            raise source.error(line, "`i j microseconds`", repr(" ".join(columns)))
        i, j = (source.whole_number(line, "a host number", text) for text in columns[:2])
        if (i, j) in pairs:
            raise source.error(line, "every pair once", f"{i} {j} again", "keep one")
        pairs[i, j] = source.delay_us(line, "the round-trip time in us", columns[2], 1)
        lines |= {i: line, j: line}
    labels = sorted({host for pair in pairs for host in pair})
    index = {label: position for position, label in enumerate(labels)}
    rtt_us = np.zeros((len(labels), len(labels)))
    for (i, j), delay_us in pairs.items():
        rtt_us[index[i], index[j]] = delay_us
    _check_measured(source, rtt_us, [lines[label] for label in labels])
    return _exchange(Draft(source, "latency-pairs"), rtt_us, labels)


def fit_last_miles_us(rtt_us: Matrix) -> Matrix:
    """The last-mile delay of each host that fits the round-trip times best.

    A round-trip time of 0 was not measured. This is projected gradient descent; the
    step is the inverse of a bound on the curvature, so every step reduces the error.
    """
    measured = (rtt_us > 0).astype(np.float64)
    np.fill_diagonal(measured, 0)
    weight = measured + measured.T
    wanted = ((rtt_us * measured) + (rtt_us * measured).T).sum(axis=1) / 2
    pairs = weight.sum(axis=1)
    curvature = 2 * pairs.max()
    last_miles: Matrix = wanted / (2 * pairs)
    for _ in range(_MOST_STEPS):
        slope = pairs * last_miles + weight @ last_miles - wanted
        lower = np.maximum(0, last_miles - slope / curvature)
        change = np.abs(lower - last_miles).max()
        last_miles = lower
        if change < _PRECISION_US:
            break
    return last_miles


def median_relative_error(rtt_us: Matrix, last_miles_us: Matrix) -> float:
    """The median over measured pairs of the fit's relative error."""
    measured = rtt_us > 0
    np.fill_diagonal(measured, False)
    fitted = 2 * (last_miles_us[:, None] + last_miles_us[None, :])[measured]
    return float(np.median(np.abs(fitted / rtt_us[measured] - 1)))


def _exchange(draft: Draft, rtt_us: Matrix, labels: Sequence[int]) -> Underlay:
    """One router with a host for each row of round-trip times."""
    last_miles_us = fit_last_miles_us(rtt_us)
    hosts = tuple(Host(f"h{n}", label=str(label)) for n, label in enumerate(labels, start=1))
    links = tuple(
        Link.symmetric(host.name, "r1", round(float(delay_us)))
        for host, delay_us in zip(hosts, last_miles_us, strict=True)
    )
    _note_fit(draft, rtt_us, last_miles_us)
    router = Router("r1", label="exchange")
    try:
        return Underlay((router,), links, hosts, draft.origin())
    except TopologyError as error:
        raise TopologyError(f"{draft.source.path}: {error}") from error


def _note_fit(draft: Draft, rtt_us: Matrix, last_miles_us: Matrix) -> None:
    error = median_relative_error(rtt_us, last_miles_us)
    draft.notes.append(
        "last-mile delays are fitted to the round-trip times: "
        f"median relative error {100 * error:.1f} %"
    )
    count = len(rtt_us)
    unmeasured = int((np.maximum(rtt_us, rtt_us.T) <= 0).sum() - (np.diag(rtt_us) <= 0).sum()) // 2
    if unmeasured:
        draft.notes.append(
            f"{unmeasured} of {count * (count - 1) // 2} pairs have no round-trip time and do not "
            f"count in the fit"
        )


def _matrix_row(source: SourceFile, line: int, text: str, count: int) -> Matrix:
    columns = text.split()
    if len(columns) != count:
        raise source.error(
            line,
            f"{count} round-trip times, as many as there are rows",
            len(columns),
            "give a square matrix",
        )
    try:
        row = np.array(columns, dtype=np.float64)
    except ValueError:
        row = np.full(count, np.nan)
    if not (
        np.isfinite(row).all() and row.min() >= 0 and row.max() * _US_PER_MS <= LARGEST_DELAY_US
    ):
        # Slower, but it finds the invalid value.
        return np.array([_round_trip_ms(source, line, n, t) for n, t in enumerate(columns, 1)])
    return row


def _round_trip_ms(source: SourceFile, line: int, column: int, text: str) -> float:
    what = f"the round-trip time in ms in column {column}"
    return source.delay_us(line, what, text, _US_PER_MS) / _US_PER_MS


def _check_measured(source: SourceFile, rtt_us: Matrix, lines: Sequence[int]) -> None:
    """Raise an error unless every host has a round-trip time to another one."""
    measured = rtt_us > 0
    np.fill_diagonal(measured, False)
    alone = np.flatnonzero(~(measured.any(axis=0) | measured.any(axis=1)))
    if len(alone):
        raise source.error(
            lines[int(alone[0])],
            "a round-trip time above 0 between every host and some other",
            "none",
            "leave the host out",
        )
