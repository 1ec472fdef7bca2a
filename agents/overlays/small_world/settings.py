"""Settings of a small-world overlay."""

from typing import Annotated, Literal

from msgspec import Meta

from agents.overlays.ring.circle import Rounding
from agents.overlays.ring.settings import RingUpkeep

SmallWorldFingers = Literal["chord", "random", "greedy", "learned"]


class SmallWorldSettings(RingUpkeep, frozen=True, kw_only=True):
    """The settings of `SmallWorldOverlay`."""

    fingers: Annotated[
        SmallWorldFingers,
        Meta(
            description="finger of each phase of distance: chord, the first peer; random, any; "
            "greedy, planned from all interests (GrSwico); learned, the best of the peers known by "
            "gossip"
        ),
    ] = "greedy"
    phases: Annotated[Rounding, Meta(description="rounding of log2 n to the number of phases")] = (
        "floor"
    )
    gossip_s: Annotated[
        float,
        Meta(
            gt=0,
            description="learned: time between two exchanges; doubled while nothing "
            "new is learned, up to 16 times this value",
        ),
    ] = 1.0
    learn_s: Annotated[
        float,
        Meta(
            ge=0,
            description="learned: time after the start or a change of interests in which fingers "
            "change to better peers; later only lost fingers are replaced",
        ),
    ] = 30.0
    gossip_samples: Annotated[
        int, Meta(ge=1, le=256, description="learned: peers described in an exchange")
    ] = 32
    candidates: Annotated[
        int, Meta(ge=1, le=1024, description="learned: peers remembered in each phase")
    ] = 16
