"""GML files (Himsolt 1996): keys with a number, a text or a bracketed list of more keys.

It is not read by a library because errors name their line, also those that are found
after parsing: an unknown node, a delay without a unit.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape

from topologies.importers.attributed_graph import (
    AttributedGraph,
    GraphEdge,
    GraphNode,
    Text,
    build_underlay,
)
from topologies.importers.options import ImportOptions
from topologies.importers.source_file import SourceFile
from topologies.underlay import Underlay

_TOKEN = re.compile(
    r'(?P<text>"[^"]*")|(?P<open>\[)|(?P<close>\])|(?P<word>[^\s\[\]"#]+)'
    r"|(?P<skip>[ \t\r\n]+|#[^\n]*)"
)
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class _Entry:
    """A key with its value, and the line of the key."""

    key: str
    value: str | list["_Entry"]
    line: int


def read_gml(source: SourceFile, options: ImportOptions) -> Underlay:
    """The underlay in a GML file."""
    graphs = [entry for entry in _parse(source) if entry.key == "graph"]
    if len(graphs) != 1 or isinstance(graphs[0].value, str):
        line = graphs[-1].line if graphs else source.last_line
        raise source.error(line, "one `graph [ ... ]`", len(graphs) or "none", "keep one graph")
    return build_underlay(source, "gml", _graph(source, graphs[0].value), options)


def _parse(source: SourceFile) -> list[_Entry]:
    """The entries at the top level of the file, with their content."""
    top: list[_Entry] = []
    # A stack instead of recursion, because brackets may be nested deeply.
    open_lists = [top]
    open_lines: list[int] = []
    tokens = _tokens(source)
    for token in tokens:
        if token.kind == "close" and open_lines:
            open_lists.pop()
            open_lines.pop()
            continue
        if token.kind != "word" or not _KEY.fullmatch(token.text):
            raise source.error(token.line, "a key, or ] for an open [", repr(token.text))
        value = next(tokens, None)
        if value is None or value.kind == "close":
            found = repr(value.text) if value else "the end of the file"
            raise source.error(token.line, f"a value for {token.text}", found)
        if value.kind == "open":
            inner: list[_Entry] = []
            open_lists[-1].append(_Entry(token.text, inner, token.line))
            open_lists.append(inner)
            open_lines.append(value.line)
        else:
            open_lists[-1].append(_Entry(token.text, value.text, token.line))
    if open_lines:
        raise source.error(open_lines[-1], "a ] for this [", "the end of the file", "close it")
    return top


def _tokens(source: SourceFile) -> Iterator[_Token]:
    line, position = 1, 0
    while position < len(source.text):
        match = _TOKEN.match(source.text, position)
        if match is None:
            found = source.text[position:].split("\n", 1)[0]
            raise source.error(line, 'a closing "', repr(found), "close the text")
        text = match[0]
        if match.lastgroup == "text":
            yield _Token("text", unescape(text[1:-1]), line)
        elif match.lastgroup != "skip":
            yield _Token(str(match.lastgroup), text, line)
        line += text.count("\n")
        position = match.end()


def _graph(source: SourceFile, entries: list[_Entry]) -> AttributedGraph:
    is_directed = any(entry.key == "directed" and entry.value == "1" for entry in entries)
    nodes: list[GraphNode] = []
    edges: list[GraphEdge] = []
    for entry in entries:
        if entry.key in ("node", "edge") and isinstance(entry.value, str):
            raise source.error(entry.line, f"`{entry.key} [ ... ]`", repr(entry.value))
        if entry.key == "node":
            attributes = _attributes(entry)
            key = _required(source, entry, attributes, "id")
            nodes.append(GraphNode(key, entry.line, attributes))
        elif entry.key == "edge":
            attributes = _attributes(entry)
            a, b = (_required(source, entry, attributes, key) for key in ("source", "target"))
            edges.append(GraphEdge(a, b, entry.line, attributes))
    return AttributedGraph(is_directed, nodes, edges)


def _attributes(entry: _Entry) -> dict[str, Text]:
    """The texts of a node or an edge, including the coordinates in `graphics [ ... ]`."""
    attributes: dict[str, Text] = {}
    for inner in entry.value:
        if isinstance(inner, str):
            continue
        if isinstance(inner.value, str):
            attributes[inner.key] = Text(inner.value, inner.line)
        elif inner.key == "graphics":
            attributes = _attributes(inner) | attributes
    return attributes


def _required(source: SourceFile, entry: _Entry, attributes: dict[str, Text], key: str) -> str:
    if key not in attributes:
        found = ", ".join(attributes) or "nothing"
        raise source.error(entry.line, f"{key} in this {entry.key}", found, f"add its {key}")
    return attributes[key].value
