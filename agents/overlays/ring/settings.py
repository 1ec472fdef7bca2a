"""What an experiment may set of a ring."""

from typing import Annotated, Literal

from msgspec import Meta

from agents.failure_detector import FailureDetectorSettings


class RingUpkeep(FailureDetectorSettings, frozen=True, kw_only=True):
    """How a ring is kept."""

    successors: Annotated[
        int,
        Meta(ge=1, le=64, description="length of the successor list; at least log2 of all peers"),
    ] = 16
    stabilise_s: Annotated[
        float, Meta(gt=0, description="time between two exchanges with the successor")
    ] = 1.0
    check_s: Annotated[
        float,
        Meta(gt=0, description="time between two checks of a peer's own place in a stable ring"),
    ] = 5.0


class RingSettings(RingUpkeep, frozen=True, kw_only=True):
    """The settings of `RingOverlay`."""

    fingers: Annotated[
        Literal["chord", "random"],
        Meta(
            description="finger of each phase of distance: its first peer, or one drawn at random"
        ),
    ] = "chord"
