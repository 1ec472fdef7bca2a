"""Comparison of runs: means over seeds with 95 % confidence intervals, and differences.

Runs whose experiments differ only in the seed form a group. The other groups are compared with the
first. The interval of a difference is Welch's, which does not assume equal variances. The
difference and its interval are shares of the first group's mean.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from pathlib import Path
from statistics import fmean, variance
from typing import Any

from scipy.stats import t as student_t

from analysis.errors import NotARunError
from analysis.figures.sweep import mean_interval
from analysis.json_files import read_object

_CONFIDENCE = 0.95
# not compared: descriptions of the run, and histograms
_LEFT_OUT = ("notes", "checks", "histogram", "distribution", "by_kind", "messages_by_kind")
_MOST_SETTINGS, _FEW_SETTINGS = 9, 6  # in a label: all settings up to the first number, else some
_NOT_THE_EXPERIMENT = ("seed", "folder")  # the folder of the file does not change the run


@dataclass(frozen=True, slots=True)
class Run:
    """The data of a run for a comparison; `metrics` are its numbers by name with dots."""

    path: Path
    experiment: Mapping[str, Any]
    verdict: str
    metrics: Mapping[str, float]
    rdp_over: str | None = None

    @property
    def seed(self) -> int:
        """The seed, in which runs of a group differ."""
        return int(self.experiment.get("seed", 0))


@dataclass(frozen=True, slots=True)
class Group:
    """Runs of one experiment; `settings` are those that differ from other groups."""

    name: str
    settings: Mapping[str, Any]
    runs: tuple[Run, ...]

    @property
    def label(self) -> str:
        """The experiment's name and the differing settings, not all if they are many."""
        settings = [f"{key}={value}" for key, value in self.settings.items()]
        if len(settings) > _MOST_SETTINGS:
            rest = len(settings) - _FEW_SETTINGS
            settings = [*settings[:_FEW_SETTINGS], f"and {rest} more settings"]
        return " ".join([self.name, *settings])


@dataclass(frozen=True, slots=True)
class Cell:
    """The mean of a number in a group, and its difference from the first group."""

    count: int
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    difference_percent: float | None = None
    difference_low_percent: float | None = None
    difference_high_percent: float | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """All groups, a row of cells for each number, and notes."""

    groups: tuple[Group, ...]
    rows: Mapping[str, tuple[Cell, ...]]
    notes: tuple[str, ...]


def compare(paths: Iterable[Path]) -> Comparison:
    """Compare runs; a path is a run directory or the folder of a sweep."""
    found = {run.resolve(): run for path in paths for run in find_runs(path)}
    _require_figures(found.values())
    runs = [read_run(run) for run in found]
    groups = group_runs(runs)
    return Comparison(tuple(groups), compare_groups(groups), tuple(_notes(groups)))


def _require_figures(runs: Collection[Path]) -> None:
    """Raise if a run has no metrics, because it would be missing from every mean."""
    bare = [str(run) for run in runs if not (run / "analysis" / "metrics.json").is_file()]
    if bare:
        raise NotARunError(
            f"{bare[0]}{f' and {len(bare) - 1} more' if len(bare) > 1 else ''}: expected "
            f"analysis/metrics.json, found none; run: tdo analyze {' '.join(bare)}"
        )
    for run in runs:
        if not _is_object(run / "analysis" / "metrics.json"):
            raise NotARunError(
                f"{run}/analysis/metrics.json: expected a JSON object with metrics, found none "
                f"that can be read; run: tdo analyze --again {run}"
            )


def _is_object(file: Path) -> bool:
    try:
        return isinstance(json.loads(file.read_text()), dict)
    except (OSError, ValueError):
        return False


def find_runs(path: Path) -> list[Path]:
    """The run directories that a path stands for."""
    if (path / "run.json").is_file():
        return [path]
    if (path / "sweep.json").is_file():
        runs = sorted(p.parent for p in path.glob("runs/*/run.json") if _is_complete(p.parent))
        if runs:
            return runs
        raise NotARunError(f"{path}: expected a sweep with complete runs, found none in runs/")
    what = "no such folder" if not path.exists() else "neither run.json nor sweep.json in it"
    raise NotARunError(
        f"{path}: expected a run directory or the folder of a sweep, found {what}; "
        "name one, as in results/<name>/latest"
    )


def _is_complete(run: Path) -> bool:
    return not run.name.endswith(".partial")


def read_run(path: Path) -> Run:
    """The experiment, the verdict and the metrics of a run directory."""
    experiment = read_object(path / "run.json").get("experiment")
    if not isinstance(experiment, dict):
        raise NotARunError(f"{path}/run.json: expected a resolved experiment, found none")
    verdict = str(read_object(path / "verdict.json").get("verdict", "unknown"))
    metrics = read_object(path / "analysis/metrics.json")
    over = _rdp_over(metrics)
    if over == "deliveries":
        metrics.setdefault("delivery_rdp", metrics["rdp"])  # which format 1 does not have
    return Run(path, experiment, verdict, dict(_numbers(metrics)), over)


