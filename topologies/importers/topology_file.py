"""The kind of topology `file`: an underlay from a file of the testbed or of another tool."""

from pathlib import Path
from typing import ClassVar

from topologies.importers.formats import load_topology
from topologies.topology import Topology, TopologySettings
from topologies.underlay import Underlay


class FileSettings(TopologySettings, frozen=True, kw_only=True):
    """The settings of an underlay from a file."""

    def __post_init__(self) -> None:
        """Raise an error if no file is named."""
        if not self.file:
            raise ValueError("file: expected a file for the kind `file`, found none")


class TopologyFile(Topology):
    """An underlay from a file in the testbed's format or one that `tdo topology import` reads."""

    Settings: ClassVar[type[TopologySettings]] = FileSettings

    @classmethod
    def make(cls, settings: FileSettings, seed: int, folder: Path) -> Underlay:
        """The underlay in the file."""
        del seed
        return load_topology(folder / settings.file)
