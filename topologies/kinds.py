"""The kinds of underlay that an experiment can name."""

from importlib import import_module

from topologies.topology import Topology

# Loaded when they are needed.
TOPOLOGIES: dict[str, str] = {
    "waxman": "topologies.waxman.Waxman",
    "waxman-hierarchical": "topologies.waxman_hierarchical.WaxmanHierarchical",
    "transit-stub": "topologies.transit_stub.TransitStub",
    "file": "topologies.importers.topology_file.TopologyFile",
}


def find_topology(kind: str) -> type[Topology]:
    """The underlay of this kind."""
    module, _, name = TOPOLOGIES[kind].rpartition(".")
    found: type[Topology] = getattr(import_module(module), name)
    return found
