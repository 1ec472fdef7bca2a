"""The prefix relation between underlay routes (section 2 of Tariq, Koldehofe and Rothermel,
"Efficient content-based routing with network topology inference", DEBS 2013).

A route is the routers from one peer to another in order, with 0 for one that stayed silent. Seen
from p, peer q is a prefix of peer s if every router on the way to q is on the way to s, at the
same place: then the way to s passes q's router, and a message for s loses little by visiting q.

A silent router counts as equal to a silent one at the same place, as both were seen from one peer
over the same routers before; and as different from any that answered.
"""

Routers = tuple[int, ...]


def is_prefix(shorter: Routers, longer: Routers) -> bool:
    """Whether the first route is the beginning of the second, or all of it."""
    return longer[: len(shorter)] == shorter


def cut(via: Routers, route: Routers) -> Routers:
    """The route from a peer on the way, given the routes to that peer and past it.

    It begins at the last router of `via`, to which the peer on the way is attached.
    """
    return route[len(via) - 1 :]
