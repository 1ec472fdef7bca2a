"""The settings of the routing with cores, and of its baseline, the spanning tree."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

MST = "mst"  # the strategy of the baseline, which files cannot name
Strategy = Literal["cneigh", "spotent", "rand", "sim", "maxpath", "spath"]
CorePaths = Literal["tree", "apsp"]
SimScore = Literal["mean", "sum"]
Repair = Literal["optimal", "local"]


class TreeSettings(Struct, frozen=True, kw_only=True):
    """Settings of both: hellos, and times at which a tree is selected, used and dropped."""

    cores: Annotated[int, Meta(ge=1, le=200, description="number of core peers")] = 5
    period_us: Annotated[int, Meta(ge=10_000, le=10**9, description="time between two hellos")] = (
        2_000_000
    )
    missed_hellos: Annotated[
        int,
        Meta(
            ge=2, le=1_000, description="missed hellos after which a neighbour is considered dead"
        ),
    ] = 5
    first_selection_s: Annotated[
        float, Meta(ge=0, description="earliest time of the first selection")
    ] = 20.0
    recalculate_s: Annotated[
        float, Meta(ge=0, description="time between two selections; 0: only on request")
    ] = 0.0
    settle_s: Annotated[float, Meta(ge=0, description="time to build a tree before it is used")] = (
        10.0
    )
    grace_s: Annotated[
        float, Meta(ge=0, description="time for which a tree is kept after the next is used")
    ] = 10.0
    repair: Annotated[
        Repair,
        Meta(
            description="optimal: every peer always uses the path of the least weight; local: "
            "once a tree is built, a peer changes its parent only if it loses it"
        ),
    ] = "optimal"


class CoreSettings(TreeSettings, frozen=True, kw_only=True):
    """The settings of `CoreRouting`."""

    strategy: Annotated[Strategy, Meta(description="how cores are selected")] = "spotent"
    sim_score: Annotated[
        SimScore, Meta(description="the vote of `sim`: mean or sum of similarities to neighbours")
    ] = "mean"
    core_paths: Annotated[
        CorePaths,
        Meta(description="cores join over the root core's tree, or by all shortest paths"),
    ] = "tree"
    # More costs delay and hardly saves false positives: docs/results-discovery.md.
    alpha_us: Annotated[
        int, Meta(ge=0, description="weight of a link between peers with nothing in common")
    ] = 1_000
    psi: Annotated[
        int,
        Meta(
            ge=1,
            le=10_000,
            description="number of most recent events by which interests are compared",
        ),
    ] = 1_000


class SpanningTreeSettings(TreeSettings, frozen=True, kw_only=True):
    """The settings of `SpanningTreeRouting`, which does not use interests."""

    @property
    def strategy(self) -> str:
        """The leader computes the minimum spanning tree."""
        return MST

    @property
    def sim_score(self) -> SimScore:
        """There are no votes."""
        return "mean"

    @property
    def core_paths(self) -> CorePaths:
        """The root is the first of the cores."""
        return "tree"

    @property
    def alpha_us(self) -> int:
        """The weight of a link is its delay."""
        return 0

    @property
    def psi(self) -> int:
        """Events are not compared, and at least one is kept."""
        return 1


RoutingSettings = CoreSettings | SpanningTreeSettings
