"""A draft of an underlay: the content of a file before nodes are renamed.

Files of other tools may have content that an underlay cannot have: links from a router to itself,
several links between the same two, disconnected networks. A draft accepts all of that, removes it
in `finish`, and adds notes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from topologies.errors import TopologyError
from topologies.importers.source_file import SourceFile
from topologies.underlay import Channel, Link, Role, Router, Underlay


@dataclass(frozen=True, slots=True)
class DraftRouter:
    """A router of a file; the label is its name there."""

    label: str
    x: float = 0.0
    y: float = 0.0
    role: Role = "router"


@dataclass
class Draft:
    """Routers by the file's ids, delays by pairs of ids, and notes on what was changed."""

    source: SourceFile
    format: str
    notes: list[str] = field(default_factory=list)
    _routers: dict[str, DraftRouter] = field(default_factory=dict)
    _delays_us: dict[tuple[str, str], int] = field(default_factory=dict)
    _self_loops: int = 0
    _parallel_links: int = 0

    def add_router(self, line: int, key: str, router: DraftRouter) -> None:
        """Add a router that the file declares on a line."""
        if key in self._routers:
            raise self.source.error(
                line, "every node id once", f"{key!r} again", "give each node an id of its own"
            )
        self._routers[key] = router

    def mention_router(self, key: str) -> None:
        """Add a router that the file names only at the ends of links."""
        self._routers.setdefault(key, DraftRouter(key))

    def add_link(self, line: int, a: str, b: str, delay_us: int) -> None:
        """Add a link with the same delay in both directions."""
        if self._is_between_two(line, a, b):
            is_parallel = (a, b) in self._delays_us or (b, a) in self._delays_us
            self._parallel_links += is_parallel
            self._keep_shortest(a, b, delay_us)
            self._keep_shortest(b, a, delay_us)

    def add_direction(self, line: int, a: str, b: str, delay_us: int) -> None:
        """Add one direction of a link; the other one gets the same delay if the file omits it."""
        if self._is_between_two(line, a, b):
            self._parallel_links += (a, b) in self._delays_us
            self._keep_shortest(a, b, delay_us)

    def finish(self) -> Underlay:
        """The underlay: the largest component of the draft, with routers named r1, r2, …"""
        if not self._routers:
            raise self.source.error(
                self.source.last_line, "at least one node", "none", "add nodes and links"
            )
        self._note_dropped_links()
        names = self._names_of_largest_piece()
        links = tuple(self._links(names))
        routers = tuple(_router(name, self._routers[key]) for key, name in names.items())
        try:
            return Underlay(routers, links, source=self.origin())
        except TopologyError as error:
            raise TopologyError(f"{self.source.path}: {error}") from error

    def origin(self) -> dict[str, object]:
        """The origin of the underlay, for its `source`."""
        return {"format": self.format, "file": self.source.path.name, "notes": self.notes}

    def _is_between_two(self, line: int, a: str, b: str) -> bool:
        for end in (a, b):
            if end not in self._routers:
                raise self.source.error(
                    line, "a link between known nodes", repr(end), "declare the node, or correct it"
                )
        self._self_loops += a == b
        return a != b

    def _keep_shortest(self, a: str, b: str, delay_us: int) -> None:
        self._delays_us[a, b] = min(delay_us, self._delays_us.get((a, b), delay_us))

    def _note_dropped_links(self) -> None:
        if self._self_loops:
            self.notes.append(f"left out {self._self_loops} links from a router to itself")
        if self._parallel_links:
            self.notes.append(
                f"left out {self._parallel_links} parallel links: between two routers "
                f"the link with the shortest delay stays"
            )

    def _names_of_largest_piece(self) -> dict[str, str]:
        """The new name of each router of the largest component, in the order of the file."""
        pieces = self._pieces()
        largest = max(pieces, key=len)
        if len(pieces) > 1:
            self.notes.append(
                f"the file has {len(pieces)} pieces: kept the largest with {len(largest)} routers, "
                f"left out {len(self._routers) - len(largest)} routers in the others"
            )
        kept = [key for key in self._routers if key in largest]
        return {key: f"r{number}" for number, key in enumerate(kept, start=1)}

    def _pieces(self) -> list[set[str]]:
        neighbours: dict[str, list[str]] = {key: [] for key in self._routers}
        for a, b in self._delays_us:
            neighbours[a].append(b)
            neighbours[b].append(a)
        pieces: list[set[str]] = []
        seen: set[str] = set()
        for key in self._routers:
            if key not in seen:
                pieces.append(_reached(key, neighbours))
                seen |= pieces[-1]
        return pieces

    def _links(self, names: dict[str, str]) -> Iterator[Link]:
        done: set[tuple[str, str]] = set()
        for (a, b), delay_us in self._delays_us.items():
            if (b, a) in done or a not in names:
                continue
            done.add((a, b))
            back_us = self._delays_us.get((b, a), delay_us)
            yield Link(names[a], names[b], Channel(delay_us), Channel(back_us))


def _reached(start: str, neighbours: dict[str, list[str]]) -> set[str]:
    reached = {start}
    frontier = [start]
    while frontier:
        new = {n for key in frontier for n in neighbours[key]} - reached
        reached |= new
        frontier = list(new)
    return reached


def _router(name: str, draft: DraftRouter) -> Router:
    return Router(name, draft.x, draft.y, draft.role, label=draft.label)
