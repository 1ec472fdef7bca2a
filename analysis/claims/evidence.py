"""The evidence of relations: rows of sweeps, values by seed, and comparisons of them.

A value is a number for each seed. Two values are compared by their means over the seeds that both
have. The difference is computed for each seed, which gives an interval.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from analysis.errors import AnalysisError
from analysis.figures.sweep import Row, mean_interval, read_series

ByKey = Mapping[str, Any]
Values = Mapping[int, float]  # by seed

_MOST_NAMED = 4


class UnfitRows(AnalysisError):
    """Rows that a relation needs are missing, or there are several where one is expected."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean over seeds with its 95 % confidence interval, if there are two seeds or more."""

    mean: float
    low: float | None
    high: float | None

    @classmethod
    def of(cls, values: Values) -> "Estimate":
        """The estimate from one number for each seed."""
        return cls(*mean_interval(list(values.values())))

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Both ends of the interval, if there is one."""
        return None if self.low is None or self.high is None else (self.low, self.high)


@dataclass(frozen=True, slots=True)
class SweepRows:
    """The rows of a sweep or computation with measurements, and its folder.

    `unit` is what a row describes: a run or a point.
    """

    name: str
    rows: Sequence[Row]
    path: Path = Path()
    unit: str = "run"

    def values(self, column: str, where: ByKey) -> Values:
        """A number for each seed, of the runs that have these values."""
        chosen = self._runs(where)
        found = {row["seed"]: row[column] for row in chosen if row.get(column) is not None}
        if not found:
            what = f"{column} of a {self.unit}" if chosen else f"a {self.unit}"
            raise UnfitRows(f"{self.name}: expected {what} with {_describe(where)}, found none")
        return found

    def choices(self, key: str, where: ByKey | None = None) -> list[Any]:
        """The values that a key has, in their order."""
        found = {row.get(key) for row in self.rows if matches(row, where or {})} - {None}
        if not found:
            raise UnfitRows(f"{self.name}: expected {self.unit}s with {key}, found none")
        return sorted(found)

    def steps(self, series: str, where: ByKey) -> dict[int, list[Row]]:
        """For each seed the rows of a file that runs have in their analysis."""
        try:
            found = read_series(series, self._runs(where), self.path)
        except AnalysisError as error:
            raise UnfitRows(f"{self.name}: {_describe(where)}: {error}") from error
        by_seed: dict[int, list[Row]] = {}
        for step in found:
            by_seed.setdefault(step["seed"], []).append(step)
        return by_seed

    def _runs(self, where: ByKey) -> list[Row]:
        """The runs that have these values, one for each seed."""
        chosen = [row for row in self.rows if matches(row, where)]
        for seed, count in Counter(row["seed"] for row in chosen).items():
            if count > 1:
                raise UnfitRows(
                    f"{self.name}: expected one {self.unit} of seed {seed} with "
                    f"{_describe(where)}, found {count}"
                )
        return chosen


Evidence = Mapping[str, SweepRows]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A statement that one value is larger than another, strictly or not."""

    label: str
    larger: Values
    smaller: Values
    is_strict: bool = True

    @property
    def seeds(self) -> list[int]:
        """The seeds that both have."""
        return sorted(self.larger.keys() & self.smaller.keys())

    @property
    def holds(self) -> bool:
        """Whether it is larger on average."""
        larger, smaller = (fmean(values) for values in zip(*self._pairs(), strict=True))
        return larger > smaller or (larger == smaller and not self.is_strict)

    @property
    def is_level(self) -> bool:
        """Whether both are equal in every seed."""
        return all(larger == smaller for larger, smaller in self._pairs())

    @property
    def margin(self) -> Estimate:
        """The difference in percent of the larger value; below 0 if the other one is larger."""
        shares = [
            100 * (more - less) / (max(abs(more), abs(less)) or 1) for more, less in self._pairs()
        ]
        return Estimate.of(dict(zip(self.seeds, shares, strict=True)))

    def _pairs(self) -> list[tuple[float, float]]:
        if not self.seeds:
            raise UnfitRows(f"{self.label}: expected runs of the same seeds, found none")
        return [(self.larger[seed], self.smaller[seed]) for seed in self.seeds]


@dataclass(frozen=True, slots=True)
class Part:
    """One sentence of an answer; `holds` is None if it is for information."""

    text: str
    holds: bool | None = None
    comparisons: tuple[Comparison, ...] = ()

    @classmethod
    def of(cls, text: str, comparisons: Sequence[Comparison]) -> "Part":
        """A part that holds when all of some comparisons do, and else names those that do not."""
        failing = [some.label for some in comparisons if not some.holds]
        if failing:
            named = ", ".join(failing[:_MOST_NAMED])
            more = len(failing) - _MOST_NAMED
            text += f" (not: {named}{f', {more} more' if more > 0 else ''})"
        return cls(text, not failing, tuple(comparisons))


