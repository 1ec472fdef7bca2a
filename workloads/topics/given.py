"""Topic-based workloads written in the experiment file, for small examples.

Lines, or parts separated by semicolons, begin with the name of a host:

    h2: 1 4 7                   topics 1, 4 and 7 during the whole run
    h3: 4 from 10 until 25.5    topic 4 from the 10th second on, until 25.5 s
    h1: 4 at 20 20.5 21         a publication to topic 4 at each of these seconds
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta, Struct

from workloads.share import NEVER_US
from workloads.workload import Interests, Publications, Workload, WorkloadKind, match_equal

MOST_TOPIC = 2**32 - 1

_BETWEEN = re.compile(r"[;\n]")
_TIME = r"\d+(?:\.\d+)?"
_SUBSCRIPTION = re.compile(rf"(\d+(?:\s+\d+)*)(?:\s+from\s+({_TIME}))?(?:\s+until\s+({_TIME}))?")
_PUBLICATION = re.compile(rf"(\d+)\s+at\s+({_TIME}(?:\s+{_TIME})*)")
_SUBSCRIPTIONS_FORM = "lines such as 'h2: 1 4 7' or 'h3: 4 from 10 until 25.5'"
_PUBLICATIONS_FORM = "lines such as 'h1: 4 at 20 20.5 21'"


class GivenInterest(NamedTuple):
    """A host that subscribes to a topic for a time."""

    host: str
    topic: int
    from_us: int
    until_us: int


class GivenPublication(NamedTuple):
    """A host that publishes to a topic at a time."""

    time_us: int
    host: str
    topic: int


class TopicsGivenSettings(Struct, frozen=True, kw_only=True):
    """Interests and publications as text."""

    subscriptions: Annotated[str, Meta(description=_SUBSCRIPTIONS_FORM)] = ""
    publications: Annotated[str, Meta(description=f"{_PUBLICATIONS_FORM}, in seconds")] = ""
    payload_bytes: Annotated[
        int, Meta(ge=0, le=1_414, description="bytes that an event carries beside its topic")
    ] = 0

    def __post_init__(self) -> None:
        """Raise ValueError if a line cannot be read."""
        parse_subscriptions(self.subscriptions)
        parse_publications(self.publications)


class TopicsGiven(WorkloadKind):
    """Interests and publications as written in the experiment file; the seed has no effect."""

    Settings = TopicsGivenSettings

    @classmethod
    def check_hosts(cls, settings: TopicsGivenSettings, hosts: Collection[str]) -> None:
        """Raise ValueError if a subscriber or publisher is not a host of the network."""
        named = {
            "subscriptions": [one.host for one in parse_subscriptions(settings.subscriptions)],
            "publications": [one.host for one in parse_publications(settings.publications)],
        }
        for key, names in named.items():
            if wrong := [name for name in names if name not in hosts]:
                raise ValueError(
                    f"{key}: expected hosts of this network, as in {next(iter(hosts))!r}; "
                    f"found {wrong[0]!r}"
                )

    @classmethod
    def draw(cls, settings: TopicsGivenSettings, seed: int, hosts: Sequence[str]) -> Workload:
        """The workload of some hosts."""
        del seed
        number = {host: place for place, host in enumerate(hosts)}
        wanted = parse_subscriptions(settings.subscriptions)
        published = parse_publications(settings.publications)
        interests = Interests(
            *_columns(4, [(number[o.host], o.topic, o.from_us, o.until_us) for o in wanted])
        )
        publications = Publications(
            *_columns(3, [(number[one.host], one.topic, one.time_us) for one in published])
        )
        return Workload(
            interests,
            publications,
            match_equal(interests, publications),
            payload_bytes=settings.payload_bytes,
            interest_key="topic",
            event_key="topic",
        )


def parse_subscriptions(text: str) -> list[GivenInterest]:
    """The interests in a text; raises ValueError with the line that cannot be read."""
    found: list[GivenInterest] = []
    for line, host, match in _parse("subscriptions", text, _SUBSCRIPTION, _SUBSCRIPTIONS_FORM):
        from_us = _to_us(match[2] or "0")
        until_us = _to_us(match[3]) if match[3] else NEVER_US
        if until_us <= from_us:
            raise ValueError(f"subscriptions: expected an end after the start, found {line!r}")
        for topic in match[1].split():
            one = GivenInterest(host, _read_topic("subscriptions", topic), from_us, until_us)
            _check_apart(line, one, found)
            found.append(one)
    if not found:
        raise ValueError(f"subscriptions: expected {_SUBSCRIPTIONS_FORM}; found none")
    return found


def parse_publications(text: str) -> list[GivenPublication]:
    """The publications in a text, in the order of their times."""
    found = [
        GivenPublication(_to_us(time), host, _read_topic("publications", match[1]))
        for _, host, match in _parse("publications", text, _PUBLICATION, _PUBLICATIONS_FORM)
        for time in match[2].split()
    ]
    return sorted(found, key=lambda one: one.time_us)


def _parse(
    key: str, text: str, pattern: re.Pattern[str], form: str
) -> Iterator[tuple[str, str, re.Match[str]]]:
    """Every line with its host and the match of the pattern in the rest."""
    for line in filter(None, map(str.strip, _BETWEEN.split(text))):
        host, _, rest = (part.strip() for part in line.partition(":"))
        match = pattern.fullmatch(rest)
        if not host or match is None:
            raise ValueError(f"{key}: expected {form}; found {line!r}")
        yield line, host, match


def _check_apart(line: str, one: GivenInterest, others: Sequence[GivenInterest]) -> None:
    """Raise if two interests of a host in a topic overlap in time."""
    for other in others:
        is_same = (other.host, other.topic) == (one.host, one.topic)
        if is_same and other.from_us < one.until_us and one.from_us < other.until_us:
            raise ValueError(
                f"subscriptions: expected each topic of a host once at a time, found topic "
                f"{one.topic} of {one.host} again in {line!r}"
            )


def _read_topic(key: str, text: str) -> int:
    if int(text) > MOST_TOPIC:
        raise ValueError(f"{key}: expected topics from 0 to {MOST_TOPIC}, found {text}")
    return int(text)


def _to_us(seconds: str) -> int:
    return round(float(seconds) * 1e6)


def _columns(count: int, rows: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
    return list(np.array(rows, dtype=np.int64).reshape(-1, count).T)
