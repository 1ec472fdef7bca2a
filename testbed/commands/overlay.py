"""`tdo overlay`: compute overlays and disseminate publications over them, offline."""

import argparse
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from testbed.commands.overlay_interests import add_interest_arguments, read_or_draw_interests
from testbed.errors import UsageError
from testbed.experiment.file import parse_change
from testbed.experiment.settings import read_settings
from topologies.errors import TopologyError
from topologies.overlays.arrays import Numbers
from topologies.overlays.dissemination import Counts, PubsubSettings
from topologies.overlays.kinds import OVERLAYS, PUBSUBS, find_overlay, find_pubsub, key_routes
from topologies.overlays.metrics import OverlayMetrics, describe_overlay
from topologies.overlays.overlay import Overlay
from topologies.overlays.overlay_file import load_overlay, save_overlay
from topologies.overlays.position_routes import PositionRoutes
from topologies.overlays.publications import draw_publications
from topologies.overlays.text_files import load_publications, load_weights

# Each use of randomness has its own stream, so that none depends on another.
_OVERLAY, _PUBLICATIONS = range(2)
_MOST_EVENTS = 100_000_000
_MB = 1 << 20


def add_parser(commands: Any) -> None:
    """Add `overlay` to the commands."""
    parser = commands.add_parser("overlay", help="compute overlays and publications offline")
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    _add_build(actions)
    _add_route(actions)


def _add_build(actions: Any) -> None:
    parser = actions.add_parser("build", help="compute an overlay from interests")
    parser.add_argument("kind", metavar="KIND", choices=OVERLAYS, help=", ".join(OVERLAYS))
    add_interest_arguments(parser)
    parser.add_argument(
        "--weights",
        type=Path,
        metavar="MATRIX",
        help="file with the delays of all pairs of nodes, one row per line; default: none",
    )
    _add_common_arguments(parser)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE",
                        help="the overlay file to write; required")  # fmt: skip
    parser.set_defaults(run=_run_build)


def _add_route(actions: Any) -> None:
    parser = actions.add_parser("route", help="disseminate publications over an overlay")
    parser.add_argument("file", type=Path, help="an overlay file")
    parser.add_argument("--pubsub", metavar="KIND", choices=PUBSUBS, required=True,
                        help=f"{', '.join(PUBSUBS)}; required")  # fmt: skip
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--publications",
        type=Path,
        metavar="FILE",
        help="file of lines `publisher topic`; default: none, with --events",
    )
    source.add_argument(
        "--events",
        type=int,
        metavar="N",
        help="number of publications to draw; default: none, with --publications",
    )
    _add_common_arguments(parser)
    parser.set_defaults(run=_run_route)


def _add_common_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="changes",
        help="change a setting of the kind; `tdo list kinds` prints all; default: none",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="seed of random draws; default: 1"
    )
    parser.add_argument("--json", action="store_true", help="end the output with one JSON object")


def _run_build(options: argparse.Namespace) -> int:
    kind = find_overlay(options.kind)
    settings = read_settings(kind.Settings, "--set ", _changes(options))
    interests = read_or_draw_interests(options)
    weights = load_weights(options.weights, interests.nodes) if options.weights else None
    start_s = time.perf_counter()
    overlay = kind.make(interests, settings, _random(options, _OVERLAY))
    seconds = time.perf_counter() - start_s
    overlay = replace(
        overlay, kind=options.kind, settings=msgspec.structs.asdict(settings), seed=options.seed
    )
    _save(overlay, options.output)
    metrics = describe_overlay(overlay, weights)
    took = {"seconds": seconds, "peak_mb": _peak_mb()}
    _print_overlay(overlay, metrics, took)
    print(f"written to       {options.output}")
    if options.json:
        print(json.dumps({**metrics.to_dict(), **took}))
    return 0


def _run_route(options: argparse.Namespace) -> int:
    kind = find_pubsub(options.pubsub)
    settings = read_settings(kind.Settings, "--set ", _changes(options))
    overlay = load_overlay(options.file)
    publications = _publications(options, overlay, settings)
    try:
        counts = kind.disseminate(overlay, publications, settings)
    except TopologyError as error:
        raise TopologyError(f"{options.file}: {error}") from error
    _print_counts(counts)
    _note_missing_successors(overlay)
    if options.json:
        print(json.dumps(counts.to_dict()))
    return 0


def _changes(options: argparse.Namespace) -> dict[str, Any]:
    return dict(parse_change(text) for text in options.changes)


def _random(options: argparse.Namespace, stream: int) -> np.random.Generator:
    if options.seed < 0:
        raise UsageError(f"--seed: expected 0 or more, found {options.seed}")
    return np.random.default_rng((options.seed, stream))


def _publications(
    options: argparse.Namespace, overlay: Overlay, settings: PubsubSettings
) -> Numbers:
    if options.publications is not None:
        return load_publications(options.publications, overlay.nodes, overlay.topics)
    if not 0 <= options.events <= _MOST_EVENTS:
        raise UsageError(f"--events: expected 0 to {_MOST_EVENTS:,}, found {options.events}")
    return draw_publications(
        overlay.interests, options.events, settings.min_subscribers, _random(options, _PUBLICATIONS)
    )


def _save(overlay: Overlay, path: Path) -> None:
    try:
        save_overlay(overlay, path)
    except OSError as error:
        raise UsageError(
            f"{path}: expected a file that can be written, found: {error.strerror}; name another"
        ) from error


def _print_overlay(overlay: Overlay, metrics: OverlayMetrics, took: Mapping[str, float]) -> None:
    print(f"nodes            {overlay.nodes:,}")
    print(f"topics           {overlay.topics:,}")
    print(f"subscriptions    {len(overlay.interests):,}")
    print(f"edges            {metrics.edges:,}{' (directed)' if overlay.directed else ''}")
    print(f"degree           mean {metrics.degree.mean:.2f}, max {metrics.degree.max}")
    if metrics.weighted_degree is not None:
        print(f"weighted degree  mean {metrics.weighted_degree:.6g}, "
              f"max {metrics.weighted_degree_max:.6g}")  # fmt: skip
    print(f"TCO support      {100 * metrics.tco_support:.2f} %")
    print(f"connected        {100 * metrics.topic_connected:.2f} % of topics")
    if metrics.topic_diameter is not None:
        print(f"topic diameter   {metrics.topic_diameter:.2f} hops, mean over topics")
    print(f"computed in      {took['seconds']:.2f} s, peak memory {took['peak_mb']:.0f} MB")


def _print_counts(counts: Counts) -> None:
    found = counts.to_dict()
    path = found.pop("path_length")
    for name, value in found.items():
        print(f"{name.replace('_', ' '):17}{value:,}")
    if path["mean"] is not None:
        print(f"path length      mean {path['mean']:.3f}, max {path['max']} hops")


def _note_missing_successors(overlay: Overlay) -> None:
    """Warn where greedy routes may end early."""
    routes = key_routes(overlay)
    if isinstance(routes, PositionRoutes) and overlay.nodes > 1:
        without = overlay.nodes - int(routes.has_successors().sum())
        if without:
            print(f"note             {without:,} of {overlay.nodes:,} nodes have no edge to the "
                  "next node of the ring; routes may end there")  # fmt: skip


def _peak_mb() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / _MB
