"""Underlays as JSON files: one node or link a line, the same bytes for the same network."""

import json
from pathlib import Path
from typing import Any

from topologies.errors import TopologyError
from topologies.underlay import Channel, Host, Link, Router, Underlay

FORMAT = "tdo-underlay/1"

_NUMBER = (int, float)
_NODE_TYPES: dict[str, Any] = {"name": str, "x": _NUMBER, "y": _NUMBER, "label": str}
_ROUTER_TYPES: dict[str, Any] = {**_NODE_TYPES, "role": str, "anonymous": bool}
_CHANNEL_TYPES: dict[str, Any] = {
    "delay_us": int,
    "rate_mbit": (*_NUMBER, type(None)),
    "loss_percent": _NUMBER,
    "queue_packets": int,
}


def save_underlay(underlay: Underlay, path: Path) -> None:
    """Write an underlay to a JSON file."""
    path.write_text(underlay_to_json(underlay))


def load_underlay(path: Path) -> Underlay:
    """The underlay in a JSON file."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "bytes that are not UTF-8 text"
        raise TopologyError(
            f"{path}: expected a readable topology file, found: {reason}; name another"
        ) from error
    return underlay_from_json(text, str(path))


def underlay_to_json(underlay: Underlay) -> str:
    """An underlay as JSON, with the address of every node for other programs."""
    parts = [
        f'"format": {json.dumps(FORMAT)}',
        f'"source": {json.dumps(dict(underlay.source), sort_keys=True)}',
        _json_list("routers", [_node_fields(underlay, router) for router in underlay.routers]),
        _json_list("hosts", [_node_fields(underlay, host) for host in underlay.hosts]),
        _json_list("links", [_link_fields(link) for link in underlay.links]),
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def underlay_from_json(text: str, where: str) -> Underlay:
    """The underlay in a JSON text, generated or hand-written; `where` names it in errors."""
    try:
        return _read_document(json.loads(text))
    except json.JSONDecodeError as error:
        raise TopologyError(
            f"{where}, line {error.lineno}: expected JSON, found: {error.msg}"
        ) from error
    except TopologyError as error:
        raise TopologyError(f"{where}: {error}") from error


def _json_list(key: str, items: list[dict[str, Any]]) -> str:
    lines = ",\n".join("  " + json.dumps(item) for item in items)
    return f'"{key}": [\n{lines}\n]' if items else f'"{key}": []'


def _node_fields(underlay: Underlay, node: Router | Host) -> dict[str, Any]:
    address = underlay.address[node.name]
    fields: dict[str, Any] = {"name": node.name, "address": address, "x": node.x, "y": node.y}
    if isinstance(node, Router):
        fields |= {"role": node.role, "anonymous": node.anonymous}
    return fields | ({"label": node.label} if node.label else {})


def _link_fields(link: Link) -> dict[str, Any]:
    fields: dict[str, Any] = {"a": link.a, "b": link.b, "ab": _channel_fields(link.ab)}
    return fields | ({} if link.ba == link.ab else {"ba": _channel_fields(link.ba)})


def _channel_fields(channel: Channel) -> dict[str, Any]:
    fields: dict[str, Any] = {"delay_us": channel.delay_us}
    if channel.rate_mbit is not None:
        fields |= {"rate_mbit": channel.rate_mbit, "queue_packets": channel.queue_packets}
    return fields | ({"loss_percent": channel.loss_percent} if channel.loss_percent else {})


def _read_document(document: Any) -> Underlay:
    _check_keys("top level", document, {"routers", "links"}, {"format", "source", "hosts"})
    found = document.get("format", FORMAT)
    if found != FORMAT:
        raise TopologyError(f"format: expected {FORMAT}, found {found!r}")
    routers, hosts, links = (_read_list(document, key) for key in ("routers", "hosts", "links"))
    underlay = Underlay(
        tuple(Router(**_read_node(where, node, _ROUTER_TYPES)) for where, node in routers),
        tuple(_read_link(where, link) for where, link in links),
        tuple(Host(**_read_node(where, node, _NODE_TYPES)) for where, node in hosts),
        document.get("source", {}),
    )
    for where, node in (*routers, *hosts):
        _check_address(where, node.get("address"), underlay.address[node["name"]])
    return underlay


def _read_list(document: dict[str, Any], key: str) -> list[tuple[str, Any]]:
    """The items of a list in the document, each with its place."""
    items = document.get(key, [])
    if not isinstance(items, list):
        raise TopologyError(f"{key}: expected a list, found {items!r}")
    return [(f"{key}[{index}]", item) for index, item in enumerate(items)]


def _read_node(where: str, node: Any, types: dict[str, Any]) -> dict[str, Any]:
    _check_keys(where, node, {"name"}, {*types, "address"})
    fields = {key: value for key, value in node.items() if key != "address"}
    _check_types(where, fields, types)
    return fields


def _read_link(where: str, link: Any) -> Link:
    _check_keys(where, link, {"a", "b", "ab"}, {"ba"})
    ab = _read_channel(f"{where}.ab", link["ab"])
    ba = _read_channel(f"{where}.ba", link["ba"]) if "ba" in link else ab
    return Link(str(link["a"]), str(link["b"]), ab, ba)


def _read_channel(where: str, channel: Any) -> Channel:
    _check_keys(where, channel, {"delay_us"}, set(_CHANNEL_TYPES))
    _check_types(where, channel, _CHANNEL_TYPES)
    return Channel(**channel)


def _check_keys(where: str, found: Any, required: set[str], optional: set[str]) -> None:
    if not isinstance(found, dict):
        raise TopologyError(f"{where}: expected an object, found {found!r}")
    for key in sorted(required - found.keys()):
        raise TopologyError(
            f"{where}: expected the key {key!r}, found {', '.join(found) or 'none'}"
        )
    for key in sorted(found.keys() - required - optional):
        known = ", ".join(sorted(required | optional))
        raise TopologyError(f"{where}: expected the keys {known}; found {key!r}")


def _check_types(where: str, fields: dict[str, Any], types: dict[str, Any]) -> None:
    for key, value in fields.items():
        is_stray_bool = isinstance(value, bool) and types[key] is not bool
        if is_stray_bool or not isinstance(value, types[key]):
            wanted = types[key] if isinstance(types[key], tuple) else (types[key],)
            names = " or ".join(kind.__name__ for kind in wanted)
            raise TopologyError(f"{where}.{key}: expected {names}, found {value!r}")


def _check_address(where: str, given: str | None, derived: str) -> None:
    if given not in (None, derived):
        raise TopologyError(
            f"{where}.address: expected {derived} (addresses follow from the order of the nodes), "
            f"found {given}; leave it out"
        )
