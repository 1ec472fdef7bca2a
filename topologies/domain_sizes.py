"""The sizes of transit-stub networks: numbers of domains, and of routers in a domain."""

import math
from dataclasses import asdict, dataclass

from topologies.parameters import check_parameter

FEWEST_ROUTERS = 4


@dataclass(frozen=True, slots=True)
class DomainSizes:
    """Numbers of domains, and their mean sizes.

    `spare_stub_routers` are additional: each makes a random stub domain one router larger.
    """

    transit_domains: int = 6
    routers_per_transit_domain: int = 8
    stub_domains_per_transit_router: int = 4
    routers_per_stub_domain: int = 8
    spare_stub_routers: int = 0

    def __post_init__(self) -> None:
        for name, size in asdict(self).items():
            least = 0 if name == "spare_stub_routers" else 1
            check_parameter(name, size, f"{least} or more", size >= least)
        spare = self.spare_stub_routers
        expected = f"fewer than the {self.stub_domains} stub domains"
        check_parameter("spare_stub_routers", spare, expected, spare < self.stub_domains)

    @property
    def transit_routers(self) -> int:
        """The number of transit routers in all domains together."""
        return self.transit_domains * self.routers_per_transit_domain

    @property
    def stub_domains(self) -> int:
        """The number of stub domains on all transit routers together."""
        return self.transit_routers * self.stub_domains_per_transit_router

    @property
    def routers(self) -> int:
        """The exact number of routers in the network."""
        stub_routers = self.stub_domains * self.routers_per_stub_domain
        return self.transit_routers + stub_routers + self.spare_stub_routers


PAPER_SIZES = DomainSizes()


def choose_domain_sizes(routers: int) -> DomainSizes:
    """Domain sizes for an exact number of routers, in proportions near the paper's.

    The paper's 1,584 routers are 6 domains of 8 transit routers, each with 4 stub domains of
    8. Smaller networks have fewer and smaller transit domains; below some 70 routers their
    stub domains are fewer and smaller too.
    """
    expected = f"{FEWEST_ROUTERS} or more"
    check_parameter("routers", routers, expected, routers >= FEWEST_ROUTERS)
    paper = PAPER_SIZES
    domains, per_domain = _split(
        max(2.0, routers * paper.transit_routers / paper.routers),
        paper.transit_domains / paper.routers_per_transit_domain,
    )
    transit_routers = domains * per_domain
    stubs, _ = _split(
        routers / transit_routers - 1,
        paper.stub_domains_per_transit_router / paper.routers_per_stub_domain,
    )
    size, spare = divmod(routers - transit_routers, transit_routers * stubs)
    return DomainSizes(domains, per_domain, stubs, size, spare)


def _split(product: float, ratio: float) -> tuple[int, int]:
    """Two whole numbers of about the given product and ratio."""
    first = max(1, round(math.sqrt(product * ratio)))
    return first, max(1, round(product / first))
