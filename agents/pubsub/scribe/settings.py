"""What an experiment may set of Scribe and iScribe."""

from typing import Annotated, Literal

from msgspec import Meta, Struct


class RendezvousSettings(Struct, frozen=True, kw_only=True):
    """How events get to the rendezvous point of their topic, and how long they are kept."""

    root: Annotated[
        Literal["routed", "cached"],
        Meta(description="events are routed to the rendezvous point, or sent to it directly"),
    ] = "routed"
    keep_s: Annotated[
        float, Meta(ge=1, description="how long peers keep events for others that lack them")
    ] = 60.0
    quiet_s: Annotated[
        float, Meta(ge=0, description="a peer is ready when its tables did not change for so long")
    ] = 3.0


class InverseScribeSettings(RendezvousSettings, frozen=True, kw_only=True):
    """What can be set of iScribe."""

    refresh_s: Annotated[
        float, Meta(gt=0, description="how often a subscriber tells the rendezvous point")
    ] = 10.0
