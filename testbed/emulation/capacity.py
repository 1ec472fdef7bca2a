"""The requirements of a network, checked before it is built."""

import resource
from pathlib import Path

from testbed.errors import EmulationError
from topologies.underlay import Underlay

# Above everything that `tdo bench build` measured: 80 MB for 100 routers and 62 hosts, 550 MB
# for 800 and 500, and 1.5 to 2.2 GB for 1,640 and 1,024.
_MB_FIXED, _MB_PER_NODE, _MB_PER_LINK, _MB_PER_MILLION_ROUTES = 100, 0.25, 0.15, 300
_SPARE_DESCRIPTORS = 200


def available_mb() -> float:
    """The memory that is available without swapping."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) / 1024
    raise EmulationError("/proc/meminfo: expected a line MemAvailable, found none")


def needed_mb(routers: int, hosts: int, links: int) -> float:
    """An estimate of the memory of a network, most of it in the kernel."""
    routes = routers * routers / 1e6
    nodes = (routers + hosts) * _MB_PER_NODE
    return _MB_FIXED + nodes + links * _MB_PER_LINK + routes * _MB_PER_MILLION_ROUTES


def check_capacity(underlay: Underlay, descriptors_per_link: int) -> None:
    """Raise the limit of open files as far as needed; raises if the machine is too small."""
    routers, hosts, links = len(underlay.routers), len(underlay.hosts), len(underlay.links)
    found_mb, wanted_mb = available_mb(), needed_mb(routers, hosts, links)
    if wanted_mb > found_mb:
        share = _fitting_share(routers, hosts, links, found_mb)
        raise EmulationError(
            f"not enough memory for {routers} routers and {hosts} hosts: expected "
            f"{wanted_mb:.0f} MB available, found {found_mb:.0f} MB; {int(routers * share)} "
            f"routers and {int(hosts * share)} hosts would fit"
        )
    descriptors = raise_descriptor_limit()
    wanted = max(routers + hosts, descriptors_per_link * links) + _SPARE_DESCRIPTORS
    if wanted > descriptors:
        share = (descriptors - _SPARE_DESCRIPTORS) / wanted
        raise EmulationError(
            f"not enough open files for {routers} routers, {hosts} hosts and {links} links: "
            f"expected a limit of {wanted}, found {descriptors}; raise it with `ulimit -Hn "
            f"{wanted}`, or use about {int(routers * share)} routers and {int(hosts * share)} hosts"
        )


def raise_descriptor_limit() -> int:
    """Allow this process and its children all the open files they can have; returns the number."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def _fitting_share(routers: int, hosts: int, links: int, found_mb: float) -> float:
    """The largest share of a network, in steps of 5 %, that fits the memory."""
    for percent in range(95, 0, -5):
        share = percent / 100
        if needed_mb(int(routers * share), int(hosts * share), int(links * share)) <= found_mb:
            return share
    return 0.0
