"""The publications of a run disseminated again over its own overlay, without messages.

`tdo overlay route` does the same with `analysis/overlay.json` and `analysis/publications.txt`.
Without churn and faults, agents have to send exactly the messages of that walk.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from analysis.agent_tables import last_change_us
from analysis.metrics.evidence import Evidence, Input
from analysis.metrics.metric import Group, Metric, Part
from analysis.overlay_file import choose_publications
from analysis.run_directory import is_failure
from analysis.tables.events import copies, to_others
from topologies.errors import TestbedError
from topologies.overlays.dissemination import Counts, OfflinePubsub
from topologies.overlays.kinds import PUBSUBS, find_pubsub

_COMPARED = ("messages", "pure_forwarding", "deliveries", "hops", "longest")


@dataclass(frozen=True)
class Walk:
    """The counts of the walk and those of the run; without counts, the reason."""

    counts: Counts | None = None
    of_run: Mapping[str, int] | None = None
    why_none: str = ""

    def compared(self) -> dict[str, int]:
        """The check of both: messages, and how many counts differ."""
        assert self.counts is not None and self.of_run is not None
        return {
            "expected": self.counts.messages,
            "found": self.of_run["messages"],
            "differing": sum(getattr(self.counts, n) != self.of_run[n] for n in _COMPARED),
        }


def walked_offline(evidence: Evidence) -> Walk:
    """The walk over the overlay of a run, beside what the run had."""
    if "offline walk" not in evidence.kept:
        evidence.kept["offline walk"] = _walk(evidence)
    found: Walk = evidence.kept["offline walk"]
    return found


def _walk(evidence: Evidence) -> Walk:
    if reason := _why_none(evidence):
        return Walk(why_none=reason)
    pubsub = find_pubsub(evidence.run.experiment["pubsub"]["kind"])
    publications = choose_publications(
        evidence.run, evidence.agent_tables, evidence.measured.published
    )
    rows = publications[["node", "topic"]].to_numpy(dtype=np.int64)
    try:
        counts = pubsub.disseminate(evidence.table_overlay, rows, _settings(evidence, pubsub))
    except TestbedError as error:
        return Walk(why_none=str(error))
    return Walk(counts, _counts_of_run(evidence, publications["event_id"]))


def _why_none(evidence: Evidence) -> str | None:
    """Why a run cannot be compared with a walk; None if it can."""
    run = evidence.run
    for needed in (Input.TOPICS, Input.TABLES):
        if reason := evidence.why_missing(needed):
            return reason
    kind = (run.experiment.get("pubsub") or {}).get("kind")
    if kind not in PUBSUBS:
        return f"{kind} cannot be computed offline"
    at_us = evidence.agent_tables.at_us
    if not evidence.agent_tables.is_ready:
        return "agents were not ready at one time, or did not record it"
    if run.lives.ends or any(map(is_failure, run.faults)):
        return "agents ended or faults happened"
    if (last_change_us(run.records) or 0) > at_us:
        return "agents changed their tables after all were ready"
    if _has_later(evidence, "subscribed") or _has_later(evidence, "unsubscribed"):
        return "subscriptions changed after all agents were ready"
    return None


def _has_later(evidence: Evidence, kind: str) -> bool:
    times_us = evidence.run.records.frame(kind, {})["time_us"]
    return bool((times_us > evidence.agent_tables.at_us).any())


def _settings(evidence: Evidence, pubsub: type[OfflinePubsub]) -> msgspec.Struct:
    """The settings that the walk has in common with the agents."""
    section = evidence.run.experiment["pubsub"]
    known = {field.name for field in msgspec.structs.fields(pubsub.Settings)}
    return pubsub.Settings(**{name: value for name, value in section.items() if name in known})


def _counts_of_run(evidence: Evidence, events: pd.Series) -> dict[str, int]:
    """What the run had of these events, in the words of `Counts`."""
    tables = evidence.measured.of_events(events)
    messages = evidence.event_messages
    got = to_others(tables.deliveries)
    hops = got["hops"].dropna()
    return {
        "messages": int(messages["sent"][messages["event_id"].isin(events)].sum()),
        "pure_forwarding": int((~copies(tables)["is_match"].astype(bool)).sum()),
        "deliveries": len(got),
        "hops": int(hops.sum()),
        "longest": int(hops.max()) if len(hops) else 0,
    }


def _measure(evidence: Evidence) -> dict[str, Any] | None:
    counts = walked_offline(evidence).counts
    return None if counts is None else counts.to_dict()


METRICS = (
    Metric(
        "offline_walk",
        "",
        "Offline walk",
        "Counts of `tdo overlay route` over `analysis/overlay.json` with the publications of "
        "`analysis/publications.txt`, which are those of the measured window, without the last "
        "2 s of the run. The check `offline_walk_agrees` compares them with the run.",
        Group.TOPICS,
        (Input.TOPICS, Input.TABLES),
        _measure,
        why_null=lambda evidence: walked_offline(evidence).why_none,
        summary=(Part("messages", "Offline walk, messages", "messages"),),
        parts=(
            Part("publications", "Offline walk, publications", "events"),
            Part("pure_forwarding", "Offline walk, routing overhead", "receptions"),
            Part("deliveries", "Offline walk, deliveries", "deliveries"),
            Part("duplicates", "Offline walk, duplicates", "deliveries"),
            Part("missed", "Offline walk, missed deliveries", "deliveries"),
            Part("path_length.mean", "Offline walk, path length, mean", "overlay links"),
            Part("path_length.max", "Offline walk, path length, maximum", "overlay links"),
        ),
    ),
)