@dataclass(frozen=True, slots=True)
class Finding:
    """The result for a claim; without parts, `reason` says why there is none.

    `holds` is None if it is undecided. The interval is that of `interval_of`.
    """

    parts: tuple[Part, ...]
    interval: Estimate | None = None
    interval_of: str = ""
    reason: str = ""

    @property
    def comparisons(self) -> list[Comparison]:
        """Those of all parts."""
        return [some for part in self.parts for some in part.comparisons]

    @property
    def holds(self) -> bool | None:
        """Whether all parts hold that are not for information."""
        decisive = [part.holds for part in self.parts if part.holds is not None]
        return all(decisive) if decisive and not self.reason else None

    @property
    def is_in_part(self) -> bool:
        """Whether some parts hold and some do not."""
        return self.holds is False and any(part.holds for part in self.parts)

    @property
    def ours(self) -> str:
        """The answer as one text."""
        marks = {True: "yes: ", False: "no: ", None: ""}
        sentences = [marks[part.holds] + part.text for part in self.parts]
        return "; ".join([*([self.reason] if self.reason else []), *sentences])

    @property
    def verdict(self) -> str:
        """`yes`, `no`, `in part`, or `?` where it cannot be decided."""
        if self.holds is None:
            return "?"
        return "yes" if self.holds else "in part" if self.is_in_part else "no"


def conclude(parts: Sequence[Part]) -> Finding:
    """A finding with the interval of the tightest of all comparisons.

    Values that may be equal and are equal in every seed, as under a limit that binds no peer, are
    not considered.
    """
    finding = Finding(tuple(parts))
    telling = [some for some in finding.comparisons if some.is_strict or not some.is_level]
    tightest = min(telling or finding.comparisons, key=lambda some: some.margin.mean)
    label = f"% margin of the tightest: {tightest.label}"
    return replace(finding, interval=tightest.margin, interval_of=label)


def steps_down(
    label: str, series: Sequence[tuple[Any, Values]], is_strict: bool = True
) -> list[Comparison]:
    """Comparisons for a value that falls from each place to the next."""
    pairs = _neighbours(label, series)
    return [
        Comparison(f"{label} falls, {here} to {there}", high, low, is_strict)
        for (here, high), (there, low) in pairs
    ]


def steps_up(
    label: str, series: Sequence[tuple[Any, Values]], is_strict: bool = True
) -> list[Comparison]:
    """Comparisons for a value that rises from each place to the next."""
    pairs = _neighbours(label, series)
    return [
        Comparison(f"{label} rises, {here} to {there}", high, low, is_strict)
        for (here, low), (there, high) in pairs
    ]


def _neighbours(
    label: str, series: Sequence[tuple[Any, Values]]
) -> list[tuple[tuple[Any, Values], tuple[Any, Values]]]:
    if len(series) < 2:
        raise UnfitRows(f"{label}: expected two or more values to compare, found {len(series)}")
    return list(pairwise(series))


def scaled(values: Values, factor: float) -> Values:
    """The same multiplied."""
    return {seed: factor * value for seed, value in values.items()}


def show(values: Values, digits: int = 2, unit: str = "") -> str:
    """The mean with its interval, as in `1.61 [1.53, 1.68]`."""
    estimate = Estimate.of(values)
    text = f"{estimate.mean:,.{digits}f}"
    if estimate.bounds is not None:
        low, high = estimate.bounds
        text += f" [{low:,.{digits}f}, {high:,.{digits}f}]"
    return text + unit


def show_means(series: Sequence[Values], digits: int = 2, unit: str = "") -> str:
    """Means one after another, as in `2.14, 1.81, 1.69`."""
    means = [fmean(values.values()) for values in series]
    return ", ".join(f"{mean:,.{digits}f}" for mean in means) + unit


def percent(values: Values) -> Values:
    """Shares as percentages."""
    return scaled(values, 100)


def matches(row: Row, where: ByKey) -> bool:
    """Whether a row has these values; where several are given, one of them."""
    return all(
        row.get(key) in wanted if isinstance(wanted, tuple) else row.get(key) == wanted
        for key, wanted in where.items()
    )


def _describe(where: ByKey) -> str:
    return ", ".join(f"{key.rpartition('.')[2]}={value}" for key, value in where.items())
