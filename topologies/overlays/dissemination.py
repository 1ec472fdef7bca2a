"""The cost of publications on an overlay, and the interface of offline publish/subscribe kinds."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct

from topologies.overlays.arrays import Numbers
from topologies.overlays.overlay import Overlay


@dataclass(frozen=True, slots=True)
class Counts:
    """The cost of some publications; counts of several publications can be added.

    `messages` are all sends; `pure_forwarding` receptions by nodes that do not subscribe to the
    topic; `deliveries` pairs of a publication and a subscriber other than its publisher that it
    reached, `missed` those that it did not reach; `duplicates` second deliveries. `hops` is the sum
    of the path lengths of all deliveries, and `longest` the largest of them.
    """

    publications: int = 0
    messages: int = 0
    pure_forwarding: int = 0
    deliveries: int = 0
    duplicates: int = 0
    missed: int = 0
    hops: int = 0
    longest: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        """The counts of both."""
        return Counts(
            self.publications + other.publications,
            self.messages + other.messages,
            self.pure_forwarding + other.pure_forwarding,
            self.deliveries + other.deliveries,
            self.duplicates + other.duplicates,
            self.missed + other.missed,
            self.hops + other.hops,
            max(self.longest, other.longest),
        )

    def to_dict(self) -> dict[str, Any]:
        """The counts as plain data for JSON; without deliveries there are no path lengths."""
        has_any = self.deliveries > 0
        return {
            "publications": self.publications,
            "messages": self.messages,
            "pure_forwarding": self.pure_forwarding,
            "deliveries": self.deliveries,
            "duplicates": self.duplicates,
            "missed": self.missed,
            "path_length": {
                "mean": self.hops / self.deliveries if has_any else None,
                "max": self.longest if has_any else None,
            },
        }


class PubsubSettings(Struct, frozen=True, kw_only=True):
    """Settings of all kinds; each may have more."""

    min_subscribers: Annotated[
        int,
        Meta(ge=0, description="minimum number of subscribers of a topic with drawn publications"),
    ] = 0


class OfflinePubsub(ABC):
    """A kind of publish/subscribe; subclasses are listed in `kinds`."""

    Settings: ClassVar[type[PubsubSettings]] = PubsubSettings

    @classmethod
    @abstractmethod
    def disseminate(cls, overlay: Overlay, publications: Numbers, settings: Any) -> Counts:
        """The counts of publications, given as rows (publisher, topic)."""
