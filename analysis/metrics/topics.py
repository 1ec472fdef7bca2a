"""Who carries events of topics: messages, relays, and forwarding beside own interests.

Messages are from packets if they were analysed, else from the copies that agents recorded;
retransmissions do not count. Forwarding, sending and receiving are those of Banno et al. (J. Inf.
Process., 2015), section 6: messages with events that a node passes to others, the publisher's first
hop included; events that it published; and messages with events that it wants which it received.
"""

from math import atanh, sqrt, tanh
from typing import Any

import numpy as np
import pandas as pd

from analysis.metrics.evidence import Evidence, Input
from analysis.metrics.metric import Group, Headline, Metric, Part
from analysis.metrics.statistics import ratio

_Z_99 = 2.5758293035489004  # 99.5th percentile of the standard normal distribution


def event_message_counts(evidence: Evidence) -> dict[str, Any]:
    """Messages that carried events: all, and for each delivery."""
    total = int(evidence.event_messages["sent"].sum())
    return {"total": total, "per_delivery": ratio(total, len(evidence.to_others))}


def relayed_topics(evidence: Evidence) -> pd.DataFrame:
    """Hosts and the topics that they forwarded without wanting them: `host`, `topic`.

    A publisher that sends its own event forwards nothing.
    """
    about = evidence.measured.published[["event_id", "publisher", "topic"]]
    sent = evidence.event_messages[["event_id", "sender"]].drop_duplicates()
    sent = sent.merge(about, on="event_id").rename(columns={"sender": "host"})
    is_relay = ~_is_wanted(evidence, sent) & (sent["host"] != sent["publisher"])
    return sent[is_relay][["host", "topic"]].drop_duplicates()


def relays(evidence: Evidence) -> dict[str, Any]:
    """How many hosts are relays of any topic, and of each topic with events."""
    found = relayed_topics(evidence)
    topics = evidence.measured.published["topic"].nunique()
    hosts = int(found["host"].nunique())
    return {
        "hosts": hosts,
        "share": hosts / len(evidence.run.underlay.hosts),
        "per_topic": ratio(len(found), topics),
    }


def host_loads(evidence: Evidence) -> pd.DataFrame:
    """What each host forwarded, published, and received of topics that it wants.

    The index has all hosts; the columns are `forwarded`, `published`, `received`, `unwanted`,
    messages that it received of other topics, and `topics`, how many it ever wanted.
    """
    messages, published = evidence.event_messages, evidence.measured.published
    came = messages.rename(columns={"receiver": "host"})
    is_wanted = _is_wanted(evidence, came)
    interests = evidence.run.workload.interests
    wanted = interests.groupby("host")["content"].nunique()
    columns = {
        "forwarded": messages.groupby("sender")["sent"].sum(),
        "published": published.groupby("publisher").size(),
        "received": came[is_wanted].groupby("host")["arrived"].sum(),
        "unwanted": came[~is_wanted].groupby("host")["arrived"].sum(),
        "topics": wanted,
    }
    hosts = [host.name for host in evidence.run.underlay.hosts]
    return pd.DataFrame(columns).reindex(hosts).fillna(0).astype("int64")


def _is_wanted(evidence: Evidence, rows: pd.DataFrame) -> pd.Series:
    """Whether the host of each row wanted its event when that was published."""
    key = ["event_id", "host"]
    wanted = pd.MultiIndex.from_frame(evidence.tables.matches[key])
    return pd.Series(pd.MultiIndex.from_frame(rows[key]).isin(wanted), index=rows.index)


def correlate(first: pd.Series, second: pd.Series) -> dict[str, Any]:
    """Pearson's correlation with its interval of 99 % by Fisher's z, and the number of values.

    It is None where one of the two does not vary, and the interval where there are fewer than 4.
    """
    count = len(first)
    found: dict[str, Any] = {"r": None, "low": None, "high": None, "hosts": count}
    if count < 2 or first.nunique() < 2 or second.nunique() < 2:
        return found
    r = float(np.corrcoef(first, second)[0, 1])
    found["r"] = r
    if count > 3 and abs(r) < 1:
        reach = _Z_99 / sqrt(count - 3)
        found |= {"low": tanh(atanh(r) - reach), "high": tanh(atanh(r) + reach)}
    return found


def forwarding_correlation(evidence: Evidence) -> dict[str, Any] | None:
    """Forwarding against sending over publishers, and against receiving over subscribers."""
    loads = host_loads(evidence)
    publishers, subscribers = loads[loads["published"] > 0], loads[loads["topics"] > 0]
    found = {
        "sending": correlate(publishers["published"], publishers["forwarded"]),
        "receiving": correlate(subscribers["received"], subscribers["forwarded"]),
    }
    return found if any(part["r"] is not None for part in found.values()) else None


_CORRELATION_PARTS = (
    ("r", "", ""),
    ("low", ", lower bound", ""),
    ("high", ", upper bound", ""),
    ("hosts", ", hosts", "hosts"),
)
METRICS = (
    Metric(
        "event_messages",
        "messages",
        "Event messages",
        "Messages that carried events from agent to agent, each once however often it was "
        "transmitted: in total, and for each delivery. By packets where there are any.",
        Group.TOPICS,
        (Input.TOPICS, Input.DELIVERIES),
        event_message_counts,
        summary=(
            Part("total", "Event messages, total"),
            Part("per_delivery", "Event messages, per delivery", "messages per delivery"),
        ),
    ),
    Metric(
        "relays",
        "hosts",
        "Relays",
        "Hosts that forwarded an event of a topic without subscribing to it: number and share of "
        "all hosts, and the mean number of relays of a topic with events (per topic). A publisher "
        "of its own events is not a relay.",
        Group.TOPICS,
        (Input.TOPICS,),
        relays,
        headline=Headline("Relays", "hosts", details=(("relays.per_topic", "per topic"),)),
        summary=(
            Part("hosts", "Relays, hosts"),
            Part("per_topic", "Relays, per topic", "hosts per topic"),
        ),
        parts=(Part("share", "Relays, share of hosts", "share"),),
    ),
    Metric(
        "forwarding_correlation",
        "",
        "Forwarding correlation",
        "Pearson correlation (r) and its 99 % interval by Fisher's z (low, high). `sending`: "
        "messages with events that a host forwarded, its own first hop included, and events that "
        "it published, over publishers. `receiving`: the same messages, and messages with events "
        "of its topics that it received, over subscribers.",
        Group.TOPICS,
        (Input.TOPICS,),
        forwarding_correlation,
        why_null="hosts do not differ in what they forward, or not in what they send and receive",
        parts=tuple(
            Part(f"{what}.{key}", f"Forwarding correlation, {what}{words}", unit)
            for what in ("sending", "receiving")
            for key, words, unit in _CORRELATION_PARTS
        ),
    ),
)
