"""The verdict on a run, from named reasons of the run itself and of its analysis.

`verdict.json` has the verdict, the texts of its reasons (`reasons`, and of them those of the
analysis, `reasons_by_analysis`), the reasons with names and severities (`named_reasons`), and the
measurements behind them.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from analysis.json_files import read_object
from testbed.run.directory import write_json
from testbed.run.reasons import Reason, Severity, metric_reasons
from topologies.errors import TopologyError
from topologies.underlay_file import load_underlay

_VALID = "valid"
_BY_ANALYSIS = "reasons_by_analysis"
_FORMER = "unnamed"  # of runs whose reasons had no names yet
_RUN, _ANALYSIS = "run", "analysis"


class Verdict(NamedTuple):
    """`valid`, `degraded` or `invalid`, with reasons."""

    verdict: str
    reasons: tuple[str, ...]


def verdict_document(
    of_run: Iterable[Reason],
    figures: Mapping[str, Any],
    of_analysis: Iterable[Reason] | None = None,
) -> dict[str, Any]:
    """The content of `verdict.json`; `of_analysis` is None before a run is analysed."""
    own, added = list(of_run), list(of_analysis or ())
    severities = {reason.severity for reason in (*own, *added)}
    worst = (
        severity for severity in (Severity.INVALID, Severity.DEGRADED) if severity in severities
    )
    named = [*((reason, _RUN) for reason in own), *((reason, _ANALYSIS) for reason in added)]
    document = {
        "verdict": str(next(worst, _VALID)),
        "reasons": [reason.text for reason in (*own, *added)],
        "named_reasons": [{**reason._asdict(), "by": by} for reason, by in named],
        "figures": dict(figures),
    }
    return document if of_analysis is None else document | {_BY_ANALYSIS: [r.text for r in added]}


def judge_metrics(run: Path, metrics: Mapping[str, Any]) -> Verdict | None:
    """Add the reasons in metrics to `verdict.json`.

    None if the run has no verdict, unless files that it should have cannot be read.

    The reasons of the run itself stay, those of an earlier analysis are replaced. The file is
    written in one step, because sweeps also read it after a failed analysis.
    """
    document = read_object(run / "verdict.json")
    if "verdict" not in document and not metrics.get("unreadable"):
        return None
    figures = document.get("figures", {})
    added = metric_reasons(metrics, _is_simulated(run) or _loses_packets(run))
    judged = verdict_document(_reasons_of_run(document), figures, added)
    draft = run / ".verdict.json.new"
    write_json(draft, document | judged)
    draft.replace(run / "verdict.json")
    return Verdict(judged["verdict"], tuple(judged["reasons"]))


def is_judged(run: Path) -> bool:
    """Whether the verdict of a run considers its metrics."""
    return _BY_ANALYSIS in read_object(run / "verdict.json")


def _is_simulated(run: Path) -> bool:
    """Whether no machine was late in a run: only agents themselves hold messages back."""
    experiment = read_object(run / "run.json").get("experiment")
    return isinstance(experiment, dict) and experiment.get("backend") == "simulation"


def _loses_packets(run: Path) -> bool:
    """Whether a link of the underlay loses packets, so that repeated messages take longer."""
    try:
        links = load_underlay(run / "underlay.json").links
    except TopologyError:  # the analysis reports the file
        return False
    return any(link.ab.loss_percent or link.ba.loss_percent for link in links)


def _reasons_of_run(document: Mapping[str, Any]) -> list[Reason]:
    """The reasons of the run itself; in format 1, those that are not of the analysis."""
    named = document.get("named_reasons")
    if named is None:
        later = document.get(_BY_ANALYSIS, [])
        texts = [text for text in document.get("reasons", []) if text not in later]
        return [Reason(_FORMER, Severity.DEGRADED, text) for text in texts]
    return [
        Reason(one["name"], Severity(one["severity"]), one["text"])
        for one in named
        if one["by"] == _RUN
    ]
