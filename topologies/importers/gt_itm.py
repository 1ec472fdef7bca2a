"""GT-ITM's `.alt` files, as its converter `sgb2alt` writes them.

    GRAPH (#nodes #edges id uu vv ww xx yy zz):
    4 6 transtub(...) ...
    VERTICES (index name u v w x y z):
    0 T:0.0 53 12
    1 S:0.0/0.0 52 25
    EDGES (from-node to-node length a b):
    0 1 12 3

The second number of the header counts each edge in both directions. GT-ITM may make some of
the extra links between stubs, the fourth number after `transtub`, from a node to itself: the header
counts those, and the converter leaves them out. `T:d.n` is node n of
transit domain d; `S:d.t/s.n` is node n of stub domain s on transit node t of domain d.
Other kinds of graphs (`geo`, `hier`) have other names, and their nodes are plain routers.
"""

import re
from dataclasses import dataclass

from topologies.importers.draft import Draft, DraftRouter
from topologies.importers.options import ImportOptions
from topologies.importers.source_file import SourceFile
from topologies.underlay import Role, Underlay

_COUNTS = re.compile(r"([0-9]{1,9})\s+([0-9]{1,9})\s+([A-Za-z_]\w*)")
_EXTRA_STUB_LINKS = re.compile(r"transtub\([^,]*,[^,]*,[^,]*,\s*([0-9]{1,9})\s*[,)]")
_TRANSIT = re.compile(r"T:\d+\.\d+")
_STUB = re.compile(r"S:\d+\.\d+/\d+\.\d+")


@dataclass(frozen=True, slots=True)
class _Header:
    """The numbers of the header; it may count self-loops, which the file does not list."""

    nodes: int
    arcs: int
    kind: str
    most_self_loops: int


def read_gt_itm(source: SourceFile, options: ImportOptions) -> Underlay:
    """The underlay in an `.alt` file; delays are its edge lengths, scaled."""
    draft = Draft(source, "gt-itm")
    vertices = _section(source, "VERTICES")
    edges = _section(source, "EDGES")
    header = _header(source, vertices)
    _check_count(source, vertices, "vertices", header.nodes, edges - vertices - 1)
    _check_edges(draft, edges, header)
    for line, text in source.lines[vertices + 1 : edges]:
        _add_vertex(draft, line, text.split(), header.kind)
    for line, columns in source.rows(edges + 1):
        _add_edge(draft, line, columns, options.delay_us_per_unit)
    draft.notes.append(f"one unit of length is {options.delay_us_per_unit:g} us")
    return draft.finish()


def _section(source: SourceFile, title: str) -> int:
    """The index in `lines` of a section's title."""
    for position, (_, text) in enumerate(source.lines):
        if text.startswith(title):
            return position
    raise source.error(
        source.last_line,
        f"a line that starts with {title}",
        "the end of the file",
        "give a file as sgb2alt writes it",
    )


def _header(source: SourceFile, vertices: int) -> _Header:
    for line, text in source.lines[:vertices]:
        if text.startswith("GRAPH"):
            continue
        if match := _COUNTS.match(text):
            extra = _EXTRA_STUB_LINKS.search(text)
            most_self_loops = int(extra[1]) if extra else 0
            return _Header(int(match[1]), int(match[2]), match[3], most_self_loops)
        raise source.error(line, "`NODES EDGES KIND(...)`", repr(text), "correct the header")
    line = source.lines[vertices][0]
    raise source.error(line, "`NODES EDGES KIND(...)` before it", "no such line", "add the header")


def _check_edges(draft: Draft, title: int, header: _Header) -> None:
    """Raise if edges are missing; missing self-loops are only noted."""
    found = len(draft.source.lines) - title - 1
    missing = header.arcs / 2 - found
    if missing in range(1, header.most_self_loops + 1):
        draft.notes.append(
            f"the header counts {missing:g} edges more than the file has: links from a router to "
            f"itself, which GT-ITM makes among extra stub links and its converter leaves out"
        )
        return
    _check_count(draft.source, title, "edges", header.arcs / 2, found)


def _check_count(source: SourceFile, title: int, what: str, promised: float, found: int) -> None:
    if promised != found:
        line = source.lines[title][0]
        raise source.error(
            line,
            f"{promised:g} {what} as the header says",
            found,
            "correct the header (it counts each edge twice) or restore the missing lines",
        )


def _add_vertex(draft: Draft, line: int, columns: list[str], kind: str) -> None:
    source = draft.source
    if len(columns) < 4:
        raise source.error(line, "`index name x y`", repr(" ".join(columns)))
    key = str(source.whole_number(line, "the index", columns[0]))
    x, y = (source.number(line, what, columns[i]) for what, i in (("x", 2), ("y", 3)))
    role = _role(source, line, columns[1], kind)
    draft.add_router(line, key, DraftRouter(columns[1], x, y, role))


def _role(source: SourceFile, line: int, name: str, kind: str) -> Role:
    if kind != "transtub":
        return "router"
    if _TRANSIT.fullmatch(name):
        return "transit"
    if _STUB.fullmatch(name):
        return "stub"
    raise source.error(line, "a name such as T:0.1 or S:0.1/2.3", repr(name))


def _add_edge(draft: Draft, line: int, columns: list[str], us_per_unit: float) -> None:
    source = draft.source
    if len(columns) < 3:
        raise source.error(line, "`from to length a`", repr(" ".join(columns)))
    a, b = (str(source.whole_number(line, "a node index", text)) for text in columns[:2])
    draft.add_link(line, a, b, source.delay_us(line, "the length", columns[2], us_per_unit))
