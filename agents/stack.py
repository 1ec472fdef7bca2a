"""A stack of protocols: overlay, routing, publish/subscribe, application.

Each layer is a separate protocol and does not know the others. The stack returns messages, timers,
probes and measurements to the layer that asked for them. It passes announcements to all other
layers, and deliveries to the highest layer. Therefore each layer can be replaced on its own.
"""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Any

import msgspec

from agents.probing.route import Route
from agents.protocol import (
    Announce,
    CancelTimer,
    Compute,
    Delay,
    Deliver,
    Effect,
    Effects,
    MeasureDelay,
    PeerId,
    ProbeRoute,
    Protocol,
    SetTimer,
)


class Stack(Protocol):
    """Several protocols, the lowest first, combined into one."""

    def __init__(self, layers: Sequence[Protocol]) -> None:
        self._layers = tuple(layers)
        self._layer_of = {kind: i for i, layer in enumerate(layers) for kind in layer.messages}
        self.messages = tuple(self._layer_of)
        self._asked_route: defaultdict[PeerId, set[int]] = defaultdict(set)
        self._asked_delay: defaultdict[PeerId, set[int]] = defaultdict(set)

    def on_start(self, now_us: int) -> Effects:
        """Start every layer, the lowest first."""
        effects: list[Effect] = []
        for i, layer in enumerate(self._layers):
            effects += self._from(now_us, i, layer.on_start(now_us))
        return effects

    def on_stop(self, now_us: int) -> Effects:
        """Stop every layer, the highest first."""
        effects: list[Effect] = []
        for i, layer in reversed(list(enumerate(self._layers))):
            effects += self._from(now_us, i, layer.on_stop(now_us))
        return effects

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> Effects:
        """Pass a message to the layer that declares its type."""
        i = self._layer_of[type(message)]
        return self._from(now_us, i, self._layers[i].on_message(now_us, sender, message))

    def on_timer(self, now_us: int, name: Hashable) -> Effects:
        """Call the layer that set the timer."""
        assert isinstance(name, tuple)
        i, inner = name
        return self._from(now_us, i, self._layers[i].on_timer(now_us, inner))

    def on_probe_result(self, now_us: int, route: Route) -> Effects:
        """Pass a route to every layer that asked for it."""
        effects: list[Effect] = []
        for i in sorted(self._asked_route.pop(route.target, ())):
            effects += self._from(now_us, i, self._layers[i].on_probe_result(now_us, route))
        return effects

    def on_delay(self, now_us: int, delay: Delay) -> Effects:
        """Pass a delay to every layer that asked for it."""
        effects: list[Effect] = []
        for i in sorted(self._asked_delay.pop(delay.target, ())):
            effects += self._from(now_us, i, self._layers[i].on_delay(now_us, delay))
        return effects

    def on_computed(self, now_us: int, name: Hashable, result: Any) -> Effects:
        """Pass the result to the layer that asked for it."""
        assert isinstance(name, tuple)
        i, inner = name
        return self._from(now_us, i, self._layers[i].on_computed(now_us, inner, result))

    def on_give_up(self, now_us: int, to: PeerId, message: Any) -> Effects:
        """Tell the layer that sent a message that it was not acknowledged."""
        i = self._layer_of[type(message)]
        return self._from(now_us, i, self._layers[i].on_give_up(now_us, to, message))

    def _from(self, now_us: int, i: int, effects: Effects) -> list[Effect]:
        """The effects of a layer; timers and requests are marked with the number of the layer."""
        marked: list[Effect] = []
        for effect in effects:
            if type(effect) is SetTimer:
                marked.append(SetTimer((i, effect.name), effect.delay_us))
            elif type(effect) is CancelTimer:
                marked.append(CancelTimer((i, effect.name)))
            elif type(effect) is Compute:
                marked.append(msgspec.structs.replace(effect, name=(i, effect.name)))
            elif type(effect) is Announce:
                marked += self._announce(now_us, i, effect.content)
            elif type(effect) is Deliver:
                marked += self._deliver(now_us, effect)
            else:
                if type(effect) is ProbeRoute:
                    self._asked_route[effect.target].add(i)
                elif type(effect) is MeasureDelay:
                    self._asked_delay[effect.target].add(i)
                marked.append(effect)
        return marked

    def _deliver(self, now_us: int, delivery: Deliver) -> list[Effect]:
        top = len(self._layers) - 1
        return self._from(now_us, top, self._layers[top].on_delivery(now_us, delivery))

    def _announce(self, now_us: int, announcer: int, content: Any) -> list[Effect]:
        effects: list[Effect] = []
        for i, layer in enumerate(self._layers):
            if i != announcer:
                effects += self._from(now_us, i, layer.on_announcement(now_us, content))
        return effects
