"""What an experiment may set of the routing with cores, and of its baseline, the spanning tree."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

MST = "mst"  # the strategy of the baseline, which no file can name
Strategy = Literal["cneigh", "spotent", "rand", "sim", "maxpath", "spath"]
CorePaths = Literal["tree", "apsp"]
SimScore = Literal["mean", "sum"]
Repair = Literal["optimal", "local"]


class TreeSettings(Struct, frozen=True, kw_only=True):
    """What both have in common: hellos, and when a tree is selected, used and dropped."""

    cores: Annotated[int, Meta(ge=1, le=200, description="core peers")] = 5
    period_us: Annotated[int, Meta(ge=10_000, le=10**9, description="time from hello to hello")] = (
        2_000_000
    )
    missed_hellos: Annotated[
        int, Meta(ge=2, le=1_000, description="hellos missed until a neighbour is given up")
    ] = 5
    first_selection_s: Annotated[
        float, Meta(ge=0, description="when the leader may begin the first selection")
    ] = 20.0
    recalculate_s: Annotated[
        float, Meta(ge=0, description="time from selection to selection; 0: only on request")
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
            description="optimal: every peer takes a lighter way whenever there is one; local: "
            "once a tree is built, a peer moves only if it loses its parent"
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
        int, Meta(ge=1, le=10_000, description="last events by which interests are compared")
    ] = 1_000


class SpanningTreeSettings(TreeSettings, frozen=True, kw_only=True):
    """The settings of `SpanningTreeRouting`, which knows no interests."""

    @property
    def strategy(self) -> str:
        """The leader finds the minimum spanning tree."""
        return MST

    @property
    def sim_score(self) -> SimScore:
        """Nobody votes."""
        return "mean"

    @property
    def core_paths(self) -> CorePaths:
        """Its root is the first of the cores."""
        return "tree"

    @property
    def alpha_us(self) -> int:
        """A link weighs as much as its delay."""
        return 0

    @property
    def psi(self) -> int:
        """No events are compared, and at least one is kept."""
        return 1


RoutingSettings = CoreSettings | SpanningTreeSettings
