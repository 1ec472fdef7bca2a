"""The prefix relation between underlay routes (section 2 of Tariq, Koldehofe and Rothermel,
"Efficient content-based routing with network topology inference", DEBS 2013).

A route is the sequence of routers from one peer to another; 0 stands for a silent router. Seen from
p, peer q is a prefix of peer s if the route to s begins with the route to q. The route to s then
passes q's router, so a message for s can visit q at little cost.

A silent router equals a silent router at the same place, because both were seen from one peer over
the same routers before. It differs from any router that answered.
"""

Routers = tuple[int, ...]


def is_prefix(shorter: Routers, longer: Routers) -> bool:
    """Whether the second route begins with the first."""
    return longer[: len(shorter)] == shorter


def cut(via: Routers, route: Routers) -> Routers:
    """The rest of a route from a peer on it, given the routes to that peer and to the target.

    It begins at the last router of `via`, to which the peer is attached.
    """
    return route[len(via) - 1 :]