def _rdp_over(metrics: Mapping[str, Any]) -> str | None:
    """Whether `rdp` is over deliveries or over pairs; in old runs, only the former has a count."""
    rdp = metrics.get("rdp")
    if not isinstance(rdp, Mapping):
        return None
    return str(metrics.get("rdp_over") or ("deliveries" if "count" in rdp else "pairs"))


def _numbers(given: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for key, value in given.items():
        if key in _LEFT_OUT:
            continue
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{prefix}{key}.")
        elif isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
            yield prefix + key, value


def group_runs(runs: Sequence[Run]) -> list[Group]:
    """Runs by experiment, in the order of their first runs."""
    by_settings: dict[str, list[Run]] = {}
    for run in runs:
        key = json.dumps(dict(_settings(run.experiment)), sort_keys=True, default=str)
        by_settings.setdefault(key, []).append(run)
    all_settings = [dict(_settings(some[0].experiment)) for some in by_settings.values()]
    names = dict.fromkeys(name for settings in all_settings for name in settings)
    differing = [
        name
        for name in names
        if name != "name" and len({repr(settings.get(name)) for settings in all_settings}) > 1
    ]
    return [
        Group(
            str(settings.get("name", "run")),
            {name: settings[name] for name in differing if name in settings},
            tuple(sorted(some, key=lambda run: run.seed)),
        )
        for settings, some in zip(all_settings, by_settings.values(), strict=True)
    ]


def _settings(experiment: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in experiment.items():
        if not prefix and key in _NOT_THE_EXPERIMENT:
            continue
        if isinstance(value, Mapping):
            yield from _settings(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def compare_groups(groups: Sequence[Group]) -> dict[str, tuple[Cell, ...]]:
    """A row for each number that any run has."""
    names = dict.fromkeys(name for group in groups for run in group.runs for name in run.metrics)
    is_mixed = len(_kinds_of_rdp(groups)) > 1
    rows = {}
    for name in sorted(name for name in names if not (is_mixed and name.startswith("rdp."))):
        values = [[r.metrics[name] for r in group.runs if name in r.metrics] for group in groups]
        rows[name] = (_cell(values[0]), *(_cell(some, values[0]) for some in values[1:]))
    return rows


def _kinds_of_rdp(groups: Sequence[Group]) -> set[str]:
    """The kinds of `rdp` in these runs."""
    return {run.rdp_over for group in groups for run in group.runs if run.rdp_over}


def _cell(values: Sequence[float], reference: Sequence[float] = ()) -> Cell:
    if not values:
        return Cell(0)
    mean, low, high = mean_interval(values)
    if not reference:
        return Cell(len(values), mean, low, high)
    return Cell(len(values), mean, low, high, *_difference_percent(reference, values))


def _difference_percent(
    reference: Sequence[float], values: Sequence[float]
) -> tuple[float | None, float | None, float | None]:
    size = abs(fmean(reference))
    if size == 0:
        return None, None, None  # a percentage of 0 is undefined
    difference, low, high = welch_interval(reference, values)
    percent = [None if bound is None else 100 * bound / size for bound in (difference, low, high)]
    return percent[0], percent[1], percent[2]


def welch_interval(
    reference: Sequence[float], values: Sequence[float]
) -> tuple[float, float | None, float | None]:
    """The difference of the means, with its interval if both groups have two values."""
    difference = fmean(values) - fmean(reference)
    if min(len(reference), len(values)) < 2:
        return difference, None, None
    shares = [variance(some) / len(some) for some in (reference, values)]
    if sum(shares) == 0:
        return difference, difference, difference
    parts = [s**2 / (len(some) - 1) for s, some in zip(shares, (reference, values), strict=True)]
    freedom = sum(shares) ** 2 / sum(parts)
    half = float(student_t.ppf((1 + _CONFIDENCE) / 2, freedom)) * sqrt(sum(shares))
    return difference, difference - half, difference + half


def _notes(groups: Sequence[Group]) -> Iterator[str]:
    if len(groups) == 1:
        yield "all runs are of one experiment; add runs of another to see how the two differ"
    if len(_kinds_of_rdp(groups)) > 1:
        yield (
            "rdp is over deliveries in some runs and over pairs of peers in others, so it is left "
            "out; compare delivery_rdp and overlay_rdp"
        )
    for group in groups:
        if len(group.runs) == 1:
            yield f"{group.label}: one run, so there is no interval; run it with more seeds"
        for seed, times in Counter(run.seed for run in group.runs).items():
            if times > 1:
                yield (
                    f"{group.label}: seed {seed} occurs {times} times, but runs of one seed are "
                    "not independent"
                )
        bare = [run for run in group.runs if not run.metrics]
        if bare:
            yield f"{bare[0].path}: no metrics ({len(bare)} of {len(group.runs)}); run tdo analyze"
        doubtful = Counter(run.verdict for run in group.runs if run.verdict != "valid")
        for verdict, count in doubtful.items():
            yield f"{group.label}: {count} of {len(group.runs)} runs have the verdict {verdict}"
