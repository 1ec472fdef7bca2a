"""Settings of Scribe and iScribe."""

from typing import Annotated, Literal

from msgspec import Meta, Struct


class RendezvousSettings(Struct, frozen=True, kw_only=True):
    """Settings of the path to rendezvous points, and of the time for which events are kept."""

    root: Annotated[
        Literal["routed", "cached"],
        Meta(description="events are routed to the rendezvous point, or sent to it directly"),
    ] = "routed"
    keep_s: Annotated[
        float, Meta(ge=1, description="how long peers keep events for others that lack them")
    ] = 60.0
    quiet_s: Annotated[
        float,
        Meta(ge=0, description="a peer is ready when its tables have not changed for this time"),
    ] = 3.0


class InverseScribeSettings(RendezvousSettings, frozen=True, kw_only=True):
    """Settings of iScribe."""

    refresh_s: Annotated[
        float, Meta(gt=0, description="time between two refreshes of a subscription")
    ] = 10.0
