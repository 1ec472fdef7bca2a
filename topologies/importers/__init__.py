"""Importers of topology files of other tools."""

from topologies.importers.formats import FORMATS, import_topology, load_topology

__all__ = ["FORMATS", "import_topology", "load_topology"]
