"""BRITE's `.brite` files.

    Topology: ( 2 Nodes, 1 Edges )
    Model (1 - RTWaxman): ...
    Nodes: ( 2 )
    0  322  729  1  1  -1  RT_NODE                         (id x y in out AS type)
    1  916  967  1  1  -1  RT_NODE
    Edges: ( 1 )
    0  1  0  640.1  2.135  10.0  -1  -1  E_RT  U           (id from to length delay bandwidth …)

The delay is in milliseconds, the time light takes in vacuum for the length in kilometres. Files of
autonomous systems have no delays: BRITE writes -1 there.
The bandwidth is not used: BRITE writes it for analysers, and a rate would make every link of
the default 10 Mbit/s an unintended bottleneck.
"""

import re

from topologies.importers.draft import Draft, DraftRouter
from topologies.importers.options import ImportOptions
from topologies.importers.source_file import SourceFile
from topologies.underlay import Underlay

_HEADER = re.compile(r"Topology:\s*\(\s*([0-9]{1,9})\s+Nodes,\s*([0-9]{1,9})\s+Edges\s*\)")
_NODES = re.compile(r"Nodes:\s*\(\s*([0-9]{1,9})\s*\)")
_EDGES = re.compile(r"Edges:\s*\(\s*([0-9]{1,9})\s*\)")
_EDGE_TYPE = re.compile(r"[A-Z_]{3,}")
_US_PER_MS = 1000
_NO_DELAY = -1


def read_brite(source: SourceFile, options: ImportOptions) -> Underlay:
    """The underlay in a `.brite` file."""
    draft = Draft(source, "brite")
    nodes, edges = _section(source, _NODES, "Nodes"), _section(source, _EDGES, "Edges")
    _check_header(source, nodes, edges)
    for line, text in source.lines[nodes + 1 : edges]:
        _add_node(draft, line, text.split())
    defaults = sum(
        _add_edge(draft, line, columns, options) for line, columns in source.rows(edges + 1)
    )
    if defaults:
        draft.notes.append(
            f"{defaults} links have no delay in the file and get the default of "
            f"{options.default_delay_us} us"
        )
    draft.notes.append("the bandwidth column is not used: links have no rate limit")
    return draft.finish()


def _section(source: SourceFile, title: re.Pattern[str], name: str) -> int:
    """The index in `lines` of a section's title."""
    for position, (line, text) in enumerate(source.lines):
        if title.match(text):
            return position
        if text.startswith(f"{name}:"):
            raise source.error(line, f"`{name}: ( COUNT )`", repr(text), "correct the title")
    raise source.error(
        source.last_line,
        f"a line `{name}: ( COUNT )`",
        "the end of the file",
        "give a file as BRITE writes it",
    )


def _check_header(source: SourceFile, nodes: int, edges: int) -> None:
    line, text = source.lines[0]
    header = _HEADER.match(text)
    if header is None:
        raise source.error(line, "`Topology: ( N Nodes, M Edges )`", repr(text))
    found = (("nodes", edges - nodes - 1), ("edges", len(source.lines) - edges - 1))
    titles = (_NODES.match(source.lines[nodes][1]), _EDGES.match(source.lines[edges][1]))
    for group, (what, count) in enumerate(found, start=1):
        _check_count(source, line, what, int(header[group]), count)
        title = titles[group - 1]
        if title is not None:
            title_line = source.lines[(nodes, edges)[group - 1]][0]
            _check_count(source, title_line, what, int(title[1]), count)


def _check_count(source: SourceFile, line: int, what: str, promised: int, found: int) -> None:
    if promised != found:
        raise source.error(
            line,
            f"{promised} {what} as this line says",
            found,
            "correct the count or restore the missing lines",
        )


def _add_node(draft: Draft, line: int, columns: list[str]) -> None:
    source = draft.source
    if len(columns) < 3:
        raise source.error(line, "`id x y in out AS type`", repr(" ".join(columns)))
    key = str(source.whole_number(line, "the node id", columns[0]))
    x, y = (source.number(line, what, columns[i]) for what, i in (("x", 1), ("y", 2)))
    draft.add_router(line, key, DraftRouter(key, x, y))


def _add_edge(draft: Draft, line: int, columns: list[str], options: ImportOptions) -> bool:
    """Add the link on a line; returns whether it has the default delay."""
    source = draft.source
    # The check of the type distinguishes a line without the U from one without another column.
    if len(columns) not in (9, 10) or not _EDGE_TYPE.fullmatch(columns[8]):
        raise source.error(
            line,
            "`id from to length delay bandwidth asFrom asTo type U`",
            repr(" ".join(columns)),
        )
    a, b = (str(source.whole_number(line, "a node id", text)) for text in columns[1:3])
    has_delay = source.number(line, "the delay in ms", columns[4]) != _NO_DELAY
    delay_us = _delay_us(source, line, columns[4], None if has_delay else options)
    is_directed = columns[9:] == ["D"]
    (draft.add_direction if is_directed else draft.add_link)(line, a, b, delay_us)
    return not has_delay


def _delay_us(source: SourceFile, line: int, text: str, options: ImportOptions | None) -> int:
    """The delay in a text, or that of the options if the text is BRITE's -1."""
    if options is None:
        return source.delay_us(line, "the delay in ms", text, _US_PER_MS)
    if options.default_delay_us is None:
        raise source.error(
            line,
            "a delay in ms",
            f"{text}, which means in BRITE that the link has no delay",
            "give one to all such links: tdo topology import --default-delay 5ms",
        )
    return options.default_delay_us
