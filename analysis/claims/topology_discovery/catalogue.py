"""The claims of Tariq, Koldehofe and Rothermel, "Efficient content-based routing with network
topology inference", DEBS 2013, and what each scale changes in the sweeps that feed them.

`paper` takes the files as they are: 1,024 peers on some 1,600 routers. `small` keeps the relation
of peers to routers (128 on some 200) and everything that is compared, and does with fewer
values and events between.
"""

from collections.abc import Mapping
from typing import Any

from analysis.claims.catalogue import Catalogue, Changes, Section
from analysis.claims.claim import Claim, Source
from analysis.claims.topology_discovery.discovery import (
    looser_limits_cost_less,
    looser_limits_see_more,
    mlink_penalty_is_low,
    more_peers_cost_less,
    more_peers_infer_less,
    nearest_targets_see_most,
)
from analysis.claims.topology_discovery.routing import (
    more_cores_control_more,
    paths_between_cores_matter,
    popular_interests_cost_less,
    recalculation_pays,
    shortest_paths_cost_least,
    underlay_awareness_saves,
)

_BESIDE_TARRAND = {"overlay.heuristic": ("dbest", "dworst", "mlink", "tarrand")}
_BESIDE_DONLY = {"overlay.heuristic": ("dbest", "dworst", "mlink", "donly")}
_MLINK_UNLIMITED = {
    "topology.kind": "waxman",
    "overlay.heuristic": "mlink",
    "overlay.degree_limit": "none",
}

_DISCOVERY: tuple[Claim, ...] = (
    Claim(
        "T1",
        "nearest targets discover more underlay links than landmarks, farthest the fewest",
        "3",
        "ordering at every number of targets",
        "nearest > landmarks > farthest in links discovered, on transit-stub and on two-level "
        "Waxman networks, as in the paper's figure; flat Waxman is for information",
        (Source("fig3-targets", ("fig3",)),),
        nearest_targets_see_most,
    ),
    Claim(
        "T2",
        "looser degree limits discover more links; DBest is best, TarRand worst",
        "5 (a), (b)",
        "ordering",
        "links that overlay links map at ten targets: lg1 <= lg2 <= sq <= none, and lg1 < none; "
        "DBest >= DWorst, MLink; TarRand last; on both topologies",
        (Source("fig5-limits", ("fig5ab-mapped", "fig5ab"), _BESIDE_TARRAND),),
        looser_limits_see_more,
        (Source("fig5-targets", ("fig5ab-targets-mapped", "fig5ab-targets"), _BESIDE_TARRAND),),
    ),
    Claim(
        "T3",
        "relative delay penalty (RDP) of the discovery overlay: Waxman, no limit, ten targets, "
        "MLink",
        "5 (c)",
        "1.19",
        "mean RDP at most 1.25 without the last miles of peers on the way and at most 1.60 with "
        "them; the paper does not say which it means",
        (
            Source("fig5-limits", ("fig5cd", "fig5cd-without"), _MLINK_UNLIMITED),
            Source("fig5-readings", ("readings-rdp",), {"overlay.degree_limit": "none"}),
        ),
        mlink_penalty_is_low,
        (Source("fig5-targets", ("fig5cd-targets", "fig5cd-targets-without"), _MLINK_UNLIMITED),),
    ),
    Claim(
        "T4",
        "RDP falls with looser degree limits; DOnly, which ignores routes, is worse",
        "5 (c), (d)",
        "ordering",
        "lg1 >= lg2 >= sq >= none; DOnly above all heuristics at the same limit; on both "
        "topologies",
        (
            Source("fig5-limits", ("fig5cd", "fig5cd-without"), _BESIDE_DONLY),
            Source("fig5-walks", ("fig5cd-walks", "fig5ab-walks")),
        ),
        looser_limits_cost_less,
        (Source("fig5-targets", ("fig5cd-targets", "fig5cd-targets-without"), _BESIDE_DONLY),),
    ),
    Claim(
        "T5",
        "RDP falls as peers are added; DOnly costs more delay and more stress",
        "5 (e), (f)",
        "DOnly up to 39 % more RDP and 30 % more stress",
        "RDP falls at every step to more peers; at the most peers DOnly is at least 20 % above "
        "MLink in RDP and in stress; on both topologies",
        (Source("fig5-peers", ("fig5e", "fig5f")),),
        more_peers_cost_less,
    ),
    Claim(
        "T6",
        "the share of routes inferred falls as peers are added; MLink infers most and sends most "
        "joins",
        "5 (g), (h)",
        "trend, ordering",
        "the share falls at every step to more peers; at the most peers MLink has the most "
        "inferences and join messages of the three heuristics; on both topologies",
        (
            Source(
                "fig5-peers",
                ("fig5g", "fig5h"),
                {"overlay.heuristic": ("dbest", "dworst", "mlink")},
            ),
        ),
        more_peers_infer_less,
    ),
)

