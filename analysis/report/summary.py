"""The words and numbers of a report: the experiment, the verdict, and metrics with meanings."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from analysis.metrics.metric import look_up
from analysis.metrics.names import is_former, name_number
from analysis.metrics.table import METRICS, find_metric
from analysis.numbers import read_quantity
from analysis.report.explanations import Explanation, explain, read_groups
from analysis.report.reported_run import ReportedRun

Row = dict[str, Any]

_MOST_HEADLINES = 6
_NOTES = "notes"


def title(run: ReportedRun) -> str:
    """The name of the run's experiment."""
    return str(run.experiment.get("name") or run.path.resolve().name)


def subtitle(run: ReportedRun) -> str:
    """What was run, in one line."""
    experiment, parts = run.experiment, []
    if "backend" in experiment:
        parts.append(f"{experiment['backend']}, seed {experiment.get('seed')}")
    if "duration_s" in experiment:
        parts.append(f"{experiment['duration_s']:g} s")
    if run.underlay is not None:
        kind = run.underlay.source.get("generator") or "network"
        sizes = f"{len(run.underlay.routers):,} routers and {len(run.underlay.hosts):,} hosts"
        parts.append(f"{kind} of {sizes}")
    layers = (experiment.get(layer) or {} for layer in ("overlay", "routing", "workload"))
    parts += [_kind_words(layer) for layer in layers if layer.get("kind")]
    return " · ".join(parts)


def _kind_words(layer: Mapping[str, Any]) -> str:
    variety = layer.get("heuristic") or layer.get("strategy")
    return f"{layer['kind']} ({variety})" if variety else str(layer["kind"])


def verdict(run: ReportedRun) -> Row:
    """The verdict with its reasons and measurements."""
    found = str(run.verdict.get("verdict") or "unknown")
    reasons = run.verdict.get("reasons") or []
    words = {
        "valid": "No check found a reason to doubt these values.",
        "unknown": "The run did not end, so it has no verdict."
        if run.is_partial
        else "The run has no verdict.json.",
    }
    return {
        "verdict": found,
        "title": "No verdict" if found == "unknown" else found.capitalize(),
        "reasons": [str(reason) for reason in reasons],
        "words": words.get(found, "No reason was given."),
        "figures": [
            [name.replace("_", " "), value]
            for name, value in _leaves("", _figures(run))
            if value is not None
        ],
    }


def _figures(run: ReportedRun) -> Mapping[str, Any]:
    found = run.verdict.get("figures")
    return found if isinstance(found, dict) else {}


def headlines(metrics: Mapping[str, Any]) -> list[Row]:
    """The metrics for the top of the page: the first few that the run has."""
    found = []
    for metric in METRICS:
        name, shown = metric.headline_name, metric.headline
        value = look_up(metrics, name)
        if shown is None or value is None:
            continue
        whole = look_up(metrics, shown.of) if shown.of else None
        parts = [(part, words, look_up(metrics, part)) for part, words in shown.details]
        found.append(
            {
                "name": name,
                "label": shown.label,
                "explain": metric.explanation,
                "value": value,
                "suffix": _suffix(whole, name),
                "detail": " · ".join(_details(name, parts)),
            }
        )
    return found[:_MOST_HEADLINES]


def _suffix(whole: int | None, name: str) -> str:
    """The text after a number at the top of the page: the total, or seconds."""
    if whole is not None:
        return f" of {whole:,}"
    return " s" if name_number(name).unit == "s" else ""


def _details(name: str, parts: Iterable[tuple[str, str, Any]]) -> Iterator[str]:
    """The unit of a number, and other numbers with their words; shares and times have units."""
    unit = name_number(name).unit
    if unit not in ("share", "s"):
        yield unit
    for part, words, value in parts:
        if value is not None:
            own = name_number(part).unit
            yield f"{words} {read_quantity(value, own if own in ('share', 's') else '')}"


def metric_groups(metrics: Mapping[str, Any]) -> list[Row]:
    """Every number of `metrics.json`, in groups; those of no group come last."""
    notes = metrics.get(_NOTES) or {}
    groups, left = [], {n: _present(value) for n, value in metrics.items() if n != _NOTES}
    for group in read_groups():
        if group.of:
            parts = left.pop(group.of, None) or {}
            words = {name: group.metrics.get(name) or explain(name) for name in parts}
            rows = [_row(f"{group.of}.{n}", words[n], part, notes) for n, part in parts.items()]
        else:
            known = [name for name in group.metrics if name in left]
            rows = [_row(name, group.metrics[name], left.pop(name), notes) for name in known]
        groups.append({"title": group.title, "side": group.side, "rows": rows})
    rows = [_row(name, explain(name), value, notes) for name, value in sorted(left.items())]
    groups.append({"title": "Others", "side": "right", "rows": rows})
    return [group for group in groups if group["rows"]]


def _present(value: Any) -> Any:
    """The same without numbers under their former names."""
    if not isinstance(value, Mapping):
        return value
    return {key: _present(part) for key, part in value.items() if not is_former(key, value)}


