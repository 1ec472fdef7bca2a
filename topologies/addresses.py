"""Readable addresses and interface names.

Every node has one address in 10.0.0.0/8, and every router has one prefix for itself and its hosts,
so a route needs one entry for each access network. There are two plans with decimal numbers:

- prefix 24, for many routers: router number 1640 is 10.16.40.1, its hosts are
  10.16.40.2, 10.16.40.3 and so on;
- prefix 16, for routers with many hosts (hosts around one exchange): router number 3 is 10.3.0.1,
  its 490th host is 10.3.4.91.
"""

from topologies.errors import TopologyError

_LARGEST_SLOT = {24: 254, 16: 25_499}
_LARGEST_ROUTER = {24: 25_599, 16: 255}


def choose_prefix(router_count: int, most_hosts_on_a_router: int) -> int:
    """The prefix length of access networks for a number of routers and hosts."""
    for prefix in (24, 16):
        fits_hosts = most_hosts_on_a_router + 1 <= _LARGEST_SLOT[prefix]
        if fits_hosts and router_count <= _LARGEST_ROUTER[prefix]:
            return prefix
    raise TopologyError(
        f"addresses exhausted: expected at most {_LARGEST_ROUTER[24]} routers with "
        f"{_LARGEST_SLOT[24] - 1} hosts each, or {_LARGEST_ROUTER[16]} routers with "
        f"{_LARGEST_SLOT[16] - 1} hosts each; found {router_count} routers and "
        f"{most_hosts_on_a_router} hosts on one of them; use fewer, or spread the hosts"
    )


def node_address(prefix: int, router_number: int, slot: int) -> str:
    """The address in a slot of a router's network; slot 1 is the router itself."""
    if prefix == 24:
        return f"10.{router_number // 100}.{router_number % 100}.{slot}"
    return f"10.{router_number}.{slot // 100}.{slot % 100}"


def network_address(prefix: int, router_number: int) -> str:
    """The network of a router and its hosts, as address/length."""
    return f"{node_address(prefix, router_number, 0)}/{prefix}"


def interface_name(node: str, neighbour: str) -> str:
    """The name of a node's interface towards a neighbour, within the kernel's 15 characters."""
    return f"{node}-{neighbour}"