_ROUTING: tuple[Claim, ...] = (
    Claim(
        "T7",
        "SPath routes best, SPotent about as MaxPath, then CNeigh; MST worst",
        "6 (a)",
        "up to 49 % less cost than baselines",
        "cost against OPT, with both workloads: SPath best; SPotent and MaxPath within 15 % of "
        "each other; MST worse than all four strategies; the best saves at least 35 % against "
        "the worst baseline",
        (Source("fig6-strategies", ("fig6a", "fig6a-false")), Source("fig6-sim", ("sim",))),
        shortest_paths_cost_least,
    ),
    Claim(
        "T8",
        "all strategies do better on Zipf than on uniform interests",
        "6 (a)",
        "ordering",
        "cost against OPT lower on Zipf, for each of the four strategies",
        (Source("fig6-strategies", ("fig6a",)), Source("fig6-hotspots", ("hotspots",))),
        popular_interests_cost_less,
    ),
    Claim(
        "T9",
        "cost rises with cores that join over the root core's tree, and falls where all pairs of "
        "cores join by shortest paths",
        "6 (b), (c)",
        "two trends",
        "cost of subscriptions and events per delivery rises, and falls, at every step to more "
        "cores",
        (
            Source(
                "fig6-cores",
                ("fig6bc-communication", "fig6bc"),
                {"variant": ("root core's tree", "all shortest paths")},
            ),
        ),
        paths_between_cores_matter,
    ),
    Claim(
        "T10",
        "control efficiency falls with the number of cores, and stays better than MST's",
        "6 (d)",
        "trend, ordering",
        "messages of election, selection, trees, subscriptions and events per matching event, of "
        "which 1 is ideal, rise at every step to more cores on the root core's tree, and stay "
        "below MST's",
        (Source("fig6-cores", ("fig6d-without-discovery", "fig6d", "fig6d-routing")),),
        more_cores_control_more,
    ),
    Claim(
        "T11",
        "under churn, cost rises slowly and drops at each recalculation; messages rise for a while",
        "6 (f), (g)",
        "trend",
        "cost per delivery after the second recalculation below that of the 500 events before it, "
        "at three churn rates; both trees use interests and are repaired locally",
        (Source("fig6-churn", ("fig6f", "fig6g")),),
        recalculation_pays,
    ),
)

_EXAMPLE: tuple[Claim, ...] = (
    Claim(
        "T12",
        "example 1: an overlay built along the underlay has fewer link messages and less delay "
        "than one by containment only",
        "1",
        "327 and 246 messages, 25 % less; delay penalty 3.9 and 1.2",
        "fewer messages and a lower delay penalty, on a network of that shape",
        (Source("example1", ("example1-messages", "example1-penalty")),),
        underlay_awareness_saves,
    ),
)