def _row(name: str, words: Explanation, value: Any, notes: Mapping[str, str]) -> Row:
    unit = name_number(name).unit
    if unit == "share" or re.search(rf"\b{re.escape(unit)}\b", words.label.lower()):
        unit = ""  # shown in percent, or in the label already
    row = {"name": name, **words._asdict(), "unit": unit}
    return {**row, "value": value, "note": notes.get(name, "")}


def part_words(metrics: Mapping[str, Any]) -> dict[str, str]:
    """The words for each part of a metric, and group of parts, without those for the whole."""
    numbers = [name for name, _, _ in flat_metrics(metrics)]
    groups = dict.fromkeys(name.rpartition(".")[0] for name in numbers)
    return {
        name: _own_words(name)
        for name in (*numbers, *groups)
        if "." in name and find_metric(name.partition(".")[0])
    }


def _own_words(name: str) -> str:
    words, whole = name_number(name).words, name_number(name.rpartition(".")[0]).words
    for separator in (", ", ": "):
        if words.startswith(f"{whole}{separator}"):
            return words.removeprefix(f"{whole}{separator}")
    return words.rpartition(", ")[2].rpartition(": ")[2]


def seconds(metrics: Mapping[str, Any]) -> list[str]:
    """The numbers of `metrics.json` in seconds that are parts of metrics with other units."""
    return [
        name
        for name, _, _ in flat_metrics(metrics)
        if name_number(name).unit == "s" and name_number(name.partition(".")[0]).unit != "s"
    ]


def shares(metrics: Mapping[str, Any]) -> list[str]:
    """The numbers of `metrics.json` that are shown in percent."""
    return [name for name, _, _ in flat_metrics(metrics) if name_number(name).unit == "share"]


def flat_metrics(metrics: Mapping[str, Any]) -> list[tuple[str, Any, str]]:
    """Every single number of `metrics.json` with its note, for a file."""
    notes = metrics.get(_NOTES) or {}
    figures = {name: value for name, value in metrics.items() if name != _NOTES}
    return [(name, value, notes.get(name, "")) for name, value in _leaves("", figures)]


def _leaves(prefix: str, given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in given.items():
        if isinstance(value, Mapping):
            yield from _leaves(f"{prefix}{key}.", value)
        elif isinstance(value, list) and any(isinstance(part, Mapping) for part in value):
            parts = {str(number): part for number, part in enumerate(value, start=1)}
            yield from _leaves(f"{prefix}{key}.", parts)
        elif isinstance(value, list):
            yield prefix + key, ", ".join(map(str, value))
        else:
            yield prefix + key, value


def facts(run: ReportedRun) -> list[tuple[str, str, bool]]:
    """Facts of the run: a name, words, and whether they are code."""
    document, experiment = run.run, run.experiment
    rows = [
        ("Experiment", str(experiment.get("name") or ""), False),
        ("Backend", str(experiment.get("backend") or ""), False),
        ("Seed", str(experiment.get("seed", "")), False),
        ("Command", " ".join(map(str, document.get("command") or [])), True),
        ("Directory", str(run.path.resolve()), True),
        ("Commit", str(document.get("commit") or ""), True),
        ("Phases", _phases(document.get("phases_s") or {}), False),
    ]
    rows += [
        (layer.capitalize(), _settings(experiment[layer]), False)
        for layer in ("topology", "overlay", "routing", "workload")
        if experiment.get(layer)
    ]
    versions = document.get("versions") or {}
    rows += [
        ("Faults", _faults(experiment.get("fault") or []), False),
        ("Python, kernel", _joined(document.get("python"), document.get("kernel")), False),
        ("Versions", ", ".join(f"{name} {number}" for name, number in versions.items()), False),
    ]
    return [row for row in rows if row[1]]


def _phases(phases_s: Mapping[str, float]) -> str:
    total = f", together {sum(phases_s.values()):.4g} s" if len(phases_s) > 1 else ""
    return ", ".join(f"{name} {took_s:.4g} s" for name, took_s in phases_s.items()) + total


def _settings(layer: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in layer.items() if value != "")


def _faults(faults: list[Mapping[str, Any]]) -> str:
    return ", ".join(
        f"{fault.get('at_s')} s {fault.get('action')} {fault.get('target', '')}" for fault in faults
    )


def _joined(*words: Any) -> str:
    return ", ".join(str(word) for word in words if word)


def missing(run: ReportedRun) -> list[dict[str, str]]:
    """The parts of the run that are missing, and why."""
    return [{"what": what, "why": why} for what, why in _missing(run)]


def _missing(run: ReportedRun) -> Iterator[tuple[str, str]]:
    if run.is_partial:
        yield (
            "The run is not complete",
            "it ended early; the report has what was recorded until then",
        )
    if not run.run:
        yield "run.json", "missing or not readable, so the experiment is not known"
    if run.underlay is None:
        yield "underlay.json", "missing, so there is no map, and delays cannot be compared"
    notes: Mapping[str, str] = run.metrics.get(_NOTES) or {}
    if not run.metrics:
        yield "Metrics", "the run has not been analysed; run tdo analyze first"
    elif run.table("link_loads", ("link",)) is None:
        yield (
            "Tables",
            "packets were not analysed, so traffic and stress are not shown; run tdo analyze",
        )
    for name, note in notes.items():
        if name not in run.metrics:
            yield explain(name).label, note
