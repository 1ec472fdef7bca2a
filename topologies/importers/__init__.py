"""Importers: topologies in the files of other tools become underlays."""

from topologies.importers.formats import FORMATS, import_topology, load_topology

__all__ = ["FORMATS", "import_topology", "load_topology"]
