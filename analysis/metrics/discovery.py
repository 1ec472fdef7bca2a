"""The share of the network that agents discovered, and the share of that which is true.

The definitions are those of section 6.1 of Tariq, Koldehofe and Rothermel, DEBS 2013. Shares are of
the links on any unicast route between two peers.
"""

from collections.abc import Callable
from typing import Any

from analysis.metrics.evidence import Input
from analysis.metrics.found_links import count_true_routes
from analysis.metrics.measured_overlay import MeasuredOverlay
from analysis.metrics.metric import Group, Headline, Metric, Part, Value
from analysis.metrics.statistics import ratio
from analysis.overlay import FoundRoute
from analysis.unicast import LinkSet

_NO_ROUTES = "no agent inferred a route"
_NO_ROUTER_LINKS = "no link between two routers is on a route between two peers"


def discovered_links(overlay: MeasuredOverlay) -> float | None:
    """The share of the links between peers that inferred routes show."""
    return share(overlay.found_links.true, overlay.unicast.used)


def discovered_router_links(overlay: MeasuredOverlay) -> float | None:
    """The same of links between routers only."""
    return share(overlay.found_links.true, overlay.unicast.used & overlay.unicast.router_links)


def precision(overlay: MeasuredOverlay) -> float | None:
    """The share of the links on inferred routes that exist."""
    true = int(overlay.found_links.true.sum())
    return ratio(true, true + overlay.found_links.false)


def mapped_links(overlay: MeasuredOverlay) -> float | None:
    """The share of the links between peers that are on the route of a near overlay link."""
    return share(overlay.mapped_links, overlay.unicast.used)


def mapped_router_links(overlay: MeasuredOverlay) -> float | None:
    """The same of links between routers only."""
    return share(overlay.mapped_links, overlay.unicast.used & overlay.unicast.router_links)


def share(links: LinkSet, whole: LinkSet) -> float | None:
    """The share of the links in `whole` that are among `links`."""
    return ratio((links & whole).sum(), whole.sum())


def inference_score(overlay: MeasuredOverlay) -> dict[str, Any] | None:
    """Precision and recall of the links and routers on the routes that were probed."""
    if not overlay.overlay.inferred:
        return None
    found = overlay.found_links
    seen = int(found.true.sum()) + found.false
    on_probed = int((found.true & found.probed).sum())
    routers = len(found.routers & found.probed_routers)
    return {
        "precision": ratio(on_probed, seen),
        "recall": ratio(on_probed, found.probed.sum()),
        "router_precision": ratio(routers, len(found.routers)),
        "router_recall": ratio(routers, len(found.probed_routers)),
    }


def share_true(overlay: MeasuredOverlay, routes: tuple[FoundRoute, ...]) -> float | None:
    """The share of routes that are the true ones, not counting silent routers."""
    return ratio(count_true_routes(overlay.unicast, routes), len(routes))


def share_reached(overlay: MeasuredOverlay) -> float | None:
    """The share of inferred routes on which the target answered."""
    routes = overlay.overlay.inferred
    return ratio(sum(route.is_reached for route in routes), len(routes))


def _metric(
    name: str,
    unit: str,
    label: str,
    explanation: str,
    measure: Callable[[MeasuredOverlay], Value],
    why_null: str = "no link is on a route between two peers",
    headline: Headline | None = None,
    summary: tuple[Part, ...] = (),
) -> Metric:
    return Metric(
        name,
        unit,
        label,
        explanation,
        Group.DISCOVERY,
        (Input.OVERLAY,),
        lambda evidence: measure(evidence.overlay),
        why_null,
        headline=headline,
        summary=summary,
    )


METRICS = (
    _metric(
        "discovered_links", "share", "Discovered links",
        "Links on inferred routes, divided by the links on any unicast route between two peers.",
        discovered_links,
        headline=Headline(
            "Discovered links", details=(("discovered_links_of_all", "of all links"),)
        ),
        summary=(Part("", "Discovered links"),),
    ),
    _metric(
        "discovered_links_between_routers", "share", "Discovered links between routers",
        "Discovered links without last miles: only links between routers.",
        discovered_router_links, _NO_ROUTER_LINKS,
    ),
    _metric(
        "discovered_links_of_all", "share", "Discovered links, of all",
        "Links on inferred routes, divided by all links of the network.",
        lambda o: ratio(o.found_links.true.sum(), len(o.found_links.true)),
    ),
    _metric(
        "discovered_links_precision", "share", "Precision of discovered links",
        "Links on inferred routes that exist, divided by all links on inferred routes.",
        precision, _NO_ROUTES,
    ),
    _metric(
        "mapped_links", "share", "Mapped links",
        "Links on the routes of near overlay links, divided by the links on any unicast route "
        "between two peers.",
        mapped_links,
    ),
    _metric(
        "mapped_links_between_routers", "share", "Mapped links between routers",
        "Mapped links without last miles: only links between routers.",
        mapped_router_links, _NO_ROUTER_LINKS,
    ),
    _metric(
        "inference_score", "share", "Inference score",
        "Of the links (and routers) on probed routes: share of those found that are true "
        "(precision), and share of the true ones that were found (recall).",
        inference_score, _NO_ROUTES,
    ),
    _metric(
        "inferences", "per pair of peers", "Inferences",
        "Routes inferred by probing, divided by the number of ordered pairs of peers.",
        lambda o: ratio(len(o.overlay.inferred), o.pairs),
        headline=Headline("Inferences", details=(("inferences_count", "routes"),)),
    ),
    _metric(
        "inferences_count", "routes", "Inferred routes", "Routes inferred by probing.",
        lambda o: len(o.overlay.inferred),
    ),
    _metric(
        "routes_true", "share", "True routes",
        "Share of inferred routes that are exactly the true ones, not counting silent routers.",
        lambda o: share_true(o, o.overlay.inferred), _NO_ROUTES,
    ),
    _metric(
        "routes_reached", "share", "Routes that reached their end",
        "Share of inferred routes on which the target answered.",
        share_reached, _NO_ROUTES,
    ),
    _metric(
        "known_routes_count", "routes", "Derived routes",
        "Routes that agents derived from other routes, without probing.",
        lambda o: len(o.overlay.known),
    ),
    _metric(
        "known_routes_true", "share", "True derived routes",
        "Share of derived routes that are the true ones.",
        lambda o: share_true(o, o.overlay.known), "no agent derived a route",
    ),
)  # fmt: skip
