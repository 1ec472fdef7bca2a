"""Sweeps: one experiment file that describes many runs.

Any value given as a list is swept, and so are the `[[variant]]` tables, each of which may set
several keys at once. Every combination is an experiment of its own and is checked as one. A file
without either is a sweep of one run. `[[figure]]` tables describe figures of the results. For keys
that take a range, `[2, 6]` is one range, and `[[2, 2], [2, 6]]` is a sweep of two.
"""

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed.data_files import find_data_file
from testbed.errors import ExperimentError
from testbed.experiment.file import (
    NAME_PATTERN,
    Experiment,
    experiment_from_dict,
    load_document,
)
from testbed.experiment.kinds import takes_range
from testbed.experiment.settings import check_keys, check_type, range_text
from workloads.kinds import find_workload

VARIANT = "variant"  # the column with the variant of a run
_NOT_SWEPT = ("fault", "variant", "figure")
_FIXED = ("name", "folder", "data")
FIGURE_TYPES: dict[str, type] = {
    "name": str,
    "x": str,
    "y": str,
    "lines": list,
    "panels": str,
    "title": str,
    "x_label": str,
    "y_label": str,
    "log_x": bool,
    "series": str,
}
_FIGURE_NEEDS = ("name", "x", "y")


@dataclass(frozen=True, slots=True)
class SweptExperiment:
    """One experiment of a sweep, and its swept keys with their values."""

    experiment: Experiment
    values: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """A digest of everything that the run depends on: equal digests mean equal runs, in any
        sweep.
        """
        plain = _as_before(self.experiment.to_dict())
        del plain["name"]
        folder = Path(plain.pop("folder"))
        file = folder / self.experiment.topology.file
        if self.experiment.topology.kind == "file" and file.is_file():
            plain["topology"]["content"] = hashlib.sha256(file.read_bytes()).hexdigest()
        data = plain.pop("data")
        for key, name in self.data_files.items():
            if path := find_data_file(name, folder, data):
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                plain["workload"][f"{key} content"] = digest
        return _digest(plain)

    @property
    def data_files(self) -> Mapping[str, str]:
        """The data files that the workload names, by their settings."""
        workload = self.experiment.workload
        kind = find_workload(workload["kind"]) if workload else None
        return {key: workload[key] for key in kind.data_files} if kind else {}


# Settings that were added to a section, each with the value under which runs are the same as
# before. That is their default when they were added, even if the default changes later.
_ADDED: Mapping[str, Mapping[str, Any]] = {
    "overlay": {
        "walk_links": "near",
        "target_budget": "capped",
        "mlink_tolerance": 0.02,
        "placement": "cases",
    },
    "topology": {"loss_percent": 0.0},
    "routing": {"sim_score": "mean", "repair": "optimal"},
    "pubsub": {"recalculations": 0},
    "workload": {"radii": "fitted", "hotspots": "scattered"},
}


def _as_before(plain: dict[str, Any]) -> dict[str, Any]:
    """An experiment without keys that were added to experiment files and that it does not use.

    So runs finished before are found again, except those that a correction changed.
    """
    plain = {**plain, **{name: _without_added(name, plain[name]) for name in _ADDED}}
    if not plain["measure_from_s"]:
        del plain["measure_from_s"]
    topology, pubsub, workload = plain["topology"], plain["pubsub"], plain["workload"]
    if plain["routing"].get("strategy") == "sim":
        plain["routing"]["selection"] = 2  # unknown histories no longer count as similar
    if topology["kind"] == "transit-stub":
        # The networks of a seed differ from those of its first version.
        plain = {**plain, "topology": {**topology, "generator": 2}}
    if pubsub and pubsub["kind"] != find_workload(workload["kind"]).pubsub:
        return plain
    settings = {key: value for key, value in pubsub.items() if key != "kind"}
    others = {key: value for key, value in plain.items() if key != "pubsub"}
    return {**others, "workload": {**workload, **settings}}


