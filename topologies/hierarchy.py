"""The settings of two-level Waxman networks: autonomous systems and the links between them."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from topologies.errors import TopologyError
from topologies.parameters import check_parameter
from topologies.waxman import check_counts, check_waxman

EdgeConnection = Literal[
    "random", "smallest-degree", "smallest-degree-non-leaf", "smallest-k-degree"
]
EDGE_CONNECTIONS: tuple[EdgeConnection, ...] = get_args(EdgeConnection)
# The proportion in BRITE's example file: 30 autonomous systems of 50 routers.
_SYSTEMS_TO_ROUTERS_EACH = 30 / 50


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Numbers of routers and autonomous systems, and the links on both levels.

    The paper gives no size for the network of its figure 3. The default is as large as its other
    network of BRITE. `edge_connection` is BRITE's method to choose the border routers of a link
    between two autonomous systems; `border_degree` is the k of the method `smallest-k-degree`.
    """

    routers: int = 1640
    autonomous_systems: int = 31
    links_per_router: int = 2
    links_per_system: int = 2
    edge_connection: EdgeConnection = "random"
    border_degree: int = 4
    link_share: float = 0.15
    distance_scale: float = 0.2

    def __post_init__(self) -> None:
        check_waxman(self.link_share, self.distance_scale)
        systems, links = self.autonomous_systems, self.links_per_router
        check_counts("autonomous_systems", systems, "links_per_system", self.links_per_system)
        check_counts("routers", self.routers, "links_per_router", links)
        least = systems * (links + 1)
        expected = f"{least} or more, for {systems} autonomous systems with {links} links a router"
        check_parameter("routers", self.routers, expected, self.routers >= least)
        check_parameter("border_degree", self.border_degree, "1 or more", self.border_degree >= 1)
        if self.edge_connection not in EDGE_CONNECTIONS:
            raise TopologyError(
                f"edge_connection: expected one of {', '.join(EDGE_CONNECTIONS)}; "
                f"found {self.edge_connection!r}"
            )

    @property
    def system_sizes(self) -> list[int]:
        """The number of routers in each autonomous system; the first ones may have one more."""
        size, spare = divmod(self.routers, self.autonomous_systems)
        return [size + (number < spare) for number in range(self.autonomous_systems)]

    @property
    def least_border_degree(self) -> int | None:
        """The smallest degree a border router may have; None for a random border router.

        A leaf has only the links that it made when it joined its autonomous system.
        """
        return {
            "random": None,
            "smallest-degree": 0,
            "smallest-degree-non-leaf": self.links_per_router + 1,
            "smallest-k-degree": self.border_degree,
        }[self.edge_connection]


PAPER_HIERARCHY = Hierarchy()


def choose_systems(routers: int, links_per_system: int = PAPER_HIERARCHY.links_per_system) -> int:
    """The number of autonomous systems that is in proportion to their size."""
    systems = round(math.sqrt(max(routers, 0) * _SYSTEMS_TO_ROUTERS_EACH))
    return max(links_per_system + 1, systems)
