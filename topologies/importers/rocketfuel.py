"""Rocketfuel's maps of Internet providers (Spring et al., SIGCOMM 2002).

A `.cch` file has a line for each router and no delays: its number, its place after `@`, how
many neighbours it has in brackets, and after `->` their numbers, in `<>` when they belong to
the provider and in `{}` with a minus sign when they do not. Lines that start with a minus
sign describe routers outside the provider. Those are left out.

An `.intra` file has lines `from to value` between named routers: latencies in milliseconds,
or inferred weights, which have no unit.
"""

import re

from topologies.importers.draft import Draft, DraftRouter
from topologies.importers.options import ImportOptions
from topologies.importers.source_file import SourceFile
from topologies.underlay import Underlay

# The median of Rocketfuel's own latencies for Sprint (AS 1239).
DEFAULT_LINK_DELAY_US = 1000

_EXTERNAL = re.compile(r"-[0-9]+\s")
_ROUTER = re.compile(
    r"(?P<uid>[0-9]{1,18})\s+@(?P<location>\S+)\s+(?:\+\s*)?(?:bb\s*)?\([0-9]+\)\s*"
    r"(?:&[0-9]+\s*)?->(?P<neighbours>[^=]*)(?:=(?P<name>\S+)\s+r[0-9]+)?"
)
_NEIGHBOUR = re.compile(r"<([0-9]{1,18})>|\{-[0-9]+\}")
_US_PER_MS = 1000


def read_cch(source: SourceFile, options: ImportOptions) -> Underlay:
    """The routers and links of a `.cch` file, every link with the default delay."""
    draft = Draft(source, "rocketfuel-cch")
    neighbours: list[tuple[int, str, list[str]]] = []
    external = 0
    for line, text in source.lines:
        if _EXTERNAL.match(text):
            external += 1
            continue
        uid, label, uids, externals = _read_router(source, line, text)
        draft.add_router(line, uid, DraftRouter(label))
        neighbours.append((line, uid, uids))
        external += externals
    delay_us = options.default_delay_us
    delay_us = DEFAULT_LINK_DELAY_US if delay_us is None else delay_us
    for line, uid, uids in neighbours:
        for neighbour in uids:
            draft.add_direction(line, uid, neighbour, delay_us)
    draft.notes.append(f"the file has no delays: every link gets the default of {delay_us} us")
    if external:
        draft.notes.append(f"left out {external} mentions of routers outside the provider")
    return draft.finish()


def read_latencies(source: SourceFile, _options: ImportOptions) -> Underlay:
    """The underlay in an `.intra` file of latencies in milliseconds."""
    return _read_intra(Draft(source, "rocketfuel-latencies"), "the latency in ms")


def read_weights(source: SourceFile, _options: ImportOptions) -> Underlay:
    """The underlay in an `.intra` file of weights, one unit of weight being a millisecond."""
    draft = Draft(source, "rocketfuel-weights")
    draft.notes.append("weights have no unit: they are taken as milliseconds")
    return _read_intra(draft, "the weight")


def _read_intra(draft: Draft, what: str) -> Underlay:
    source = draft.source
    for line, columns in source.rows():
        if len(columns) != 3:
            raise source.error(line, "`from to value`", repr(" ".join(columns)))
        a, b, value = columns
        draft.mention_router(a)
        draft.mention_router(b)
        draft.add_direction(line, a, b, source.delay_us(line, what, value, _US_PER_MS))
    return draft.finish()


def _read_router(source: SourceFile, line: int, text: str) -> tuple[str, str, list[str], int]:
    """A router's uid, its label, its neighbours in the provider, and how many are outside."""
    match = _ROUTER.fullmatch(text)
    if match is None:
        raise source.error(
            line, "`uid @location (n) -> <uid> ... {-euid} ... =name rN`", repr(text)
        )
    uids: list[str] = []
    external = 0
    for token in match["neighbours"].split():
        neighbour = _NEIGHBOUR.fullmatch(token)
        if neighbour is None:
            raise source.error(line, "neighbours as <uid> or {-euid}", repr(token))
        if neighbour[1] is None:
            external += 1
        else:
            uids.append(str(int(neighbour[1])))
    location = match["location"].replace("+", " ")
    return str(int(match["uid"])), f"{match['uid']} {location}", uids, external
