"""Checks that packets and records of agents agree.

A check compares what was `expected` with what was `found`. It holds if nothing differs
(`differing`) or, if that is not counted, if the two are equal. Without data it is not applicable.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis.metrics.evidence import Evidence, Input
from analysis.metrics.offline_walk import walked_offline

TIMES = ("records_us", "packets_us", "difference_us")
HOLDS, FAILS, NOT_APPLICABLE = "holds", "fails", "not applicable"


@dataclass(frozen=True)
class Check:
    """A check of `metrics.json` in words."""

    name: str
    label: str
    explanation: str


CHECKS = (
    Check(
        "deliveries_have_packets",
        "Deliveries have packets",
        "Every reception of an event has packets on every link of the route, none of them known to "
        "be lost there.",
    ),
    Check(
        "arrivals_received",
        "Arrivals were received",
        "Every event that arrived at a host by packets was recorded as received by its agent, at "
        "hosts whose agents ran during the whole run. Therefore false positives are the same by "
        "packets and by records.",
    ),
    Check(
        "copies_received",
        "Copies were received",
        "Every message with an event of a topic that arrived by packets is one copy that the agent "
        "recorded, and vice versa, at hosts whose agents ran during the whole run. Therefore "
        "routing overhead is the same by packets and by records.",
    ),
    Check(
        "packets_belong_to_messages",
        "Packets belong to messages",
        "Every packet of a message was sent by a host's agent and starts at its last mile.",
    ),
    Check(
        "sent_by_kind",
        "Messages sent by kind",
        "Distinct messages in packets are as many as the agents counted, for agents that started "
        "once and ran to the end.",
    ),
    Check(
        "copies_sent",
        "Transmissions",
        "Transmissions in packets are as many as the agents counted, repetitions included.",
    ),
    Check(
        "routes_whole",
        "Whole routes",
        "Every message that arrived crossed as many links as its route has.",
    ),
    Check(
        "delays_agree",
        "Delays agree",
        "At least half of the deliveries took the same time by records and by packets, within 1 % "
        "and the time that agents take, and none was recorded before its packet was on the last "
        "mile. Found is the number that agree; times are in microseconds.",
    ),
    Check(
        "matches_agree",
        "Matches agree",
        "Agents and the workload agree on which receptions match a subscription, where agents "
        "record that.",
    ),
    Check(
        "offline_walk_agrees",
        "Offline walk agrees",
        "The run sent as many messages with events, retransmissions apart, as tdo overlay route "
        "does over overlay.json; receptions without a subscription, deliveries and path lengths "
        "are the same as well. Differing are those of these counts that are not.",
    ),
)


def label_of(name: str) -> str:
    """The label of a check; that of an unknown one is its name."""
    return next((check.label for check in CHECKS if check.name == name), name)


def run_checks(evidence: Evidence) -> dict[str, dict[str, Any]]:
    """All checks that this evidence allows, by name."""
    rows = dict(evidence.packets.checks) if evidence.packets else {}
    if not evidence.why_missing(Input.RECORDS):
        rows["matches_agree"] = agreed_matches(evidence)
        if (walk := walked_offline(evidence)).counts is not None:
            rows["offline_walk_agrees"] = walk.compared()
    return {name: judge_check(row) for name, row in sorted(rows.items())}


def agreed_matches(evidence: Evidence) -> dict[str, int]:
    """Whether agents and the workload agree on matches, at hosts whose agents ran during the whole
    run; nothing is compared if the workload is unknown, as with a damaged `run.json`.
    """
    came: pd.DataFrame = evidence.tables.receptions
    if evidence.run.workload.interests.empty:
        came = came.head(0)
    is_steady = ~came["host"].isin(evidence.run.lives.ended) & came["publisher"].notna()
    steady = came[is_steady & came["is_match_recorded"].notna()]
    agree = steady["is_match_recorded"].astype(bool) == steady["is_match"]
    return {"expected": len(steady), "found": int(agree.sum())}


def judge_check(row: Mapping[str, Any]) -> dict[str, Any]:
    """A check as in metrics.json; `ok` is None if there was nothing to compare."""
    expected, found = row.get("expected") or 0, row.get("found") or 0
    differing = row.get("differing") or 0
    # Fewer may be found if an agent counted messages that its machine then refused to send.
    is_ok = differing == 0 if "differing" in row else expected == found
    is_applicable = bool(expected or found or differing)
    return (
        {"ok": is_ok if is_applicable else None, "expected": expected, "found": found}
        | ({"differing": differing} if differing else {})
        | {name: row[name] for name in TIMES if name in row and expected}
    )


def state(check: Mapping[str, Any]) -> str:
    """The state of a check in a word or two."""
    return {True: HOLDS, False: FAILS}.get(check["ok"], NOT_APPLICABLE)


def failing(checks: Mapping[str, Mapping[str, Any]]) -> str:
    """The checks that do not hold, in words; empty if all hold."""
    parts = []
    for name, check in sorted(checks.items()):
        if check["ok"] is False:
            more = f", {check['differing']} differ" if check.get("differing") else ""
            parts.append(f"{name}: expected {check['expected']}, found {check['found']}{more}")
    return "; ".join(parts)
