"""The paths of events through the overlay: the hosts of each copy from its publisher on.

A system may send an event to a host more than once, as Scribe does on the way up to the root of a
tree and on the way down. A copy is identified by its number of hops; its path is that of the copy
with one hop less at the peer that sent it, and one link more.
"""

from typing import NamedTuple

import pandas as pd

_STEP = ("event_id", "host", "publisher", "from_host", "hops", "link_us")
_KEY = ["event_id", "host", "hops"]


class Way(NamedTuple):
    """The hosts from the publisher to the receiver, and the delay of the links between them."""

    delay_us: int | None = None
    hosts: list[str] | None = None


_UNKNOWN = Way()


class EventPaths:
    """The paths of all copies of some events.

    `receptions` are the first copies at each host and `repeats` those after them, with the columns
    `event_id`, `host`, `publisher`, `from_host`, `hops` and `link_us`, in the order of their times.
    If a peer has no copy with one hop less, its first copy counts.
    """

    def __init__(self, receptions: pd.DataFrame, repeats: pd.DataFrame | None = None) -> None:
        self._way: dict[tuple[int, str, int], Way] = {}
        self._first: dict[tuple[int, str], Way] = {}
        steps = receptions[list(_STEP)]
        if repeats is not None and len(repeats):
            steps = pd.concat([steps, repeats[list(_STEP)]])
        known = steps[steps["publisher"].notna() & steps["hops"].notna() & steps["link_us"].notna()]
        # Of copies with the same number of hops, the first counts.
        ordered = known.sort_values("hops", kind="stable").drop_duplicates(_KEY)
        for step in zip(*(ordered[name].tolist() for name in _STEP), strict=True):
            self._add(*step)

    def _add(
        self, event: int, host: str, publisher: str, sender: str, hops: int, link_us: int
    ) -> None:
        before = self._way.get((event, sender, hops - 1))
        if before is None:
            is_own = sender == publisher
            before = Way(0, [publisher]) if is_own else self._first.get((event, sender), _UNKNOWN)
        if before.delay_us is not None and before.hosts is not None:
            way = Way(before.delay_us + link_us, [*before.hosts, host])
            self._way[event, host, hops] = way
            self._first.setdefault((event, host), way)

    def of(self, copies: pd.DataFrame) -> pd.DataFrame:
        """`path_us` and `path` of some copies (`event_id`, `host`, `hops`), missing if unknown."""
        keys = zip(*(copies[name].tolist() for name in _KEY), strict=True)
        found = [self._way.get(key, _UNKNOWN) if pd.notna(key[2]) else _UNKNOWN for key in keys]
        return pd.DataFrame(
            {
                "path_us": pd.array([way.delay_us for way in found], dtype="Int64"),
                "path": pd.Series([way.hosts for way in found], dtype=object).to_numpy(),
            },
            index=copies.index,
        )
