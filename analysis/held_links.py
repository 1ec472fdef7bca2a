"""The links that each agent holds, record by record.

A link may have several roles, as the entries of a routing table and of a leaf set that name the
same peer. It is held until all of them are gone.
"""

from collections.abc import Mapping
from ipaddress import IPv4Address
from typing import Any

from analysis.agent_records import AgentRecord

KINDS = ("agent_started", "neighbour_added", "neighbour_removed")

Roles = dict[str, bool]  # roles, each with whether the link is a distant one


class HeldLinks:
    """The links of all agents after some of their records: the peers of each host, with roles.

    An agent that starts holds no links. Peers keep the order in which they were added.
    """

    def __init__(self, host_at: Mapping[int, str]) -> None:
        self._host_at = host_at
        self.of: dict[str, dict[str, Roles]] = {}

    def take(self, record: AgentRecord) -> None:
        """Apply one record; records of other kinds have no effect."""
        host, values = record.host, record.values
        match record.what:
            case "agent_started":
                self.of[host] = {}
            case "neighbour_added":
                roles = self.of.setdefault(host, {}).setdefault(self._peer(values), {})
                roles[values.get("role", "")] = bool(values.get("is_distant", False))
            case "neighbour_removed":
                self._remove(self.of.setdefault(host, {}), self._peer(values), values.get("role"))

    def _remove(self, held: dict[str, Roles], peer: str, role: str | None) -> None:
        """Remove one role of a link, or all if none is named."""
        roles = held.get(peer, {})
        if role is not None:
            roles.pop(role, None)
        if role is None or not roles:
            held.pop(peer, None)

    def _peer(self, values: Mapping[str, Any]) -> str:
        return self._host_at.get(values["peer"]) or str(IPv4Address(values["peer"]))
