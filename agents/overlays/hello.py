"""The smallest protocol worth running: greet your contacts, and look at the way to them.

It is a quick check that a network, its agents and both runtimes work: every greeting, delay and
route ends up in the records.
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
    """Greets every contact some times, and measures delay and route to it once."""

    class Settings(Struct, frozen=True, kw_only=True):
        """How often contacts are greeted."""

        greetings: Annotated[int, Meta(ge=0, description="greetings to each contact")] = 3
        period_us: Annotated[int, Meta(ge=1, description="time from one greeting to the next")] = (
            500_000
        )

    settings: Settings
    messages = (Hello, Welcome)

    def on_start(self, now_us: int) -> Effects:
        """Look at the way to every contact, and start to greet."""
        self.left = self.settings.greetings
        looks = [look(peer) for peer in self.contacts for look in (MeasureDelay, ProbeRoute)]
        return [*looks, *self.on_timer(now_us, "greet")]

    def on_timer(self, now_us: int, name: Hashable) -> Effects:
        """Greet all contacts once more, until it is enough."""
        if self.left == 0:
            return []
        self.left -= 1
        greetings = [Send(peer, Hello(self.left), reliable=True) for peer in self.contacts]
        return [*greetings, SetTimer("greet", self.settings.period_us)]

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> Effects:
        """Answer a greeting; write an answer down."""
        if isinstance(message, Hello):
            return [Send(sender, Welcome(message.number))]
        return [Record("welcomed", {"by": sender, "number": message.number})]

    def on_delay(self, now_us: int, delay: Delay) -> Effects:
        """Write down how far a contact is."""
        figures = {"peer": delay.target, "samples": len(delay.samples_us)}
        if delay.samples_us:
            figures |= {"min_us": delay.min_us, "median_us": delay.median_us}
        return [Record("delay_measured", figures)]

    def on_probe_result(self, now_us: int, route: Route) -> Effects:
        """Write down which routers lie on the way; 0 stands for one that stayed silent."""
        routers = " ".join(str(router or 0) for router in route.routers)
        return [
            Record(
                "route_inferred",
                {"peer": route.target, "is_reached": route.is_reached, "routers": routers},
            )
        ]

    def on_give_up(self, now_us: int, to: PeerId, message: Any) -> Effects:
        """Write down who never answered."""
        return [Record("given_up", {"peer": to})]
