"""Interests, publications and weights as text files.

Interests are lines `node topic`, publications lines `publisher topic`; `#` begins a comment, and a
first line `# nodes N topics M` states sizes. A weight matrix has a row a line.
"""

import math
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from topologies.errors import TopologyError
from topologies.overlays.arrays import Numbers
from topologies.overlays.interests import Interests, make_interests

Weights = NDArray[np.float64]

_LONGEST_FOUND = 60
_NUMBER = re.compile(r"[0-9]{1,9}")
_SIZES = re.compile(r"#\s*nodes\s+(\d+)\s+topics\s+(\d+)\s*")


def load_interests(path: Path) -> Interests:
    """The interests in a text file; sizes that are not stated follow from the largest numbers."""
    lines = _read_lines(path)
    sizes = _stated_sizes(path, lines[0]) if lines else None
    rows = list(_pair_lines(path, lines, "node topic"))
    if sizes is None and not rows:
        raise TopologyError(f"{path}: expected lines `node topic`, found none")
    pairs = np.array([pair for _, pair in rows], dtype=np.int64).reshape(-1, 2)
    limits = sizes or tuple(int(n) + 1 for n in pairs.max(axis=0))
    _check_limits(path, rows, ("node", "topic"), limits)
    try:
        return make_interests(limits[0], limits[1], pairs)
    except TopologyError as error:
        raise TopologyError(f"{path}: {error}") from error


def _stated_sizes(path: Path, line: str) -> tuple[int, ...] | None:
    """The numbers of nodes and topics in a first line that states them."""
    match = _SIZES.fullmatch(line)
    if match is None:
        return None
    if not all(_NUMBER.fullmatch(number) for number in match.groups()):
        raise TopologyError(
            f"{path}, line 1: expected `# nodes N topics M`, "
            f"whole numbers of up to 9 digits; found {line[:_LONGEST_FOUND]!r}"
        )
    return tuple(map(int, match.groups()))


def save_interests(interests: Interests, path: Path) -> None:
    """Write interests to a text file, with their sizes in the first line."""
    with path.open("w") as file:
        file.write(f"# nodes {interests.nodes} topics {interests.topics}\n")
        np.savetxt(file, interests.pairs(), fmt="%d")


def load_publications(path: Path, nodes: int, topics: int) -> Numbers:
    """The publications in a text file, rows (publisher, topic) in the order of the file."""
    rows = list(_pair_lines(path, _read_lines(path), "publisher topic"))
    _check_limits(path, rows, ("publisher", "topic"), (nodes, topics))
    return np.array([pair for _, pair in rows], dtype=np.int64).reshape(-1, 2)


def load_weights(path: Path, nodes: int) -> Weights:
    """The weights of all pairs of nodes: a symmetric matrix of numbers, 0 or more."""
    rows = [(line, text.split()) for line, text in _content(_read_lines(path)) if text]
    if len(rows) != nodes:
        raise TopologyError(f"{path}: expected {nodes} rows, one for each node; found {len(rows)}")
    weights = np.array([_read_weights(path, line, words, nodes) for line, words in rows])
    uneven = np.argwhere(weights != weights.T)
    if len(uneven):
        a, b = uneven[0]
        raise TopologyError(
            f"{path}: expected a symmetric matrix, found {weights[a, b]:g} from {a} to {b} "
            f"and {weights[b, a]:g} back"
        )
    return weights


def _read_weights(path: Path, line: int, words: list[str], nodes: int) -> list[float]:
    if len(words) != nodes:
        raise TopologyError(f"{path}, line {line}: expected {nodes} weights, found {len(words)}")
    for word in words:
        is_number = re.fullmatch(r"\+?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", word)
        if not is_number or math.isinf(float(word)):
            raise TopologyError(
                f"{path}, line {line}: expected a number, 0 or more; found {word!r}"
            )
    return [float(word) for word in words]


def _read_lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "bytes that are not UTF-8 text"
        raise TopologyError(
            f"{path}: expected a readable text file, found: {reason}; name another"
        ) from error


def _content(lines: list[str]) -> Iterator[tuple[int, str]]:
    """The number of each line, and its text before a comment."""
    for number, line in enumerate(lines, 1):
        yield number, line.partition("#")[0].strip()


def _pair_lines(path: Path, lines: list[str], form: str) -> Iterator[tuple[int, tuple[int, int]]]:
    """The line number and the two whole numbers of each line that is not empty."""
    for number, text in _content(lines):
        words = text.split()
        if not words:
            continue
        if len(words) != 2 or not all(_NUMBER.fullmatch(word) for word in words):
            raise TopologyError(
                f"{path}, line {number}: expected `{form}`, "
                f"whole numbers of up to 9 digits; found {text[:_LONGEST_FOUND]!r}"
            )
        yield number, (int(words[0]), int(words[1]))


def _check_limits(
    path: Path,
    rows: list[tuple[int, tuple[int, int]]],
    names: tuple[str, str],
    limits: tuple[int, ...],
) -> None:
    for line, pair in rows:
        for name, number, limit in zip(names, pair, limits, strict=True):
            if number >= limit:
                raise TopologyError(
                    f"{path}, line {line}: expected a {name} number, 0 to {limit - 1}; "
                    f"found {number}"
                )
