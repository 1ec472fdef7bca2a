"""Routes as probing sees them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hop:
    """One step of a route; an anonymous router has no address and no times."""

    address: int | None
    round_trips_us: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Route:
    """The hops from here to a target, which is the last of them if it was reached."""

    target: int
    hops: tuple[Hop, ...]
    is_reached: bool

    @property
    def routers(self) -> tuple[int | None, ...]:
        """The addresses of the routers on the way, None where one stayed silent."""
        hops = self.hops[:-1] if self.is_reached else self.hops
        return tuple(hop.address for hop in hops)

    @property
    def last_mile_us(self) -> int | None:
        """The one-way delay to the first router, half its shortest round trip, if it answered."""
        trips = self.hops[0].round_trips_us if self.hops else ()
        return min(trips) // 2 if trips else None
