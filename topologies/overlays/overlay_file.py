"""Overlays as JSON files; one written by hand needs only `nodes`, `interests` and `edges`."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from topologies.errors import TopologyError
from topologies.overlays.arrays import Numbers
from topologies.overlays.interests import make_interests
from topologies.overlays.overlay import Keys, Overlay, distinct_edges

_PAIRS_AT_ONCE = 100_000
_MOST_BITS = 64
_LONGEST_FOUND = 60
_AT = re.compile(r"(?P<said>.*) - at `\$\.?(?P<where>[^`]*)`")


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    """The keys of an overlay file."""

    nodes: int
    interests: list[tuple[int, int]]
    edges: list[tuple[int, int]]
    topics: int | None = None
    directed: bool = False
    position: list[int] | None = None
    rendezvous: list[int] | None = None
    ids: list[str] | None = None
    kind: str | None = None
    settings: dict[str, Any] = {}
    seed: int | None = None
    names: list[str] | None = None


def save_overlay(overlay: Overlay, path: Path) -> None:
    """Write an overlay to a JSON file; the same overlay gives the same bytes."""
    with path.open("w") as file:
        for part in _json_parts(overlay):
            file.write(part)


def load_overlay(path: Path) -> Overlay:
    """The overlay in a JSON file."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise TopologyError(
            f"{path}: expected a readable overlay file, found: {error.strerror}; name another"
        ) from error
    try:
        return _read_document(msgspec.json.decode(text, type=_Document))
    except RecursionError as error:
        raise TopologyError(f"{path}: expected an overlay, found: {error}") from error
    except msgspec.ValidationError as error:
        raise TopologyError(f"{path}: {_in_our_words(str(error), text)}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TopologyError(f"{path}: expected JSON, found: {error}") from error
    except TopologyError as error:
        raise TopologyError(f"{path}: {error}") from error


def _read_document(document: _Document) -> Overlay:
    interests = make_interests(document.nodes, document.topics, _pairs(document.interests))
    return Overlay(
        interests,
        distinct_edges(_pairs(document.edges), document.nodes, document.directed),
        document.directed,
        _read_positions(document.position),
        None if document.rendezvous is None else _numbers(document.rendezvous),
        _read_ids(document.ids),
        document.kind,
        document.settings,
        document.seed,
        document.names,
    )


def _pairs(rows: list[tuple[int, int]]) -> Numbers:
    return _numbers(rows).reshape(-1, 2)


def _numbers(found: list[tuple[int, int]] | list[int]) -> Numbers:
    """The numbers as an array; those of more than 63 bits are outside of any range."""
    try:
        return np.array(found, dtype=np.int64)
    except OverflowError:
        bounds = np.iinfo(np.int64)
        numbers = np.clip(np.array(found, dtype=object), bounds.min, bounds.max)
        return np.asarray(numbers, dtype=np.int64)


def _read_positions(found: list[int] | None) -> Keys | None:
    for node, position in enumerate(found or ()):
        if not 0 <= position < 1 << _MOST_BITS:
            raise TopologyError(
                f"position[{node}]: expected 0 to 2^{_MOST_BITS} - 1, found {position}"
            )
    return None if found is None else np.array(found, dtype=np.uint64)


def _read_ids(found: list[str] | None) -> Keys | None:
    if found is None:
        return None
    return np.array([_read_id(node, text) for node, text in enumerate(found)], dtype=np.uint64)


def _read_id(node: int, text: str) -> int:
    if not re.fullmatch(r"[0-9a-fA-F]{1,16}", text):
        raise TopologyError(f"ids[{node}]: expected 1 to 16 hexadecimal digits, found {text!r}")
    return int(text, 16)


def _json_parts(overlay: Overlay) -> Iterator[str]:
    """The file in parts, because a list of millions of edges takes gigabytes in Python."""
    heads = {
        "kind": overlay.kind,
        "settings": dict(overlay.settings),
        "seed": overlay.seed,
        "nodes": overlay.nodes,
        "topics": overlay.topics,
        "directed": overlay.directed,
        "position": None if overlay.position is None else overlay.position.tolist(),
        "rendezvous": None if overlay.rendezvous is None else overlay.rendezvous.tolist(),
        "ids": None if overlay.ids is None else [f"{number:016x}" for number in overlay.ids],
    }
    if overlay.names is not None:
        heads["names"] = list(overlay.names)
    yield "{"
    for key, value in heads.items():
        yield f'"{key}": {json.dumps(value)},\n'
    yield from _json_pairs("interests", overlay.interests.pairs())
    yield ",\n"
    yield from _json_pairs("edges", overlay.edges)
    yield "}\n"


def _json_pairs(key: str, pairs: Numbers) -> Iterator[str]:
    yield f'"{key}": ['
    for start in range(0, len(pairs), _PAIRS_AT_ONCE):
        chunk = pairs[start : start + _PAIRS_AT_ONCE].tolist()
        text = msgspec.json.encode(chunk).decode()[1:-1]
        yield f",{text}" if start else text
    yield "]"


def _in_our_words(said: str, text: bytes) -> str:
    """An error of msgspec as `where: expected ..., found ...`."""
    match = _AT.fullmatch(said)
    where, said = (match["where"], match["said"]) if match else ("", said)
    if missing := re.fullmatch(r"Object missing required field `(.*)`", said):
        return f"expected the key {missing[1]!r}, found none; nodes, interests and edges are needed"
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", said):
        known = ", ".join(_Document.__struct_fields__)
        return f"expected the keys {known}; found {unknown[1]!r}"
    said = said.replace("Integer value out of range", "Expected fewer digits")
    expected = re.sub(r", got .*", "", said).replace("Expected", "expected").replace("`", "")
    return f"{where}: {expected}, found {_value_at(text, where)}".removeprefix(": ")


def _value_at(text: bytes, where: str) -> str:
    """The value that a path such as `edges[0][1]` leads to, as JSON."""
    try:
        value = msgspec.json.decode(text)
    except RecursionError:
        return "arrays or objects nested too deeply"
    except msgspec.ValidationError:
        return "a number of more than 4,300 digits"
    for key, index in re.findall(r"([a-z_]+)|\[(\d+)\]", where):
        value = value[key] if key else value[int(index)]
    found = json.dumps(value)
    return found if len(found) <= _LONGEST_FOUND else f"{found[:_LONGEST_FOUND]}..."