def _without_added(section: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    added = _ADDED[section]
    return {k: v for k, v in settings.items() if k not in added or v != added[k]}


@dataclass(frozen=True, slots=True)
class Sweep:
    """The experiments of a file, in its order; `keys` are the columns that distinguish them."""

    name: str
    experiments: tuple[SweptExperiment, ...]
    text: str
    keys: tuple[str, ...] = ()
    figures: tuple[Mapping[str, Any], ...] = ()
    is_plain: bool = True

    @property
    def digest(self) -> str:
        """A digest that changes with any run, and not with figures."""
        return _digest([swept.digest for swept in self.experiments])


@dataclass
class _Combination:
    """One combination of lists and variants, with the place of each value in the file."""

    document: dict[str, Any]
    places: dict[str, str] = field(default_factory=dict)
    label: str | None = None


def load_sweep(path: Path, changes: Mapping[str, Any] | None = None) -> Sweep:
    """All experiments of a TOML file, with changes given as `section.key` and value."""
    document = load_document(path, changes)
    try:
        figures = _read_figures(document.pop("figure", []))
        combinations = list(_combine(document))
        experiments = [_read(combination) for combination in combinations]
        keys = _columns(combinations, figures, experiments)
        _check_figures(figures, keys)
        swept = tuple(
            SweptExperiment(experiment, _values(experiment, keys, combination.label))
            for experiment, combination in zip(experiments, combinations, strict=True)
        )
        _check_each_once(swept)
    except ExperimentError as error:
        raise ExperimentError(f"{path}: {error}") from error
    is_plain = not any(combination.places for combination in combinations)
    return Sweep(experiments[0].name, swept, path.read_text(), keys, figures, is_plain)


def describe_values(values: Mapping[str, Any]) -> str:
    """The swept values of a run in a few words, with keys without sections."""
    return ", ".join(f"{key.rpartition('.')[2]}={value}" for key, value in values.items())


def _combine(document: dict[str, Any]) -> Iterator[_Combination]:
    """All combinations: variants change slowest, then lists in the order of the file."""
    for key in _FIXED:
        if isinstance(document.get(key), list):
            raise ExperimentError(f"{key}: expected one text for all runs, found a list")
    for base in _apply_variants(document):
        _write_ranges(base)
        lists = list(_find_lists(base.document))
        for key, values in lists:
            _check_list(base.places.get(key, key), values)
        for choice in itertools.product(*(enumerate(values) for _, values in lists)):
            combination = _Combination(_copy(base.document), dict(base.places), base.label)
            for (key, _), (number, value) in zip(lists, choice, strict=True):
                _put(combination.document, key, value)
                combination.places[key] = f"{base.places.get(key, key)}[{number}]"
            yield combination


def _apply_variants(document: dict[str, Any]) -> Iterator[_Combination]:
    variants = document.get("variant")
    document = {key: value for key, value in document.items() if key != "variant"}
    if variants is None:
        yield _Combination(document)
        return
    if not isinstance(variants, list) or not variants:
        raise ExperimentError(f"variant: expected tables, as in [[variant]], found {variants!r}")
    labels: list[str] = []
    for number, variant in enumerate(variants):
        combination = _apply_variant(document, f"variant[{number}]", variant)
        if combination.label in labels:
            raise ExperimentError(
                f"variant[{number}].label: expected one of its own, found {combination.label!r} as "
                f"for variant[{labels.index(combination.label)}]"
            )
        labels.append(str(combination.label))
        yield combination


def _apply_variant(document: dict[str, Any], place: str, variant: Any) -> _Combination:
    if not isinstance(variant, dict):
        raise ExperimentError(f"{place}: expected a table, found {variant!r}")
    label = variant.get("label")
    if label is not None:
        check_type(f"{place}.label", label, str)
    combination = _Combination(_copy(document))
    chosen: dict[str, Any] = {}
    for key, value in variant.items():
        if key == "label":
            continue
        if key in (*_FIXED, "variant", "figure"):
            raise ExperimentError(f"{place}.{key}: expected a key that can differ between runs")
        inner = value.items() if isinstance(value, dict) else ()
        chosen |= {f"{key}.{name}": part for name, part in inner} or {key: value}
    for key, value in chosen.items():
        _put(combination.document, key, value)
        combination.places[key] = f"{place}.{key}"
    if not chosen:
        raise ExperimentError(f"{place}: expected at least one key beside the label, found none")
    combination.label = label or describe_values(chosen)
    return combination


def _write_ranges(base: _Combination) -> None:
    """Turn ranges that are given as lists into texts, so that only other lists are swept."""
    for key, value in list(_find_lists(base.document)):
        section, _, name = key.rpartition(".")
        if takes_range(section, _get(base.document, f"{section}.kind"), name):
            place = base.places.get(key, key)
            _put(base.document, key, _read_ranges(place, value))


def _read_ranges(place: str, values: list[Any]) -> Any:
    """One range, or a list of ranges to sweep."""
    if not any(isinstance(value, list) for value in values):
        if len(values) != 2:
            raise ExperimentError(
                f"{place}: expected a range of two numbers, as in [2, 6], or a sweep of ranges, as "
                f"in [[2, 2], [2, 6]]; found {values!r}"
            )
        return range_text(place, values)
    return [range_text(f"{place}[{number}]", value) for number, value in enumerate(values)]


def _find_lists(document: Mapping[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    for key, value in document.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{k}", v) for k, v in value.items() if isinstance(v, list))
        elif isinstance(value, list) and key not in _NOT_SWEPT:
            yield key, value


def _check_list(place: str, values: list[Any]) -> None:
    if not values:
        raise ExperimentError(f"{place}: expected at least one value, found an empty list")
    for number, value in enumerate(values):
        if isinstance(value, list | dict):
            kind = "a list" if isinstance(value, list) else "a table"
            raise ExperimentError(
                f"{place}[{number}]: expected a single value, found {kind}: {value!r}"
            )
        if value in values[:number]:
            raise ExperimentError(
                f"{place}[{number}]: expected each value once, found {value!r} again"
            )


def _read(combination: _Combination) -> Experiment:
    """The experiment of a combination; an error says which of the values is wrong."""
    try:
        return experiment_from_dict(combination.document, "")
    except ExperimentError as error:
        message = str(error).removeprefix(": ")
    for key, place in combination.places.items():
        if message.startswith(key) and message[len(key)] in ":.[":
            raise ExperimentError(place + message[len(key) :])
    values = {key: _get(combination.document, key) for key in combination.places}
    with_values = f" (in the run with {describe_values(values)})" if values else ""
    raise ExperimentError(message + with_values)


def _columns(
    combinations: Sequence[_Combination],
    figures: Sequence[Mapping[str, Any]],
    experiments: Sequence[Experiment],
) -> tuple[str, ...]:
    """The keys that are swept, and those that a figure names."""
    chosen = [key for combination in combinations for key in combination.places if key != "fault"]
    if any(combination.label is not None for combination in combinations):
        chosen.insert(0, VARIANT)
    for figure in figures:
        named = (figure["x"], *figure["lines"], figure["panels"])
        documents = [experiment.to_dict() for experiment in experiments]
        chosen += [
            key for key in named if any(_is_scalar(_get(document, key)) for document in documents)
        ]
    return tuple(dict.fromkeys(chosen))


def _values(experiment: Experiment, keys: Sequence[str], label: str | None) -> dict[str, Any]:
    plain = experiment.to_dict()
    # A setting of [pubsub] in [workload] is resolved in [pubsub].
    document = plain | {"workload": {**plain["pubsub"], **plain["workload"]}}
    return {key: label if key == VARIANT else _get(document, key) for key in keys}


def _check_each_once(experiments: Sequence[SweptExperiment]) -> None:
    seen: dict[str, SweptExperiment] = {}
    for swept in experiments:
        twin = seen.setdefault(swept.digest, swept)
        if twin is not swept:
            raise ExperimentError(
                f"expected each combination once, found the same run as "
                f"{describe_values(twin.values)} and as {describe_values(swept.values)}"
            )


def _read_figures(given: Any) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(given, list):
        raise ExperimentError(f"figure: expected tables, as in [[figure]], found {given!r}")
    figures: list[Mapping[str, Any]] = []
    for number, table in enumerate(given):
        figure = _read_figure(f"figure[{number}]", table)
        if any(figure["name"] == other["name"] for other in figures):
            raise ExperimentError(
                f"figure[{number}].name: expected one of its own, found {figure['name']!r} again"
            )
        figures.append(figure)
    return tuple(figures)


def _read_figure(place: str, table: Any) -> Mapping[str, Any]:
    if not isinstance(table, dict):
        raise ExperimentError(f"{place}: expected a table, found {table!r}")
    check_keys(f"{place}.", table, list(FIGURE_TYPES))
    for key in _FIGURE_NEEDS:
        if key not in table:
            raise ExperimentError(f"{place}.{key}: expected a value, found none")
    for key, value in table.items():
        check_type(f"{place}.{key}", value, FIGURE_TYPES[key])
    for number, line in enumerate(table.get("lines", [])):
        check_type(f"{place}.lines[{number}]", line, str)
    if not NAME_PATTERN.fullmatch(table["name"]):
        raise ExperimentError(
            f"{place}.name: expected letters, digits, dots and hyphens, as it names files; found "
            f"{table['name']!r}"
        )
    return {key: wanted() for key, wanted in FIGURE_TYPES.items()} | table


def _check_figures(figures: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> None:
    for number, figure in enumerate(figures):
        named = {f"lines[{place}]": key for place, key in enumerate(figure["lines"])}
        if figure["panels"]:
            named["panels"] = figure["panels"]
        for place, key in named.items():
            if key not in keys:
                swept = ", ".join(keys) or "none"
                raise ExperimentError(
                    f"figure[{number}].{place}: expected a key of the experiment, as the swept "
                    f"ones ({swept}); found {key!r}"
                )


def _get(document: Mapping[str, Any], key: str) -> Any:
    section, _, name = key.rpartition(".")
    within = document.get(section) if section else document
    return within.get(name) if isinstance(within, Mapping) else None


def _put(document: dict[str, Any], key: str, value: Any) -> None:
    section, _, name = key.rpartition(".")
    if section and not isinstance(document.setdefault(section, {}), dict):
        raise ExperimentError(f"{section}: expected a table, found {document[section]!r}")
    (document[section] if section else document)[name] = value


def _copy(document: Mapping[str, Any]) -> dict[str, Any]:
    return {k: dict(v) if isinstance(v, dict) else v for k, v in document.items()}


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float | bool)


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
