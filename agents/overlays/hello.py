"""The smallest useful protocol: each peer greets its contacts and infers the routes to them.

It is a quick check of a network, its agents and both runtimes: every greeting, delay and route is
recorded.
"""

from collections.abc import Hashable
from typing import Annotated, Any

from msgspec import Meta, Struct

from agents.probing.route import Route
from agents.protocol import (
    Delay,
    Effects,
    MeasureDelay,
    PeerId,
    ProbeRoute,
    Protocol,
    Record,
    Send,
    SetTimer,
)
from agents.wire.codec import U32, message


@message(10, role="upkeep")
class Hello(Struct, frozen=True):
    """A greeting, with a number that its receiver returns."""

    number: U32


@message(11, role="upkeep")
class Welcome(Struct, frozen=True):
    """The answer to a greeting."""

    number: U32


class HelloProtocol(Protocol):
    """Greets every contact several times, and measures delay and route to it once."""

    class Settings(Struct, frozen=True, kw_only=True):
        """Number and interval of the greetings."""

        greetings: Annotated[int, Meta(ge=0, description="greetings to each contact")] = 3
        period_us: Annotated[int, Meta(ge=1, description="time from one greeting to the next")] = (
            500_000
        )

    settings: Settings
    messages = (Hello, Welcome)

    def on_start(self, now_us: int) -> Effects:
        """Infer the route to every contact, and start to greet."""
        self.left = self.settings.greetings
        looks = [look(peer) for peer in self.contacts for look in (MeasureDelay, ProbeRoute)]
        return [*looks, *self.on_timer(now_us, "greet")]

    def on_timer(self, now_us: int, name: Hashable) -> Effects:
        """Greet all contacts again, until the number of greetings is reached."""
        if self.left == 0:
            return []
        self.left -= 1
        greetings = [Send(peer, Hello(self.left), reliable=True) for peer in self.contacts]
        return [*greetings, SetTimer("greet", self.settings.period_us)]

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> Effects:
        """Answer a greeting, or record an answer."""
        if isinstance(message, Hello):
            return [Send(sender, Welcome(message.number))]
        return [Record("welcomed", {"by": sender, "number": message.number})]

    def on_delay(self, now_us: int, delay: Delay) -> Effects:
        """Record the delay to a contact."""
        figures = {"peer": delay.target, "samples": len(delay.samples_us)}
        if delay.samples_us:
            figures |= {"min_us": delay.min_us, "median_us": delay.median_us}
        return [Record("delay_measured", figures)]

    def on_probe_result(self, now_us: int, route: Route) -> Effects:
        """Record the route to a contact; 0 stands for a silent router."""
        routers = " ".join(str(router or 0) for router in route.routers)
        return [
            Record(
                "route_inferred",
                {"peer": route.target, "is_reached": route.is_reached, "routers": routers},
            )
        ]

    def on_give_up(self, now_us: int, to: PeerId, message: Any) -> Effects:
        """Record a contact that did not answer."""
        return [Record("given_up", {"peer": to})]
