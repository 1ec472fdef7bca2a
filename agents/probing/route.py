"""Routes as probing finds them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hop:
    """One hop of a route; an anonymous router has no address and no times."""

    address: int | None
    round_trips_us: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Route:
    """The hops to a target; the last one is the target if it was reached."""

    target: int
    hops: tuple[Hop, ...]
    is_reached: bool

    @property
    def routers(self) -> tuple[int | None, ...]:
        """The addresses of the routers on the route, None for a silent one."""
        hops = self.hops[:-1] if self.is_reached else self.hops
        return tuple(hop.address for hop in hops)

    @property
    def last_mile_us(self) -> int | None:
        """The one-way delay to the first router, half of its shortest round trip; None if it is
        silent.
        """
        trips = self.hops[0].round_trips_us if self.hops else ()
        return min(trips) // 2 if trips else None