_SMALL_NETWORKS = [
    {"label": "Waxman", "topology": {"kind": "waxman", "routers": 205}},
    {"label": "transit-stub", "topology": {"kind": "transit-stub", "routers": 198}},
]
_SMALL_HIERARCHY = {
    "label": "two-level Waxman",
    "topology": {"kind": "waxman-hierarchical", "routers": 205},
}
_SMALL_TARGETS = [
    {
        "label": f"{by}, {network['label']}",
        "topology": network["topology"],
        "overlay": overlay,
    }
    for network in (*_SMALL_NETWORKS, _SMALL_HIERARCHY)
    for by, overlay in (
        (
            "targets",
            {
                "kind": "tdo-walk",
                "heuristic": ["nearest", "farthest"],
                "heartbeat_us": 30_000_000,
            },
        ),
        ("landmarks", {"kind": "tdo-landmark"}),
    )
]
# Fewer peers join and agree sooner.
_SMALL_EVENTS: Mapping[str, Any] = {
    "topology.routers": 205,
    "topology.hosts": 128,
    "start_over_s": 30,
    "routing.period_us": 3_000_000,
    "routing.settle_s": 5.0,
    "routing.first_selection_s": 50.0,
    "workload.start_s": 80.0,
    "workload.rate_per_s": 10.0,
}
_ONCE_MORE: Mapping[str, Any] = {"seed": [1, 2, 3]}

# For each scale, what is changed in the file of each sweep, as by `--set`.
SCALES: Changes = {
    "small": {
        "fig3-targets": {
            "duration_s": 80,
            "topology.hosts": 128,
            "overlay.targets": [5, 10],
            "variant": _SMALL_TARGETS,
        },
        "fig5-limits": {
            "topology.hosts": 128,
            "overlay.degree_limit": ["lg1", "lg2", "none"],  # sq is tighter than lg2 here
            "variant": _SMALL_NETWORKS,
        },
        "fig5-targets": {
            **_ONCE_MORE,
            "topology.hosts": 128,
            "overlay.targets": [5, 10],
            "variant": _SMALL_NETWORKS,
        },
        "fig5-peers": {"topology.hosts": [32, 64, 128], "variant": _SMALL_NETWORKS},
        "fig5-readings": {"topology.routers": 205, "topology.hosts": 128},
        "fig5-walks": {
            "topology.hosts": 128,
            "overlay.ttl": [100, 300],
            "variant": _SMALL_NETWORKS,
        },
        "fig6-strategies": {**_SMALL_EVENTS, "workload.events": 500, "duration_s": 170},
        "fig6-cores": {**_SMALL_EVENTS, "workload.events": 500, "duration_s": 170},
        "fig6-sim": {
            **_SMALL_EVENTS,
            **_ONCE_MORE,
            "workload.events": 500,
            "duration_s": 170,
        },
        "fig6-hotspots": {
            **_SMALL_EVENTS,
            "routing.strategy": ["spath"],
            "workload.events": 500,
            "duration_s": 170,
        },
        "fig6-churn": {
            **_SMALL_EVENTS,
            # Under steady churn a new tree takes some periods of hellos: it needs time between.
            "workload.rate_per_s": 4.0,
            "workload.events": 1500,
            "workload.recalculate_every_events": 500,
            "duration_s": 475,
        },
        "example1": _ONCE_MORE,
    },
    "paper": {
        "fig3-targets": {},
        "fig5-limits": {},
        "fig5-targets": {},
        "fig5-peers": {},
        "fig5-readings": {},
        "fig5-walks": {},
        "fig6-strategies": {},
        "fig6-sim": {},
        "fig6-hotspots": {},
        "fig6-cores": {},
        "fig6-churn": {},
        "example1": _ONCE_MORE,
    },
}

CATALOGUE = Catalogue(
    sections=(
        Section("6.1 Performance of TDO", _DISCOVERY),
        Section("6.2 Performance of Event Routing", _ROUTING),
        Section("1 Introduction", _EXAMPLE),
    ),
    scales={
        "small": "128 peers on about 200 routers (paper: 1,024 on about 1,600): for a first look, "
        "not for citation",
        "paper": "the paper's size: 1,024 peers on about 1,600 routers",
    },
    changes=SCALES,
)
