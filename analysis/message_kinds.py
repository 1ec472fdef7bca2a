"""The kinds of messages of a run: number, name, layer and role, as `run.json` lists them.

Runs of format 1 name their messages by number only; `_FORMAT_1` has the layers and roles of all
messages that there were then.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class MessageKind(NamedTuple):
    """A kind of message; `layer` and `role` are empty if they are not known."""

    number: int
    name: str
    layer: str = ""
    role: str = ""


_FORMAT_1 = (
    *(MessageKind(n, name, "agent", "upkeep") for n, name in enumerate(
        ("Acknowledgement", "Ping", "Pong"), start=1)),
    *(MessageKind(n, name, "overlay", "control") for n, name in (
        (10, "Hello"), (11, "Welcome"), (20, "Push"), (21, "Pull"), (42, "Walk"), (47, "Befriend"),
        (48, "Befriended"), (60, "Exchange"), (61, "ExchangeAnswer"))),
    *(MessageKind(n, name, "overlay", "join") for n, name in (
        (40, "Join"), (41, "Connect"), (43, "Accept"), (44, "NewParent"), (45, "Disconnect"),
        (62, "Join"), (63, "Connect"), (64, "Accept"), (65, "NewParent"), (66, "Disconnect"))),
    MessageKind(46, "Heartbeat", "overlay", "upkeep"),
    MessageKind(67, "Heartbeat", "overlay", "upkeep"),
    MessageKind(80, "TreeHello", "routing", "upkeep"),
    *(MessageKind(n, name, "routing", "control") for n, name in enumerate(
        ("SelectionCall", "Interest", "Ballot", "LinkReport", "CoreList", "ParentList", "CoreSpt",
         "JoinCore", "LeaveCore", "CoreRequest", "RecalculationRequest", "Farewell"), start=81)),
    MessageKind(93, "LinkHello", "routing", "upkeep"),
    MessageKind(94, "LinkState", "routing", "control"),
    MessageKind(95, "LinkSummary", "routing", "control"),
    MessageKind(120, "SubscriptionUpdate", "pubsub", "control"),
    MessageKind(121, "StateWanted", "pubsub", "control"),
    MessageKind(122, "Event", "pubsub", "event"),
    MessageKind(123, "Offer", "pubsub", "control"),
    MessageKind(124, "Wanted", "pubsub", "control"),
)  # fmt: skip


def read_message_kinds(run: Mapping[str, Any]) -> tuple[MessageKind, ...]:
    """The kinds of messages that a `run.json` names; without it, those of format 1."""
    listed = run.get("messages")
    if isinstance(listed, list):
        return tuple(
            MessageKind(int(one["number"]), one["name"], one["layer"], one["role"])
            for one in listed
        )
    named = run.get("message_kinds")
    return tuple(_from_format_1(named)) if named else _FORMAT_1


def _from_format_1(names: Mapping[str, str]) -> Iterator[MessageKind]:
    known = {kind.name: kind for kind in _FORMAT_1}
    for number, name in names.items():
        yield known.get(name, MessageKind(0, name))._replace(number=int(number))
