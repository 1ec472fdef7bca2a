"""The schema of all records of agents: the event that is recorded, and its fields.

An optional field may be missing. The analysis reads these names: add fields, but do not rename
them.
"""

from typing import NamedTuple


class Field(NamedTuple):
    """The type of a value, whether it may be missing, and what it means."""

    type: type
    meaning: str
    is_optional: bool = False


Fields = dict[str, Field]

_PEER = Field(int, "the address of a peer")
_EVENT = Field(int, "the number of an event, counted from 1")
_VERSION = Field(int, "the version of a tree")
_COPY: Fields = {
    "event_id": _EVENT,
    "from": Field(int, "the address of the peer that sent it"),
    "hop_count": Field(int, "overlay links from the publisher to this peer"),
}
_INTEREST: Fields = {
    "interest": Field(int, "the number of the interest in the workload, counted from 0"),
    "subscription": Field(int, "the content of a content-based interest", is_optional=True),
    "topic": Field(int, "the content of a topic-based interest", is_optional=True),
}

# By layer. A field `sent_*` stands for one field for each kind of message.
RECORDS: dict[str, dict[str, Fields]] = {
    "agent": {
        "agent_started": {},
        "agent_left": {},
        "agent_ended": {
            "sent": Field(int, "messages sent"),
            "received": Field(int, "messages received"),
            "sent_*": Field(int, "messages of a kind sent", is_optional=True),
            "*": Field(int, "other counts of the agent, for example `resent`", is_optional=True),
        },
    },
    "overlay": {
        "neighbour_added": {
            "peer": _PEER,
            "delay_us": Field(int, "the measured one-way delay", is_optional=True),
            "is_distant": Field(bool, "whether the link is a distant one", is_optional=True),
            "role": Field(
                str,
                "what the link is for; one with several roles is added for each",
                is_optional=True,
            ),
        },
        "neighbour_removed": {
            "peer": _PEER,
            "reason": Field(str, "the reason"),
            "role": Field(str, "the role that the link lost; all if missing", is_optional=True),
        },
        "placed": {
            "position": Field(str, "the position on the ring, as 16 hex digits", is_optional=True),
            "modulus": Field(str, "positions of the ring, in hex; 2^64 if missing", True),
            "id": Field(str, "the identifier that routes go by, as 16 hex digits", True),
        },
        "route_inferred": {
            "peer": _PEER,
            "routers": Field(str, "addresses of routers, 0 for a silent one"),
            "is_reached": Field(bool, "whether the peer answered", is_optional=True),
            "*": Field(int, "counts of the probing", is_optional=True),
        },
        "route_known": {"peer": _PEER, "routers": Field(str, "as in `route_inferred`")},
        "delay_measured": {
            "peer": _PEER,
            "samples": Field(int, "round trips measured"),
            "min_us": Field(int, "the smallest sample", is_optional=True),
            "median_us": Field(int, "the median of the samples", is_optional=True),
        },
        "welcomed": {"by": _PEER, "number": Field(int, "peers that `by` has welcomed so far")},
        "given_up": {"peer": _PEER},
        "size_estimated": {
            "epoch": Field(int, "the round of gossip"),
            "size": Field(float, "the estimated number of peers"),
        },
        "landmark_elected": {
            "epoch": Field(int, "the round of gossip"),
            "size": Field(float, "the estimated number of peers"),
            "known": Field(int, "landmarks known before"),
        },
        "death_refuted": {"incarnation": Field(int, "the number of the new incarnation")},
        "parent_chosen": {"landmark": _PEER, "parent": Field(int, "0 if there is none")},
        "master_chosen": {"master": _PEER},
        "epoch_planned": {
            "epoch": Field(int, "the number of an epoch of a planned overlay"),
            "peers": Field(int, "the peers in the plan"),
            "computed_in_us": Field(int, "the time that the computation took"),
        },
        "epoch_begun": {"epoch": Field(int, "the epoch that events are published in from now on")},
        "peer_lost": {"peer": _PEER, "reason": Field(str, "`silent` or `left`")},
        "peer_restarted": {"peer": _PEER},
    },
    "routing": {
        "leader_elected": {"leader": _PEER},
        "cores_selected": {
            "version": _VERSION,
            "cores": Field(str, "addresses of the cores"),
            "root": Field(int, "the address of the root core"),
        },
        "relay_chosen": {
            "version": _VERSION,
            "core": _PEER,
            "weight_us": Field(int, "the weight of the path to it"),
        },
        "tree_link_added": {"version": _VERSION, "peer": _PEER},
        "tree_link_removed": {"version": _VERSION, "peer": _PEER},
        "tree_dropped": {"version": _VERSION},
    },
    "pubsub": {
        "event_received": {
            **_COPY,
            "is_match": Field(bool, "whether the peer has a matching interest", is_optional=True),
            "published_us": Field(int, "the time of its publication", is_optional=True),
        },
        "event_repeated": _COPY,
        "event_done": {"event_id": _EVENT},
        "table_counted": {
            "entries": Field(int, "pairs of a topic and a peer in the table"),
            "peers": Field(int, "different peers among them"),
        },
    },
    "application": {
        "subscribed": _INTEREST,
        "unsubscribed": _INTEREST,
        "event_published": {
            "event_id": _EVENT,
            "version": _VERSION._replace(is_optional=True),
            "point": Field(int, "the content of a content-based event", is_optional=True),
            "topic": Field(int, "the content of a topic-based event", is_optional=True),
        },
        "event_not_offered": {"event_id": _EVENT},
        "delivered": {**_COPY, "from": _COPY["from"]._replace(is_optional=True)},
        "ready": {},
    },
}
