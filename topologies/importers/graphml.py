"""GraphML files (Brandes et al. 2002), read as a stream so that every error has its line."""

from typing import Any
from xml.parsers import expat

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


def read_graphml(source: SourceFile, options: ImportOptions) -> Underlay:
    """The underlay in a GraphML file."""
    reader = _Reader(source)
    reader.read()
    graph = AttributedGraph(reader.is_directed, reader.nodes, reader.edges)
    return build_underlay(source, "graphml", graph, options)


class _Reader:
    """The content read so far, and the current element."""

    def __init__(self, source: SourceFile) -> None:
        self.is_directed = False
        self.nodes: list[GraphNode] = []
        self.edges: list[GraphEdge] = []
        self._source = source
        self._seen_root = False
        self._key_names: dict[str, str] = {}
        self._defaults: dict[str, dict[str, Text]] = {"node": {}, "edge": {}}
        self._declared_key: tuple[str, str] | None = None
        self._owner: dict[str, Text] | None = None
        self._data_key: str | None = None
        self._data_line = 0
        self._text: list[str] | None = None
        self._parser = expat.ParserCreate(namespace_separator=" ")

    def read(self) -> None:
        """Read the whole file."""
        self._parser.StartElementHandler = self._on_start
        self._parser.EndElementHandler = self._on_end
        self._parser.CharacterDataHandler = self._on_text
        self._parser.EntityDeclHandler = self._on_entity
        try:
            self._parser.Parse(self._source.text, True)
        except expat.ExpatError as error:
            raise self._source.error(
                error.lineno, "well-formed XML", expat.ErrorString(error.code), "correct the XML"
            ) from error

    def _on_start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rsplit(" ", 1)[-1]
        if not self._seen_root and tag != "graphml":
            raise self._source.error(self._line, "<graphml>", f"<{tag}>", "give a GraphML file")
        self._seen_root = True
        if tag == "hyperedge":
            raise self._source.error(self._line, "edges with two ends", "<hyperedge>")
        if tag == "graph":
            self.is_directed = attributes.get("edgedefault") == "directed"
        elif tag == "key":
            self._declare_key(attributes)
        elif tag == "node":
            self._owner = dict(self._defaults["node"])
            key = self._required(tag, attributes, "id")
            self.nodes.append(GraphNode(key, self._line, self._owner))
        elif tag == "edge":
            self._owner = dict(self._defaults["edge"])
            a, b = (self._required(tag, attributes, key) for key in ("source", "target"))
            self.edges.append(GraphEdge(a, b, self._line, self._owner))
        elif tag == "data" and self._owner is not None:
            self._start_text(self._key_name(self._required(tag, attributes, "key")))
        elif tag == "default" and self._declared_key is not None:
            self._start_text(self._declared_key[1])

    def _on_end(self, name: str) -> None:
        tag = name.rsplit(" ", 1)[-1]
        if tag in ("node", "edge"):
            self._owner = None
        elif tag == "key":
            self._declared_key = None
        elif tag in ("data", "default") and self._text is not None and self._data_key is not None:
            text = Text("".join(self._text).strip(), self._data_line)
            for owner in self._owners_of_text(tag):
                owner[self._data_key] = text
            self._text = None

    def _on_text(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _on_entity(self, *_: Any) -> None:
        raise self._source.error(self._line, "no entity declarations", "one", "write the texts out")

    @property
    def _line(self) -> int:
        return self._parser.CurrentLineNumber

    def _declare_key(self, attributes: dict[str, str]) -> None:
        key = self._required("key", attributes, "id")
        self._key_names[key] = attributes.get("attr.name", key)
        self._declared_key = (attributes.get("for", "all"), self._key_names[key])

    def _key_name(self, key: str) -> str:
        if key not in self._key_names:
            raise self._source.error(
                self._line, "a key declared by <key>", repr(key), "declare it at the top"
            )
        return self._key_names[key]

    def _start_text(self, key: str) -> None:
        self._data_key, self._data_line, self._text = key, self._line, []

    def _owners_of_text(self, tag: str) -> list[dict[str, Text]]:
        """The attributes a text belongs to: those of one node or edge, or the defaults."""
        if tag == "data":
            return [] if self._owner is None else [self._owner]
        kind = self._declared_key[0] if self._declared_key else ""
        return [owner for name, owner in self._defaults.items() if kind in (name, "all")]

    def _required(self, tag: str, attributes: dict[str, str], name: str) -> str:
        if name not in attributes:
            found = ", ".join(attributes) or "no attributes"
            raise self._source.error(self._line, f"{name} in <{tag}>", found, f"add the {name}")
        return attributes[name]
