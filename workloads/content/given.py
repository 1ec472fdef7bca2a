"""Content-based workloads written in the experiment file, for small examples.

Subscriptions have the form in which they are printed, each after the name of its host, one on a
line or separated by semicolons:

    h2: 3<=a0<=7
    h3: 0<=a0<=5 and 2<=a1<=4
    h4: everything

A host may have several, or none. Events are drawn from the seed, each value of each attribute
equally likely and independent of all others, and so are their publishers.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import Annotated, ClassVar

from msgspec import Meta

from workloads.content.generator import DrawnContent, Publication
from workloads.content.kinds import ContentSettings, content_workload
from workloads.content.subscription import HIGHEST, Range, Subscription, make_point, subscribe
from workloads.workload import Workload, WorkloadKind

Held = Mapping[str, tuple[Subscription, ...]]  # by host

_EXAMPLE = "'h2: 3<=a0<=7 and 0<=a1<=5' or 'h2: everything'"
_BETWEEN = re.compile(r"[;\n]")
_RANGE = re.compile(r"(\d+)\s*<=\s*a(\d+)\s*<=\s*(\d+)")


class GivenSettings(ContentSettings, frozen=True, kw_only=True):
    """Settings of subscriptions that are written by hand."""

    subscriptions: Annotated[str, Meta(description="lines such as 'h2: 3<=a0<=7 and 0<=a1<=5'")] = (
        ""
    )
    publishers: Annotated[str, Meta(description="the hosts that publish; none: all")] = ""

    def __post_init__(self) -> None:
        """Raise ValueError if the subscriptions cannot be read."""
        parse_subscriptions(self.subscriptions, self.attributes)


class ContentGiven(WorkloadKind):
    """Subscriptions as written in the experiment file, and independent random events."""

    Settings = GivenSettings
    pubsub: ClassVar[str] = "content"
    matching = "boxes"

    @classmethod
    def check_hosts(cls, settings: GivenSettings, hosts: Collection[str]) -> None:
        """Raise ValueError if a subscriber or publisher is not a host of the network."""
        named = {
            "subscriptions": parse_subscriptions(settings.subscriptions, settings.attributes),
            "publishers": settings.publishers.split(),
        }
        for key, names in named.items():
            for name in names:
                if name not in hosts:
                    raise ValueError(
                        f"{key}: expected hosts of this network, as in {next(iter(hosts))!r}; "
                        f"found {name!r}"
                    )

    @classmethod
    def draw(cls, settings: GivenSettings, seed: int, hosts: Sequence[str]) -> Workload:
        """The workload of some hosts."""
        drawn = make_given_workload(
            settings.subscriptions,
            settings.publishers,
            seed,
            tuple(hosts),
            settings.events,
            settings.attributes,
        )
        return content_workload(drawn, settings, seed, hosts)


def make_given_workload(
    subscriptions: str,
    publishers: str,
    seed: int | str,
    hosts: tuple[str, ...],
    events: int,
    attributes: int,
) -> DrawnContent:
    """The workload of some hosts, in the order of their numbers; if none publishes, all do."""
    held = parse_subscriptions(subscriptions, attributes)
    sources = [hosts.index(name) for name in publishers.split()] or range(len(hosts))
    chance = Random(f"{seed}/events")
    made = []
    for _ in range(events):
        point = make_point([chance.randint(0, HIGHEST) for _ in range(attributes)])
        made.append(Publication(chance.choice(sources), point))
    return DrawnContent(tuple(held.get(host, ()) for host in hosts), tuple(made))


def parse_subscriptions(text: str, attributes: int) -> Held:
    """The subscriptions of each host in a text, to events of `attributes` attributes."""
    found: defaultdict[str, list[Subscription]] = defaultdict(list)
    for line in filter(None, map(str.strip, _BETWEEN.split(text))):
        host, _, wanted = (part.strip() for part in line.partition(":"))
        if not host or not wanted:
            raise ValueError(f"subscriptions: expected lines such as {_EXAMPLE}; found {line!r}")
        try:
            found[host].append(_parse_subscription(wanted, attributes))
        except ValueError as error:
            raise ValueError(f"subscriptions: {line!r}: {error}") from error
    if not found:
        raise ValueError(f"subscriptions: expected lines such as {_EXAMPLE}; found none")
    return {host: tuple(held) for host, held in found.items()}


def _parse_subscription(text: str, attributes: int) -> Subscription:
    ranges: dict[int, Range] = {}
    for part in text.split(" and ") if text != "everything" else ():
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"expected ranges like '3<=a0<=7', found {part.strip()!r}")
        low, attribute, high = map(int, match.groups())
        if attribute >= attributes:
            raise ValueError(
                f"expected attributes from a0 to a{attributes - 1}, found a{attribute}"
            )
        if not low <= high <= HIGHEST:
            raise ValueError(f"expected a low and a high value from 0 to {HIGHEST}, found {part!r}")
        if attribute in ranges:
            raise ValueError(f"expected each attribute once, found a{attribute} again")
        ranges[attribute] = (low, high)
    return subscribe(ranges)
