"""Additions of an experiment to a network of routers: hosts, silent routers, uneven delays, loss.

Each function returns a new underlay, whose `source` records how to repeat the addition.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from topologies.errors import TopologyError
from topologies.parameters import check_parameter, check_seed
from topologies.statistics import mean_delay_us
from topologies.underlay import Channel, Host, Link, Router, Underlay

# The TDO paper, section 6: last miles of 5 to 10 % of the mean router-to-router delay.
_LAST_MILE_SHARE = (0.05, 0.10)
# For pictures only: a host stands this share of the network's width away from its router.
_HOST_DISTANCE_SHARE = 0.01


def attach_hosts(underlay: Underlay, hosts: int, seed: int) -> Underlay:
    """The underlay with hosts h1, h2 and so on, each on a random router.

    If there are stub routers, hosts are on those only. A router may get several hosts. The
    last-mile delay is uniform in 5 to 10 % of the mean delay between two routers.
    """
    check_parameter("hosts", hosts, "1 or more", hosts >= 1)
    if underlay.hosts:
        raise TopologyError(
            f"hosts: expected an underlay without hosts, found {len(underlay.hosts)}"
        )
    rng = _random_numbers(seed, "hosts")
    candidates = [router for router in underlay.routers if router.role == "stub"]
    candidates = candidates or list(underlay.routers)
    routers = [candidates[i] for i in rng.integers(len(candidates), size=hosts)]
    mean_us = mean_delay_us(underlay)
    low, high = (share * mean_us for share in _LAST_MILE_SHARE)
    delays_us = np.maximum(1, np.rint(rng.uniform(low, high, size=hosts))).astype(int).tolist()
    names = [f"h{number}" for number in range(1, hosts + 1)]
    last_miles = map(Link.symmetric, names, (router.name for router in routers), delays_us)
    return replace(
        underlay,
        hosts=_place_hosts(rng, underlay, names, routers),
        links=(*underlay.links, *last_miles),
        source=_note(underlay, "hosts", {"count": hosts, "seed": seed}),
    )


def make_anonymous(underlay: Underlay, share: float, seed: int) -> Underlay:
    """The underlay with a share of its routers (rounded to whole ones) anonymous, at random.

    With one seed, the anonymous routers of a smaller share are among those of a larger one.
    """
    check_parameter("anonymous_routers", share, "a share from 0 to 1", 0 <= share <= 1)
    order = _random_numbers(seed, "anonymous_routers").permutation(len(underlay.routers))
    chosen = set(order[: round(share * len(underlay.routers))].tolist())
    routers = tuple(
        replace(router, anonymous=index in chosen) for index, router in enumerate(underlay.routers)
    )
    source = _note(underlay, "anonymous_routers", {"share": share, "seed": seed})
    return replace(underlay, routers=routers, source=source)


def make_asymmetric(underlay: Underlay, spread: float, seed: int) -> Underlay:
    """The underlay with delays between routers that differ by direction.

    Each direction of each link is slower or faster by up to the share `spread`, independently,
    so the route back often differs. Last miles do not change.
    """
    check_parameter("asymmetry", spread, "a share from 0 to below 1", 0 <= spread < 1)
    rng = _random_numbers(seed, "asymmetric_delays")
    factors = iter(rng.uniform(1 - spread, 1 + spread, size=(len(underlay.links), 2)).tolist())
    links = tuple(
        link if link.a in underlay.last_mile else _stretch(link, *next(factors))
        for link in underlay.links
    )
    source = _note(underlay, "asymmetric_delays", {"spread": spread, "seed": seed})
    return replace(underlay, links=links, source=source)


def make_lossy(underlay: Underlay, percent: float) -> Underlay:
    """The underlay with lossy links (last miles included), in both directions."""
    check_parameter("loss_percent", percent, "a percentage from 0 to 100", 0 <= percent <= 100)
    links = tuple(
        replace(
            link,
            ab=replace(link.ab, loss_percent=percent),
            ba=replace(link.ba, loss_percent=percent),
        )
        for link in underlay.links
    )
    return replace(underlay, links=links, source=_note(underlay, "loss", {"percent": percent}))


def _random_numbers(seed: int, purpose: str) -> np.random.Generator:
    """Separate random numbers for a purpose.

    Users give one seed for everything. Without separation, hosts would be drawn with the same
    numbers that placed the routers.
    """
    check_seed(seed)
    return np.random.default_rng([seed, *purpose.encode()])


def _place_hosts(
    rng: np.random.Generator, underlay: Underlay, names: list[str], routers: list[Router]
) -> tuple[Host, ...]:
    """The hosts, each in a random direction from its router."""
    xs, ys = zip(*((router.x, router.y) for router in underlay.routers), strict=True)
    distance = _HOST_DISTANCE_SHARE * max(max(xs) - min(xs), max(ys) - min(ys))
    angles = rng.uniform(0, 2 * math.pi, size=len(names)).tolist()
    return tuple(
        Host(
            name,
            round(router.x + distance * math.cos(angle), 2),
            round(router.y + distance * math.sin(angle), 2),
        )
        for name, router, angle in zip(names, routers, angles, strict=True)
    )


def _stretch(link: Link, ab_factor: float, ba_factor: float) -> Link:
    ab, ba = _stretch_channel(link.ab, ab_factor), _stretch_channel(link.ba, ba_factor)
    return replace(link, ab=ab, ba=ba)


def _stretch_channel(channel: Channel, factor: float) -> Channel:
    # A delay above 0 stays above 0; a delay of 0 does not change.
    least_us = min(1, channel.delay_us)
    return replace(channel, delay_us=max(least_us, round(channel.delay_us * factor)))


def _note(underlay: Underlay, key: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {**underlay.source, key: parameters}
