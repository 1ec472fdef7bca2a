"""The settings of an underlay in an experiment, and the interface of a kind of underlay."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct

from topologies.underlay import Underlay


class TopologySettings(Struct, frozen=True, kw_only=True):
    """Settings of all kinds; each may have more."""

    kind: Annotated[str, Meta(description="the kind of underlay")] = "waxman"
    routers: Annotated[int, Meta(description="number of routers of a generated underlay")] = 20
    hosts: Annotated[
        int, Meta(ge=2, description="number of hosts attached to an underlay that has none")
    ] = 12
    anonymous_routers: Annotated[
        float, Meta(ge=0, le=1, description="share of routers that never answer probes")
    ] = 0.0
    asymmetry: Annotated[
        float,
        Meta(ge=0, lt=1, description="share by which the delays of a link's directions differ"),
    ] = 0.0
    loss_percent: Annotated[
        float, Meta(ge=0, le=100, description="packets lost on each link, in both directions")
    ] = 0.0
    file: Annotated[
        str, Meta(description="kind `file` only: path of the file, relative to the experiment file")
    ] = ""


class Topology(ABC):
    """A kind of underlay; subclasses are listed in `topologies.kinds`."""

    Settings: ClassVar[type[TopologySettings]] = TopologySettings

    @classmethod
    @abstractmethod
    def make(cls, settings: Any, seed: int, folder: Path) -> Underlay:
        """The underlay, with or without hosts; paths are relative to the folder."""
