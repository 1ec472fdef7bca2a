"""Friendship and follower graphs from edge lists, and samples of them.

An edge list is a text file: a line `a b` of two whole numbers for each link, and lines that begin
with `#` or `%` are comments, as SNAP and KONECT publish such graphs. Further columns (a weight, a
time) are not used. Samples follow Chen, Tock and Girdzijauskas (DEBS 2018): a breadth-first
search from a few random users until enough are visited, with all links among the visited. The
search ignores the direction of links, because by follows alone it ends early. Where a component
has no more users, it continues from another random user.
"""

import warnings
from collections import deque
from pathlib import Path
from typing import NamedTuple

import numpy as np

from workloads.errors import WorkloadError
from workloads.topics.interests import Wanted, sort_wanted
from workloads.workload import Numbers

EDGE_LIST = (
    "an edge list, a text file with a line 'a b' of two whole numbers for each link and comments "
    "after # or %"
)
_COMMENTS = ("#", "%")


class SocialGraph(NamedTuple):
    """Links between users, who are counted from 0: `source` follows, or is a friend of, `target`.

    `source` and `target` have each link once, and no user is linked to itself.
    """

    users: int
    source: Numbers
    target: Numbers


def read_graph(path: Path, is_mutual: bool) -> SocialGraph:
    """The graph in an edge list; with `is_mutual` every link counts in both directions."""
    links = _read_links(path)
    names, numbers = np.unique(links, return_inverse=True)
    pairs = numbers.reshape(-1, 2)
    if is_mutual:
        pairs = np.concatenate((pairs, pairs[:, ::-1]))
    pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    return SocialGraph(len(names), pairs[:, 0], pairs[:, 1])


def sample_users(
    graph: SocialGraph, count: int, starts: int, chance: np.random.Generator
) -> Numbers:
    """`count` users in the order in which a breadth-first search from some of them visits them."""
    if count > graph.users:
        raise WorkloadError(
            f"file: expected at least {count} users, one for each host, found {graph.users}"
        )
    neighbours, first = _neighbours(graph)
    others = iter(chance.permutation(graph.users).tolist())
    visited: dict[int, None] = {}
    queue = deque(next(others) for _ in range(min(starts, count)))
    while len(visited) < count:
        user = queue.popleft() if queue else next(others)
        if user not in visited:
            visited[user] = None
            queue.extend(chance.permutation(neighbours[first[user] : first[user + 1]]).tolist())
    return np.fromiter(visited, dtype=np.int64)


def wanted_among(graph: SocialGraph, users: Numbers) -> Wanted:
    """Interests among some users: the user at place i is peer i and topic i."""
    place = np.full(graph.users, -1)
    place[users] = np.arange(len(users))
    peer, topic = place[graph.source], place[graph.target]
    is_inside = (peer >= 0) & (topic >= 0)
    return sort_wanted(peer[is_inside], topic[is_inside])


def _neighbours(graph: SocialGraph) -> tuple[Numbers, Numbers]:
    """The neighbours of all users in one array, and the index of each user's first one."""
    both = (
        np.concatenate((graph.source, graph.target)),
        np.concatenate((graph.target, graph.source)),
    )
    pairs = np.unique(np.stack(both, axis=1), axis=0)
    return pairs[:, 1], np.searchsorted(pairs[:, 0], np.arange(graph.users + 1))


def _read_links(path: Path) -> Numbers:
    try:
        with warnings.catch_warnings(
            action="ignore"
        ):  # warnings for an empty file, which is refused below
            found = np.loadtxt(path, np.int64, comments=_COMMENTS, usecols=(0, 1), ndmin=2)
    except (OSError, ValueError, UnicodeDecodeError) as error:
        raise WorkloadError(
            f"file: expected {EDGE_LIST}; found in {path}: {_find_fault(path) or error}"
        ) from error
    if not len(found) or found.min() < 0:
        what = "no links" if not len(found) else f"the number {found.min()}"
        raise WorkloadError(f"file: expected {EDGE_LIST}; found in {path}: {what}")
    return found


def _find_fault(path: Path) -> str:
    """The first line that is not a link, with its number."""
    if not path.is_file():
        return "no file"
    text = path.read_text(errors="replace")
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition("#")[0].partition("%")[0].split()
        if content and not (len(content) >= 2 and all(word.isdigit() for word in content[:2])):
            return f"{line.strip()[:40]!r} in line {number}"
    return ""
