"""Settings of BeaConvey's overlay."""

from typing import Annotated, Literal

from msgspec import Meta

from agents.overlays.ring.circle import Rounding
from agents.overlays.ring.settings import RingUpkeep


class BeaConveyOverlaySettings(RingUpkeep, frozen=True, kw_only=True):
    """The settings of `BeaConveyOverlay`."""

    overlay: Annotated[
        Literal["sl", "s", "l", "none"],
        Meta(
            description="parts chosen by interests: ring (s), long fingers (l), both (sl) or none"
        ),
    ] = "sl"
    fingers: Annotated[
        Literal["random", "chord"],
        Meta(
            description="long fingers not chosen by interests: random or first peer of each phase"
        ),
    ] = "random"
    phases: Annotated[Rounding, Meta(description="rounding of log2 n to the number of phases")] = (
        "floor"
    )
    collect_s: Annotated[
        float,
        Meta(gt=0, description="time without news of peers and interests before a plan is made"),
    ] = 4.0
    replan_s: Annotated[
        float,
        Meta(ge=0, description="shortest time between two plans; 0: only the first one is made"),
    ] = 60.0
    prepare_s: Annotated[
        float, Meta(gt=0, description="longest time a peer takes to prepare for a new epoch")
    ] = 30.0
    compute_s: Annotated[
        float, Meta(ge=0, description="time that a plan takes to compute, in simulation")
    ] = 1.0
