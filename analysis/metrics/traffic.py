"""Messages, packets, and the load of events on links."""

from collections import Counter
from typing import Any

from analysis.metrics.evidence import Evidence, Input, PacketSummary
from analysis.metrics.metric import Group, Headline, Metric, Part
from analysis.metrics.statistics import ratio

_NO_COPIES = "no packet carried an event"


def _packets(evidence: Evidence) -> PacketSummary:
    assert evidence.packets is not None, "a metric of packets names them as an input"
    return evidence.packets


def link_stress(evidence: Evidence) -> dict[str, Any] | None:
    """Copies of one event on one physical link in one direction, over links that it crossed.

    Repeated transmissions count as well, because they load the link. `total` is the load of events
    on the network: one for each link that each copy crossed.
    """
    found = _packets(evidence)
    if not found.stress.get("count"):
        return None
    times = {str(copies): n for copies, n in sorted(found.stress_distribution.items())}
    return {**found.stress, "distribution": times}


def messages(evidence: Evidence) -> dict[str, Any]:
    """Datagrams between agents: how many, how often sent, how many arrived."""
    kinds = _packets(evidence).messages
    totals: dict[str, Any] = {
        name: sum(row[name] for row in kinds) for name in ("sent", "copies", "arrived")
    }
    return totals | {"by_kind": {row["kind"]: row["sent"] for row in kinds}}


def packets(evidence: Evidence) -> dict[str, Any]:
    """Packets on all links, one for each link that each crossed."""
    found = _packets(evidence)
    return {**found.packets, "capture_errors": found.capture_errors}


def counted_by_agents(evidence: Evidence) -> Counter[str]:
    """The sum of the counts of agents that ran to the end."""
    totals: Counter[str] = Counter()
    for report in evidence.run.lives.reports.values():
        totals.update({name: n for name, n in report.values.items() if isinstance(n, int)})
    return totals


def matching_receptions(evidence: Evidence) -> int:
    """The matching events that peers received."""
    return int(evidence.tables.receptions["is_match"].sum())


def control_efficiency(evidence: Evidence) -> float | None:
    """Every message sent, divided by the matching events that peers received.

    Repetitions and acknowledgements count. 1 is ideal: every event is sent directly to its
    subscribers, and nothing else is sent.
    """
    if evidence.packets is not None:
        sent = sum(row["copies"] for row in evidence.packets.messages)
    else:
        totals = counted_by_agents(evidence)
        sent = totals["sent"] + totals["resent"] - totals["unsent"]
    return ratio(sent, matching_receptions(evidence))


def control_efficiency_of_routing(evidence: Evidence) -> float | None:
    """Messages of trees, subscriptions and events, divided by the matching events that peers
    received.

    Each message counts once, and periodic ones (role upkeep) do not.
    """
    totals = counted_by_agents(evidence)
    names = {
        kind.name
        for kind in evidence.run.messages
        if kind.layer in ("routing", "pubsub") and kind.role != "upkeep"
    }
    return ratio(sum(totals[f"sent_{name}"] for name in names), matching_receptions(evidence))


def join_messages(evidence: Evidence) -> int | None:
    """Messages that build and remove overlay links, as agents counted them."""
    sent = evidence.run.overlay.sent_by_kind
    if not sent:
        return None
    names = {kind.name for kind in evidence.run.messages if kind.role == "join"}
    return sum(sent.get(name, 0) for name in names)


def messages_by_role(evidence: Evidence) -> dict[str, dict[str, int]] | None:
    """What agents sent by the role of messages; without packets, as they counted it themselves."""
    roles = {kind.number: kind.role or "unknown" for kind in evidence.run.messages}
    if evidence.packets is None:
        return _counted_by_role(evidence)
    totals: dict[str, Counter[str]] = {}
    for row in evidence.packets.roles:
        total = totals.setdefault(roles.get(row["kind"], "unknown"), Counter())
        total.update({name: row[name] for name in ("sent", "copies", "bytes")})
    return {role: dict(total) for role, total in sorted(totals.items())} or None


