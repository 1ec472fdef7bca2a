"""The settings of the discovery overlay by random walks."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from agents.overlays.random_walk.neighbourhood import degree_limit
from agents.overlays.random_walk.targets import Heuristic

WalkLinks = Literal["near", "all"]
TargetBudget = Literal["capped", "literal"]
Placement = Literal["cases", "direct"]
_FEWEST_PEERS = 2  # number of peers with which a degree limit is checked


class WalkSettings(Struct, frozen=True, kw_only=True):
    """The settings of `RandomWalk`; those sent in messages have the range of their fields."""

    heuristic: Annotated[Heuristic, Meta(description="which visited peers become targets")] = (
        "mlink"
    )
    targets: Annotated[
        int, Meta(ge=1, le=65_535, description="number of targets, k_L in the paper")
    ] = 10
    selectivity: Annotated[
        float, Meta(gt=0, le=1, description="share of neighbours to which a walk is forwarded")
    ] = 0.1
    ttl: Annotated[int, Meta(ge=1, le=65_535, description="maximum number of hops of a walk")] = 100
    degree_limit: Annotated[
        str, Meta(description="maximum number of near neighbours: lg1, lg2, sq, none or a number")
    ] = "none"
    walk_links: Annotated[
        WalkLinks, Meta(description="links that a walk follows: near ones, or distant ones too")
    ] = "near"
    target_budget: Annotated[
        TargetBudget,
        Meta(
            description="capped: a walk without targets left is not sent; literal: as algorithm 1 "
            "is written, it is sent and the receiver may still become a target"
        ),
    ] = "capped"
    mlink_tolerance: Annotated[
        float,
        Meta(
            ge=0,
            lt=1,
            description="MLink: share of a path's delay by which it must exceed the direct delay",
        ),
    ] = 0.02
    placement: Annotated[
        Placement,
        Meta(description="place peers by the three cases, or directly at each target (case 3)"),
    ] = "cases"
    distant_links: Annotated[int, Meta(ge=0, description="links to peers known at the start")] = 2
    delay_samples: Annotated[int, Meta(ge=1, description="round trips for each measured delay")] = 3
    reverse_routes: Annotated[
        bool,
        Meta(description="use the reversed route for the other direction, instead of inferring it"),
    ] = True
    heartbeat_us: Annotated[int, Meta(ge=1, description="time between two heartbeats")] = 5_000_000
    missed_heartbeats: Annotated[
        int, Meta(ge=1, description="missed heartbeats after which a neighbour is considered dead")
    ] = 8

    def __post_init__(self) -> None:
        """Refuse a degree limit that is neither a known name nor a number."""
        degree_limit(self.degree_limit, _FEWEST_PEERS)
