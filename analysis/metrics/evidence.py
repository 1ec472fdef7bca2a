"""The data that metrics are computed from: the records of a run, its network, and its packets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

import pandas as pd

from analysis.agent_tables import AgentTables, read_agent_tables
from analysis.metrics.measured_overlay import MeasuredOverlay
from analysis.overlay_file import compose_overlay
from analysis.run_directory import RecordedRun, is_failure
from analysis.tables.events import (
    EventTables,
    build_event_tables,
    recorded_messages,
    to_others,
)
from analysis.tables.host_paths import HostPaths
from topologies.errors import TestbedError
from topologies.overlays.overlay import Overlay

NO_EVENTS = "no event was published"
NO_DELIVERIES = "no event was delivered to another host than its publisher"
ALL_WARM_UP = "every event was published before the measured window"
NO_TOPICS = "the workload has no topics"
NOT_ANALYSED = "packets were not analysed; tdo analyze does that"


class Input(Enum):
    """Data that a metric may need and that a run may lack."""

    RECORDS = "agents' records"
    OVERLAY = "a recorded overlay of at least 2 peers"
    COUNTS = "an agent that counted what it sent"
    EVENTS = "a published event"
    DELIVERIES = "an event delivered to another host than its publisher"
    PACKETS = "analysed packets"
    FIXED_NETWORK = "a network that no fault changed"
    FAULTS = "a fault"
    TABLES = "tables of agents in the form of `tdo overlay`"
    TOPICS = "a published event of a topic"


@dataclass(frozen=True)
class PacketSummary:
    """A summary of the packets of a run.

    `delays` are deliveries by their packets (`packets_us`, `unicast_us`), None where the network
    changed. `event_messages` are those that carried events of topics (as in
    `Evidence.event_messages`), None where events have no topics. `roles` count what was sent of
    each kind of message. `checks` are rows with `expected` and `found`, by the name of the check.
    """

    stress: Mapping[str, Any] = field(default_factory=dict)
    stress_distribution: Mapping[int, int] = field(default_factory=dict)
    messages: tuple[Mapping[str, Any], ...] = ()
    roles: tuple[Mapping[str, Any], ...] = ()
    packets: Mapping[str, Any] = field(default_factory=dict)
    capture_errors: int = 0
    delays: pd.DataFrame | None = None
    event_messages: pd.DataFrame | None = None
    checks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class Evidence:
    """A run with data derived from it; everything is computed once."""

    def __init__(
        self,
        run: RecordedRun,
        packets: PacketSummary | None = None,
        why_no_packets: str = NOT_ANALYSED,
        tables: EventTables | None = None,
    ) -> None:
        self.run, self.packets, self._why_no_packets = run, packets, why_no_packets
        self.kept: dict[str, Any] = {}  # intermediate results that several metrics use
        if tables is not None:
            self.__dict__["tables"] = tables

    @cached_property
    def host_paths(self) -> HostPaths:
        """Delays between all hosts."""
        return HostPaths(self.run.unicast, self.run.overlay, self.run.overlay_history)

    @cached_property
    def tables(self) -> EventTables:
        """The tables about events."""
        return build_event_tables(self.run, self.host_paths)

    @cached_property
    def overlay(self) -> MeasuredOverlay:
        """The overlay at the end of the run, with paths over it."""
        return MeasuredOverlay(self.run.peer_unicast, self.run.overlay)

    @cached_property
    def measured(self) -> EventTables:
        """The tables about the events of the measured window; without one, of the whole run."""
        start_us = self.run.window_start_us
        if start_us is None:
            return self.tables
        events = self.tables.published
        return self.tables.of_events(events["event_id"][events["published_us"] >= start_us])

    @cached_property
    def to_others(self) -> pd.DataFrame:
        """The first delivery of each measured event to each host other than the publisher."""
        return to_others(self.measured.deliveries)

    @cached_property
    def event_messages(self) -> pd.DataFrame:
        """Messages that carried measured events from agent to agent, retransmissions not counted.

        By packets if they were analysed, else by the copies that agents recorded: `event_id`,
        `sender`, `receiver`, `sent` and `arrived`.
        """
        found = self.packets.event_messages if self.packets is not None else None
        messages = recorded_messages(self.tables) if found is None else found
        return messages[messages["event_id"].isin(self.measured.published["event_id"])]

    @cached_property
    def agent_tables(self) -> AgentTables:
        """The tables of all agents when all were ready."""
        return read_agent_tables(self.run)

    @cached_property
    def table_overlay(self) -> Overlay:
        """The same as an overlay in the form of `tdo overlay`."""
        return compose_overlay(self.run, self.agent_tables)

    @cached_property
    def missing(self) -> dict[Input, str]:
        """The missing inputs with reasons."""
        found: dict[Input, str] = {}
        if reason := self._why_no_records():
            needed = set(Input) - {Input.PACKETS, Input.FIXED_NETWORK, Input.FAULTS}
            found |= dict.fromkeys(needed, reason)
        else:
            found |= self._missing_in_records()
        if self.packets is None:
            found[Input.PACKETS] = self._why_no_packets
        if self.run.has_changing_network:
            found[Input.FIXED_NETWORK] = (
                "faults changed the network: when packets arrived is not known"
            )
        if not any(map(is_failure, self.run.faults)):
            found[Input.FAULTS] = "nothing failed in this run"
        return found

    def why_missing(self, needed: Input) -> str | None:
        """Why an input is missing; None if it is there."""
        return self.missing.get(needed)

    def _why_no_records(self) -> str | None:
        try:
            _ = self.run.overlay, self.tables
        except TestbedError as error:
            return str(error)
        return None

    def _missing_in_records(self) -> dict[Input, str]:
        found = {}
        if reason := self.overlay.why_missing():
            found[Input.OVERLAY] = reason
        if reason := self._why_no_tables():
            found[Input.TABLES] = reason
        if not self.run.is_topic_based:
            found[Input.TOPICS] = NO_TOPICS
        elif self.measured.published.empty:
            found[Input.TOPICS] = NO_EVENTS if self.tables.published.empty else ALL_WARM_UP
        if not self.run.lives.reports:
            found[Input.COUNTS] = "no agent ran to the end and counted what it sent"
        if self.tables.published.empty:
            found |= {Input.EVENTS: NO_EVENTS, Input.DELIVERIES: NO_EVENTS}
        elif self.measured.published.empty:
            found[Input.DELIVERIES] = ALL_WARM_UP
        elif self.to_others.empty:
            found[Input.DELIVERIES] = NO_DELIVERIES
        return found

    def _why_no_tables(self) -> str | None:
        if not self.run.overlay.is_recorded:
            return "no agent recorded neighbours or routes"
        try:
            _ = self.table_overlay
        except TestbedError as error:
            return str(error)
        return None
