"""The settings of the landmark approach."""

from typing import Annotated

from msgspec import Meta, Struct

_MOST_TARGETS = 200  # as many trees as fit into a heartbeat, even after a draw with many landmarks


class LandmarkSettings(Struct, frozen=True, kw_only=True):
    """The settings of `LandmarkOverlay`."""

    targets: Annotated[
        int, Meta(ge=1, le=_MOST_TARGETS, description="landmarks, k_L in the paper")
    ] = 10
    gossip_period_us: Annotated[
        int, Meta(ge=1, description="time between two exchanges in the first two epochs")
    ] = 500_000
    later_gossip_period_us: Annotated[
        int, Meta(ge=1, description="time between two exchanges in later epochs")
    ] = 2_000_000
    gossip_rounds: Annotated[
        int, Meta(ge=1, description="rounds of an epoch, at whose end landmarks are elected")
    ] = 16
    warm_up_rounds: Annotated[
        int, Meta(ge=1, description="rounds of listening before the first epoch")
    ] = 4
    size_factor: Annotated[
        float, Meta(gt=0, description="factor by which the estimated number of peers is multiplied")
    ] = 1.0
    heartbeat_us: Annotated[int, Meta(ge=1, description="time between two heartbeats")] = 2_000_000
    missed_heartbeats: Annotated[
        int, Meta(ge=1, description="missed heartbeats after which a neighbour is considered dead")
    ] = 4
    join_timeout_us: Annotated[
        int, Meta(ge=1, description="time after which a peer asks again for its place in a tree")
    ] = 5_000_000
