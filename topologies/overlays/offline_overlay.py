"""A kind of overlay that can be computed offline; subclasses are listed in `kinds`."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import msgspec
import numpy as np

from topologies.overlays.interests import Interests
from topologies.overlays.overlay import Overlay


class NoSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a kind that has none."""


class OfflineOverlay(ABC):
    """A kind of overlay."""

    Settings: ClassVar[type[msgspec.Struct]] = NoSettings

    @classmethod
    @abstractmethod
    def make(cls, interests: Interests, settings: Any, rng: np.random.Generator) -> Overlay:
        """The overlay of nodes with these interests."""
