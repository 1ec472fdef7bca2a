"""Comparison of two runs of one experiment: `python -m analysis.agreement RUN RUN`.

Everything that the experiment determines must be equal: published, matched and delivered events,
messages sent for events, and crossings of each link. Delays may differ between machines, so the
delay penalty has a tolerance. Both runs must be analysed.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_COUNTS = ("events", "delivery", "hops", "link_stress", "overlay_links", "degree", "peers")
_PENALTIES = ("mean", "of_sums")  # quantiles of few deliveries change in steps
_SHOWN = (*_PENALTIES, "p50", "p90")
_TOLERANCE = 0.05
_DIFFERS, _WRONG_USE, _NOT_VALID = 1, 2, 3

Metrics = dict[str, Any]


def differences(first: Metrics, second: Metrics) -> Iterator[str]:
    """The differences between the metrics of two runs, a line each."""
    for name in _COUNTS:
        if first[name] != second[name]:
            yield f"{name}: expected the same in both, found {first[name]} and {second[name]}"
    sent = [_look_up(metrics, ["messages_by_kind", "Event"]) for metrics in (first, second)]
    if sent[0] != sent[1]:
        yield f"events sent: expected the same in both, found {sent[0]} and {sent[1]}"
    yield from _penalties_apart(first, second)
    for metrics in (first, second):
        for name, check in metrics["checks"].items():
            if check["ok"] is False:
                yield f"check {name}: expected {check['expected']}, found {check['found']}"


def _penalties_apart(first: Metrics, second: Metrics) -> Iterator[str]:
    for name in _PENALTIES:
        ours, theirs = (_look_up(metrics, ["rdp", name]) for metrics in (first, second))
        if ours is None or theirs is None:
            found = f"{_shown(ours)} and {_shown(theirs)}"
            yield f"relative delay penalty: expected events delivered in both runs, found {found}"
            return
        if abs(theirs - ours) > _TOLERANCE * ours:
            yield (
                f"relative delay penalty, {name}: expected at most {100 * _TOLERANCE:.0f} % apart, "
                f"found {ours:.4g} and {theirs:.4g}"
            )


def table(runs: list[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """The values of both runs side by side, in rows."""
    yield ("links by", *(run["figures"]["links"]["kind"] for run in runs))
    yield ("verdict", *(run["verdict"] for run in runs))
    missed = (_look_up(run["figures"], ["capture", "dropped"]) for run in runs)
    yield ("packets not captured", *map(_shown, missed))
    for name, *keys in (
        ("events published", "events", "published"),
        ("deliveries expected", "delivery", "expected"),
        ("deliveries made", "delivery", "delivered"),
        ("duplicates", "delivery", "duplicates"),
        ("events, false positives", "events", "in_vain"),
        ("event messages on all links", "link_stress", "total"),
        ("link stress, mean", "link_stress", "mean"),
        ("link stress, maximum", "link_stress", "max"),
        ("messages of all kinds", "messages", "sent"),
        ("packets on all links", "packets", "total"),
        *((f"relative delay penalty, {name}", "rdp", name) for name in _SHOWN),
        ("the same by the links' delays, mean", "rdp_of_paths", "mean"),
    ):
        yield (name, *(_shown(_look_up(run["metrics"], keys)) for run in runs))


def _look_up(figures: Any, keys: list[str]) -> Any:
    """The value under nested keys, or None where there is none."""
    for key in keys:
        figures = (figures or {}).get(key)
    return figures


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.5g}"


def _read(path: Path) -> dict[str, Any]:
    verdict: dict[str, Any] = json.loads((path / "verdict.json").read_text())
    return verdict | {"metrics": json.loads((path / "analysis" / "metrics.json").read_text())}


def main(arguments: list[str]) -> int:
    """Print two runs side by side with their differences; returns the exit status."""
    if len(arguments) != 2:
        print(f"agreement: expected two run directories, found {len(arguments)}", file=sys.stderr)
        return _WRONG_USE
    try:
        runs = [_read(Path(path)) for path in arguments]
    except (OSError, ValueError) as error:
        print(f"agreement: expected analysed run directories, found: {error}", file=sys.stderr)
        return _WRONG_USE
    for name, *values in table(runs):
        print(f"{name:36}" + "".join(f"{value:>12}" for value in values))
    for run in runs:
        for reason in run["reasons"]:
            print(f"{run['figures']['links']['kind']}: {reason}")
    found = list(differences(*(run["metrics"] for run in runs)))
    for line in found:
        print(f"differs: {line}")
    if found:
        return _DIFFERS
    print(f"the same counts, and RDP within {100 * _TOLERANCE:.0f} %")
    return 0 if all(run["verdict"] == "valid" for run in runs) else _NOT_VALID


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
