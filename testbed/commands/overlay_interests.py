"""The interests of `tdo overlay build`: from a file, of a social graph, or drawn."""

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np

from testbed.data_files import default_data_folder, find_data_file
from testbed.errors import UsageError
from topologies.overlays.interests import LARGEST_COUNT, Interests, make_interests
from topologies.overlays.text_files import load_interests
from workloads.errors import WorkloadError
from workloads.number_range import WholeRange
from workloads.topics.interests import Wanted, draw_interests
from workloads.topics.popularity import Popularity, Shape
from workloads.topics.social import Links, draw_social_interests
from workloads.topics.social_graph import EDGE_LIST, read_graph
from workloads.topics.synthetic_social import draw_synthetic_interests

_SYNTHETIC = "synthetic"
_DRAWN = ("topics", "topics_per_node", "popularity")


def add_interest_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for interests."""
    parser.add_argument(
        "--interests",
        type=Path,
        metavar="FILE",
        help="file of lines `node topic`; default: interests are drawn",
    )
    parser.add_argument(
        "--social",
        metavar="FILE",
        help="edge list of a social graph, whose users are nodes and topics; `synthetic` generates "
        "a graph; default: none",
    )
    parser.add_argument(
        "--links", choices=get_args(Links),
        help="friends: both users of a link of the social graph subscribe to each other; follows: "
        "the first user subscribes to the second; default: friends",
    )  # fmt: skip
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="folder of social graphs; default: $TDO_DATA, else data",
    )
    parser.add_argument(
        "--nodes",
        type=int,
        metavar="N",
        help="number of nodes, or of users sampled with --social; default: those of the file",
    )
    parser.add_argument(
        "--topics", type=int, metavar="N", help="number of topics; default: that of the file"
    )
    parser.add_argument(
        "--topics-per-node", type=_topic_range, metavar="A or A..B",
        help="number of topics of a node; default: that of the file",
    )  # fmt: skip
    parser.add_argument(
        "--popularity", choices=get_args(Shape), help="popularity of drawn topics; default: uniform"
    )


def read_or_draw_interests(options: argparse.Namespace) -> Interests:
    """The interests in the file, those of a social graph, or those drawn as the options say."""
    given = {name: getattr(options, name) for name in ("nodes", "links", *_DRAWN)}
    if options.social is not None:
        _refuse(
            "--social", {"interests": options.interests} | {name: given[name] for name in _DRAWN}
        )
        return _social_interests(options)
    if options.interests is not None:
        _refuse("--interests", given)
        return load_interests(options.interests)
    if options.links is not None:
        raise UsageError(f"--links: expected none without --social, found {options.links}")
    return _drawn_interests(options)


def _drawn_interests(options: argparse.Namespace) -> Interests:
    for name in ("nodes", "topics", "topics_per_node"):
        if getattr(options, name) is None:
            raise UsageError(
                f"{_option(name)}: expected a value, as --interests is not given; found none"
            )
    _check_count("--nodes", options.nodes, 1)
    _check_count("--topics", options.topics, 0)
    each = WholeRange(*options.topics_per_node)
    popularity = Popularity(options.popularity or "uniform")
    try:
        drawn = draw_interests(options.nodes, options.topics, each, popularity, options.seed)
    except WorkloadError as error:
        raise UsageError(f"--topics-per-node: {str(error).partition(': ')[2]}") from error
    return make_interests(options.nodes, options.topics, np.column_stack(drawn))


def _social_interests(options: argparse.Namespace) -> Interests:
    """Interests of users, each a node and a topic; users without links are included."""
    if options.nodes is not None:
        _check_count("--nodes", options.nodes, 1)
    try:
        nodes, wanted = _draw_users(options)
    except WorkloadError as error:
        raise UsageError(f"--social: {str(error).partition(': ')[2]}") from error
    return make_interests(nodes, nodes, np.column_stack(wanted))


def _draw_users(options: argparse.Namespace) -> tuple[int, Wanted]:
    links: Links = options.links or "friends"
    nodes: int | None = options.nodes
    if options.social == _SYNTHETIC:
        if nodes is None:
            raise UsageError("--nodes: expected a value with --social synthetic, found none")
        return nodes, draw_synthetic_interests(links, nodes, options.seed)
    data = options.data or default_data_folder()
    path = find_data_file(options.social, Path(), data)
    if path is None:
        raise UsageError(
            f"--social: expected {EDGE_LIST}; found no {options.social} here and in {data}; say "
            "where it is with --data"
        )
    nodes = nodes or read_graph(path, is_mutual=links == "friends").users
    return nodes, draw_social_interests(path, links, nodes, options.seed)


def _check_count(option: str, count: int, least: int) -> None:
    if not least <= count <= LARGEST_COUNT:
        raise UsageError(f"{option}: expected {least} to {LARGEST_COUNT:,}, found {count}")


def _refuse(beside: str, given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        if value is not None:
            raise UsageError(
                f"{_option(name)}: expected none with {beside}, found {value}; leave one out"
            )


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _topic_range(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,9})(?:\.\.(\d{1,9}))?", text)
    if not match:
        raise argparse.ArgumentTypeError(f"expected A or A..B, as in 20 or 2..6; found {text!r}")
    return int(match[1]), int(match[2] or match[1])
