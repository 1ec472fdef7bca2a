"""A workload as data: interests, publications and churn.

Contents of interests and publications are whole numbers that only the kind of workload interprets:
a box and a point, or a topic. Its matching rule decides which interest matches which event.
Everything else, except the agents' forwarders, uses ids: interests are counted from 0, events from
1.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from workloads.churn import ChurnStep
from workloads.share import NEVER_US, OwnInterest, OwnPublication, Share

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Interests:
    """Interests of peers, a row for each interest; peers are counted from 0."""

    peer: Numbers
    content: Numbers
    from_us: Numbers
    until_us: Numbers

    def __len__(self) -> int:
        """The number of interests."""
        return len(self.peer)


@dataclass(frozen=True, slots=True, eq=False)
class Publications:
    """Publications of peers, a row for each event in the order of their times."""

    peer: Numbers
    content: Numbers
    time_us: Numbers

    def __len__(self) -> int:
        """The number of events."""
        return len(self.peer)


class Matches(NamedTuple):
    """Pairs of an event and an interest that it matches, by content only."""

    event_id: Numbers
    interest: Numbers


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """The complete workload of a run.

    Records of agents have the content of an interest under `interest_key`, and that of an event
    under `event_key`.
    """

    interests: Interests
    publications: Publications
    matches: Matches
    churn: tuple[ChurnStep, ...] = ()
    payload_bytes: int = 0
    interest_key: str = "content"
    event_key: str = "content"

    def shares(self, peers: int) -> list[Share]:
        """The part of each peer."""
        first_us = int(self.publications.time_us.min()) if len(self.publications) else 0
        interests, publications = self._own_interests(peers), self._own_publications(peers)
        return [
            Share(
                tuple(interests[peer]),
                tuple(publications[peer]),
                len(self.publications),
                first_us,
                self.payload_bytes,
                self.interest_key,
                self.event_key,
            )
            for peer in range(peers)
        ]

    def write(self, folder: Path, hosts: Sequence[str]) -> None:
        """Write `interests`, `publications` and `matches` as Parquet; `hosts` names the peers."""
        folder.mkdir(parents=True, exist_ok=True)
        names = pa.array(hosts, pa.string())
        wanted, published = self.interests, self.publications
        tables = {
            "interests": {
                "interest": np.arange(len(wanted)),
                "host": names.take(pa.array(wanted.peer)),
                "content": wanted.content,
                "from_us": wanted.from_us,
                "until_us": pa.array(wanted.until_us, mask=wanted.until_us == NEVER_US),
            },
            "publications": {
                "event_id": np.arange(1, len(published) + 1),
                "host": names.take(pa.array(published.peer)),
                "content": published.content,
                "time_us": published.time_us,
            },
            "matches": self.matches._asdict(),
        }
        for name, columns in tables.items():
            file, form = folder / f"{name}.parquet", {"write_page_checksum": True}
            pq.write_table(pa.table(columns), file, compression="zstd", **form)

    def _own_interests(self, peers: int) -> list[list[OwnInterest]]:
        found: list[list[OwnInterest]] = [[] for _ in range(peers)]
        wanted = self.interests
        columns = (wanted.peer, wanted.content, wanted.from_us, wanted.until_us)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for number, (peer, content, from_us, until_us) in enumerate(rows):
            found[peer].append(OwnInterest(number, content, from_us, until_us))
        return found

    def _own_publications(self, peers: int) -> list[list[OwnPublication]]:
        event_id, interest = self.matches
        is_own = self.publications.peer[event_id - 1] == self.interests.peer[interest]
        matched: dict[int, tuple[int, ...]] = {}
        for event, own in zip(event_id[is_own].tolist(), interest[is_own].tolist(), strict=True):
            matched[event] = (*matched.get(event, ()), own)
        found: list[list[OwnPublication]] = [[] for _ in range(peers)]
        made = self.publications
        rows = zip(*(c.tolist() for c in (made.peer, made.content, made.time_us)), strict=True)
        for event, (peer, content, time_us) in enumerate(rows, start=1):
            own_interests = matched.get(event, ())
            found[peer].append(OwnPublication(event, content, time_us, own_interests))
        return found


class WorkloadKind(ABC):
    """A kind of workload: its settings, and how it is drawn.

    `pubsub` is the kind of publish/subscribe of a run with this workload if none is set.
    `matching` is the rule by which interests match events: equal topics, or points in boxes.
    `data_files` are the settings that name files, each with what is expected in the file.
    """

    Settings: ClassVar[type[msgspec.Struct]]
    pubsub: ClassVar[str | None] = None
    matching: ClassVar[Literal["topics", "boxes"]] = "topics"
    data_files: ClassVar[Mapping[str, str]] = {}

    @classmethod  # noqa: B027
    def check_hosts(cls, settings: Any, hosts: Collection[str]) -> None:
        """Raise ValueError if settings that name hosts make no sense with those of the network."""

    @classmethod
    def draw_at(
        cls,
        settings: Any,
        seed: int,
        hosts: Sequence[str],
        places: Sequence[tuple[float, float]],  # noqa: ARG003
    ) -> Workload:
        """The workload of hosts at places in the plane; most kinds do not use places."""
        return cls.draw(settings, seed, hosts)

    @classmethod
    @abstractmethod
    def draw(cls, settings: Any, seed: int, hosts: Sequence[str]) -> Workload:
        """The workload of some hosts; the same seed gives the same one."""


def lasting_interests(peer: Sequence[int] | Numbers, content: Sequence[int] | Numbers) -> Interests:
    """Interests that peers have from the start to the end."""
    peers = np.asarray(peer, dtype=np.int64)
    return Interests(
        peers,
        np.asarray(content, dtype=np.int64),
        np.zeros(len(peers), dtype=np.int64),
        np.full(len(peers), NEVER_US),
    )


def match_equal(interests: Interests, publications: Publications) -> Matches:
    """The matching rule of topics: an interest matches the events of the same content."""
    order = np.argsort(interests.content, kind="stable")
    wanted = interests.content[order]
    first = np.searchsorted(wanted, publications.content, side="left")
    counts = np.searchsorted(wanted, publications.content, side="right") - first
    event_id = np.repeat(np.arange(1, len(publications) + 1), counts)
    ends = np.cumsum(counts)
    within = np.arange(len(event_id)) - np.repeat(ends - counts, counts)
    return Matches(event_id, order[np.repeat(first, counts) + within])
