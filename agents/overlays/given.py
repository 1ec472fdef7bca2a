"""An overlay whose links are written in the experiment file, for small examples and for routing or
workloads on a known overlay.

Each peer measures the delay to its neighbours, and announces each neighbour once its delay is
known. The links do not change; failures are detected by the layers above.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from agents.protocol import (
    Announce,
    Delay,
    Effects,
    MeasureDelay,
    Neighbours,
    PeerId,
    Protocol,
    Record,
    Surroundings,
)

Link = tuple[str, str]
_NAMES = "names of hosts by address"  # shared by the agents of a process


class GivenOverlay(Protocol):
    """An overlay whose links are written in the experiment file."""

    class Settings(Struct, frozen=True, kw_only=True):
        """The links."""

        links: Annotated[str, Meta(description="pairs of hosts, as in 'h1-h2 h2-h3'")] = ""

        def __post_init__(self) -> None:
            """Refuse links that cannot be read."""
            _neighbours(self.links)

    settings: Settings
    offers = frozenset({"neighbours", "mutual neighbours"})
    names_hosts: ClassVar[bool] = True

    @classmethod
    def check_hosts(cls, settings: Settings, hosts: Collection[str]) -> None:
        """Raise if a link names an unknown host, or if the links do not connect all hosts."""
        neighbours = _neighbours(settings.links)
        for name in neighbours:
            if name not in hosts:
                raise ValueError(
                    f"links: expected hosts of this network, as in {next(iter(hosts))!r}; "
                    f"found {name!r}"
                )
        first, *_ = hosts
        reached = _reach(first, neighbours)
        if cut_off := [host for host in hosts if host not in reached]:
            raise ValueError(
                f"links: expected all {len(hosts)} hosts to be connected, found no path from "
                f"{first} to {cut_off[0]}; add a link"
            )

    def __init__(self, given: Surroundings) -> None:
        super().__init__(given)
        if _NAMES not in given.shared:
            given.shared[_NAMES] = {address: name for name, address in given.hosts.items()}
        mine = _neighbours(self.settings.links)[given.shared[_NAMES][self.me]]
        self._neighbours = [given.hosts[name] for name in mine]
        self._delays_us: dict[PeerId, int] = {}

    def on_start(self, now_us: int) -> Effects:
        """Measure the delays to the neighbours."""
        return [MeasureDelay(peer) for peer in self._neighbours]

    def on_delay(self, now_us: int, delay: Delay) -> Effects:
        """Announce a neighbour; one that has not answered may not have started yet."""
        peer = delay.target
        if not delay.samples_us:
            return [MeasureDelay(peer)]
        self._delays_us[peer] = delay.min_us // 2
        figures = {"peer": peer, "delay_us": self._delays_us[peer], "is_distant": False}
        return [Record("neighbour_added", figures), Announce(Neighbours(dict(self._delays_us)))]


def parse_links(text: str) -> tuple[Link, ...]:
    """The pairs of names in a text such as `h1-h2 h2-h3`."""
    links: dict[Link, None] = {}
    for word in text.split():
        a, _, b = word.partition("-")
        if not a or not b or "-" in b:
            raise ValueError(f"links: expected pairs of hosts, as in 'h1-h2 h2-h3'; found {word!r}")
        if a == b:
            raise ValueError(f"links: expected two different hosts in each, found {word!r}")
        if (a, b) in links or (b, a) in links:
            raise ValueError(f"links: expected each link once, found {word!r} again")
        links[a, b] = None
    if not links:
        raise ValueError("links: expected pairs of hosts, as in 'h1-h2 h2-h3'; found none")
    return tuple(links)


@lru_cache(maxsize=4)
def _neighbours(text: str) -> Mapping[str, list[str]]:
    """The neighbours of each host; agents of a process share the result for a text."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for a, b in parse_links(text):
        found[a].append(b)
        found[b].append(a)
    return found


def _reach(first: str, neighbours: Mapping[str, list[str]]) -> set[str]:
    reached, frontier = {first}, [first]
    while frontier:
        for other in neighbours.get(frontier.pop(), ()):
            if other not in reached:
                reached.add(other)
                frontier.append(other)
    return reached