def _counted_by_role(evidence: Evidence) -> dict[str, dict[str, int]] | None:
    counted = counted_by_agents(evidence)
    names = {kind.name: kind.role or "unknown" for kind in evidence.run.messages}
    totals: dict[str, dict[str, int]] = {}
    for name, role in sorted(names.items()):
        if count := counted[f"sent_{name}"]:
            total = totals.setdefault(role, {"sent": 0})
            total["sent"] += count
    return dict(sorted(totals.items())) or None


def _counted_note(evidence: Evidence) -> str:
    return "" if evidence.packets else "counted by agents that ran to the end"


METRICS = (
    Metric(
        "link_stress",
        "copies",
        "Link stress",
        "Copies of one event on one physical link in one direction, over events, links and "
        "directions that were crossed. 1 is perfect multicast. Total is the number of copies on "
        "all links.",
        Group.EVENTS,
        (Input.PACKETS, Input.EVENTS),
        link_stress,
        why_null=_NO_COPIES,
        headline=Headline("Link stress, mean", "mean", details=(("link_stress.max", "maximum"),)),
        summary=(
            Part("total", "Link stress, total"),
            Part("mean", "Link stress, mean"),
            Part("max", "Link stress, maximum"),
        ),
    ),
    Metric(
        "control_efficiency",
        "messages per event",
        "Control efficiency",
        "Every message sent, of any kind and with repetitions, for each matching event received. "
        "Lower is better.",
        Group.EVENTS,
        (Input.DELIVERIES,),
        control_efficiency,
        why_null="no matching event was received",
        note=_counted_note,
        headline=Headline("Control efficiency", details=(("messages.sent", "sent"),)),
        summary=(Part("", "Control efficiency"),),
    ),
    Metric(
        "control_efficiency_of_routing",
        "messages per event",
        "Control efficiency of routing",
        "Control efficiency of messages of trees, subscriptions and events only, each once "
        "and without periodic ones, counted by the agents that ran to the end.",
        Group.EVENTS,
        (Input.DELIVERIES, Input.COUNTS),
        control_efficiency_of_routing,
        why_null="no matching event was received",
    ),
    Metric(
        "messages",
        "messages",
        "Messages",
        "Datagrams between agents as the packets show them: sent, transmissions with repetitions "
        "(copies), and arrived.",
        Group.TRAFFIC,
        (Input.PACKETS,),
        messages,
        summary=(Part("copies", "Messages, transmitted"),),
    ),
    Metric(
        "packets",
        "packets",
        "Packets",
        "Packets on all links, each counted on every link it entered: all, messages of agents, "
        "probes, ICMP, and unreadable ones.",
        Group.TRAFFIC,
        (Input.PACKETS,),
        packets,
        summary=(Part("total", "Packets, on all links"),),
        parts=(
            Part("ours", "Packets, of agents"),
            Part("icmp", "Packets, ICMP"),
            Part("bytes", "Packets, bytes", "bytes"),
            Part("capture_errors", "Packets, unreadable"),
        ),
    ),
    Metric(
        "messages_by_kind",
        "messages",
        "Messages by kind",
        "Messages sent, counted by the agents, by kind of message.",
        Group.TRAFFIC,
        (Input.OVERLAY, Input.COUNTS),
        lambda evidence: dict(evidence.run.overlay.sent_by_kind) or None,
        why_null="no agent ran to the end and counted what it sent",
    ),
    Metric(
        "join_messages",
        "messages",
        "Messages for joining",
        "Messages that build and remove overlay links (role join), as agents counted them.",
        Group.TRAFFIC,
        (Input.OVERLAY, Input.COUNTS),
        join_messages,
        why_null="no agent ran to the end and counted what it sent",
    ),
    Metric(
        "messages_by_role",
        "messages",
        "Messages by role",
        "Messages that agents sent by their role: join (building and removing links), upkeep "
        "(periodic), control (all others) and event (carrying events). Messages (sent), "
        "transmissions with repetitions (copies), and their bytes with IP headers, each on its "
        "first link only. Without packets, messages as agents counted them.",
        Group.TRAFFIC,
        (Input.RECORDS,),
        messages_by_role,
        why_null="no agent ran to the end and counted what it sent",
        note=_counted_note,
        parts=tuple(
            Part(f"{role}.bytes", f"Messages by role, {role}, bytes", "bytes")
            for role in ("join", "upkeep", "control", "event")
        ),
    ),
)
