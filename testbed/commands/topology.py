"""`tdo topology`: make, convert, describe and draw underlays."""

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from testbed.errors import UsageError
from topologies.delays import parse_delay
from topologies.domain_sizes import PAPER_SIZES, DomainSizes, choose_domain_sizes
from topologies.errors import TopologyError
from topologies.hierarchy import (
    EDGE_CONNECTIONS,
    PAPER_HIERARCHY,
    Hierarchy,
    choose_systems,
)
from topologies.hosts import attach_hosts, make_anonymous, make_asymmetric
from topologies.importers import FORMATS, import_topology, load_topology
from topologies.statistics import Distribution, UnderlayStatistics, describe
from topologies.transit_stub import generate_transit_stub
from topologies.underlay import Underlay
from topologies.underlay_file import save_underlay
from topologies.waxman import generate_waxman
from topologies.waxman_hierarchical import generate_waxman_hierarchical

_DOMAIN_SIZES = {
    "transit_domains": "number of transit domains",
    "routers_per_transit_domain": "transit routers in a domain, on average",
    "stub_domains_per_transit_router": "stub domains on a transit router, on average",
    "routers_per_stub_domain": "routers in a stub domain, on average",
}
_LINKED = {
    "domain": "between two transit domains",
    "transit": "between two routers of a transit domain",
    "stub": "between two routers of a stub domain",
}
_DISTRIBUTION_TITLES = ("mean", "5 %", "25 %", "median", "75 %", "95 %", "max")


def add_parser(commands: Any) -> None:
    """Add `topology` to the commands."""
    parser = commands.add_parser("topology", help="make, convert, describe and draw underlays")
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    _add_generate(actions)
    _add_import(actions)
    _add_show(actions)


def _add_generate(actions: Any) -> None:
    parser = actions.add_parser("generate", help="make an underlay from a seed")
    models = parser.add_subparsers(metavar="MODEL", required=True)
    waxman = models.add_parser("waxman", help="make a Waxman network as BRITE does")
    _add_waxman_arguments(waxman)
    waxman.set_defaults(run=_run_generate, make=_make_waxman)
    hierarchical = models.add_parser(
        "waxman-hierarchical",
        help="make a Waxman network on two levels, as BRITE's top-down mode does",
    )
    _add_hierarchy_arguments(hierarchical)
    hierarchical.set_defaults(run=_run_generate, make=_make_waxman_hierarchical)
    transit_stub = models.add_parser(
        "transit-stub", help="make a transit-stub network as GT-ITM does"
    )
    _add_transit_stub_arguments(transit_stub)
    transit_stub.set_defaults(run=_run_generate, make=_make_transit_stub)
    for model in (waxman, hierarchical, transit_stub):
        model.add_argument(
            "--seed",
            type=int,
            required=True,
            metavar="N",
            help="seed of all random choices; required",
        )
        _add_common_arguments(model)


def _add_waxman_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--routers", type=int, default=1640, metavar="N", help="number of routers; default: 1640"
    )
    parser.add_argument(
        "--links-per-router",
        type=int,
        default=2,
        metavar="M",
        help="links of each new router, BRITE's m; default: 2",
    )
    parser.add_argument(
        "--link-share", type=float, metavar="A", default=0.15, help="BRITE's alpha; default: 0.15"
    )
    parser.add_argument(
        "--distance-scale", type=float, metavar="B", default=0.2, help="BRITE's beta; default: 0.2"
    )


def _add_hierarchy_arguments(parser: argparse.ArgumentParser) -> None:
    default = PAPER_HIERARCHY
    _add_waxman_arguments(parser)
    parser.add_argument(
        "--autonomous-systems",
        type=int,
        metavar="N",
        help="number of autonomous systems; default: in proportion to the routers",
    )
    parser.add_argument(
        "--links-per-system",
        type=int,
        default=default.links_per_system,
        metavar="M",
        help=f"links of each new autonomous system; default: {default.links_per_system}",
    )
    parser.add_argument(
        "--edge-connection",
        choices=EDGE_CONNECTIONS,
        default=default.edge_connection,
        help="which border routers link two autonomous systems; "
        f"default: {default.edge_connection}",
    )
    parser.add_argument(
        "--border-degree",
        type=int,
        default=default.border_degree,
        metavar="K",
        help="least degree of a border router, with smallest-k-degree; "
        f"default: {default.border_degree}",
    )


def _add_transit_stub_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--routers",
        type=int,
        metavar="N",
        help="number of routers; default: 1584, or by the domain sizes",
    )
    for name, text in _DOMAIN_SIZES.items():
        parser.add_argument(
            _option(name), type=int, metavar="N", help=f"{text}; default: chosen by --routers"
        )
    for name, probability in (("domain", 0.5), ("transit", 0.6), ("stub", 0.42)):
        parser.add_argument(
            f"--{name}-link-probability",
            type=float,
            default=probability,
            metavar="P",
            help=f"probability of a link {_LINKED[name]}; default: {probability}",
        )
    for kind in ("transit-stub", "stub-stub"):
        parser.add_argument(
            f"--extra-{kind}-links",
            type=int,
            default=0,
            metavar="N",
            help=f"additional {kind} links; default: 0",
        )
    _add_delay_per_unit(parser)


def _add_import(actions: Any) -> None:
    parser = actions.add_parser("import", help="convert a file of another tool")
    parser.add_argument("file", type=Path, help="a file in one of the formats of --format")
    known = "; ".join(f"{name}: {format.description}" for name, format in FORMATS.items())
    parser.add_argument(
        "--format",
        metavar="F",
        help=f"format of the file; default: recognised by extension and content. {known}",
    )
    parser.add_argument(
        "--default-delay", metavar="DELAY", help="delay of links without one; default: none"
    )
    parser.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="seed of all random choices; default: none, unless an option needs it",
    )
    _add_delay_per_unit(parser)
    _add_common_arguments(parser)
    parser.set_defaults(run=_run_import)


def _add_show(actions: Any) -> None:
    parser = actions.add_parser("show", help="describe and draw an underlay")
    parser.add_argument(
        "file", type=Path, help="an underlay, or a file in a format that `import` reads"
    )
    parser.add_argument("--json", action="store_true", help="end the output with one JSON object")
    parser.add_argument(
        "--picture",
        type=Path,
        metavar="P",
        help="draw it to an .svg, .png or .pdf file; default: no picture",
    )
    parser.set_defaults(run=_run_show)


def _add_common_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that write an underlay."""
    parser.add_argument(
        "--hosts", type=int, default=0, metavar="N", help="hosts on random routers; default: 0"
    )
    parser.add_argument(
        "--anonymous-routers",
        type=float,
        metavar="SHARE",
        help="share of routers that never answer probes; default: 0",
    )
    parser.add_argument(
        "--asymmetry",
        type=float,
        metavar="SPREAD",
        help="share by which delays of directions differ; default: 0",
    )
    parser.add_argument("--json", action="store_true", help="end the output with one JSON object")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="file to write; required"
    )


def _add_delay_per_unit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--delay-per-unit",
        default="100us",
        metavar="DELAY",
        help="delay of a unit of GT-ITM's lengths; default: 100us",
    )


def _run_generate(options: argparse.Namespace) -> int:
    return _finish(options.make(options), options)


def _make_waxman(options: argparse.Namespace) -> Underlay:
    return generate_waxman(
        options.routers,
        options.links_per_router,
        seed=options.seed,
        link_share=options.link_share,
        distance_scale=options.distance_scale,
    )


def _make_waxman_hierarchical(options: argparse.Namespace) -> Underlay:
    given = {field.name: getattr(options, field.name) for field in fields(Hierarchy)}
    if options.autonomous_systems is None:
        given["autonomous_systems"] = choose_systems(options.routers, options.links_per_system)
    return generate_waxman_hierarchical(Hierarchy(**given), seed=options.seed)


def _make_transit_stub(options: argparse.Namespace) -> Underlay:
    return generate_transit_stub(
        _domain_sizes(options),
        seed=options.seed,
        domain_link_probability=options.domain_link_probability,
        transit_link_probability=options.transit_link_probability,
        stub_link_probability=options.stub_link_probability,
        extra_transit_stub_links=options.extra_transit_stub_links,
        extra_stub_stub_links=options.extra_stub_stub_links,
        delay_us_per_unit=_delay_us("--delay-per-unit", options.delay_per_unit),
    )


def _domain_sizes(options: argparse.Namespace) -> DomainSizes:
    """The sizes of the options: by the number of routers, one by one, or the paper's."""
    given = {name: getattr(options, name) for name in _DOMAIN_SIZES}
    given = {name: size for name, size in given.items() if size is not None}
    if not given:
        return choose_domain_sizes(options.routers) if options.routers is not None else PAPER_SIZES
    sizes = DomainSizes(**given)
    if options.routers not in (None, sizes.routers):
        raise UsageError(
            f"--routers: expected {sizes.routers}, the number that the domain sizes give, "
            f"found {options.routers}; leave out --routers or the sizes"
        )
    return sizes


def _run_import(options: argparse.Namespace) -> int:
    default_us = None
    if options.default_delay is not None:
        default_us = _delay_us("--default-delay", options.default_delay)
    per_unit_us = _delay_us("--delay-per-unit", options.delay_per_unit)
    underlay = import_topology(
        options.file, options.format, default_delay_us=default_us, delay_us_per_unit=per_unit_us
    )
    return _finish(underlay, options)


def _run_show(options: argparse.Namespace) -> int:
    underlay = load_topology(options.file)
    if options.picture is not None:
        _draw(underlay, options.picture)
    statistics = describe(underlay)
    _print_statistics(underlay, statistics)
    if options.picture is not None:
        print(f"picture      {options.picture}")
    if options.json:
        _print_json(underlay, statistics, options.file)
    return 0


def _draw(underlay: Underlay, path: Path) -> None:
    # Matplotlib takes longer to import than most commands take to run.
    from topologies.picture import draw

    with _writing(path):
        draw(underlay, path)


def _finish(underlay: Underlay, options: argparse.Namespace) -> int:
    """Add hosts and changes of the options, write the underlay, and print its statistics."""
    underlay = _with_extras(underlay, options)
    with _writing(options.output):
        save_underlay(underlay, options.output)
    statistics = describe(underlay)
    _print_statistics(underlay, statistics)
    print(f"written to   {options.output}")
    if options.json:
        _print_json(underlay, statistics, options.output)
    return 0


def _with_extras(underlay: Underlay, options: argparse.Namespace) -> Underlay:
    """The underlay with the hosts, anonymous routers and uneven delays of the options."""
    # Uneven delays come first: the last miles are a share of the delays as they will be.
    extras = (
        ("--asymmetry", make_asymmetric, options.asymmetry),
        ("--hosts", attach_hosts, options.hosts or None),
        ("--anonymous-routers", make_anonymous, options.anonymous_routers),
    )
    for option, add, value in extras:
        if value is None:
            continue
        if options.seed is None:
            raise UsageError(f"{option}: expected a --seed with it, found none; add --seed 1")
        underlay = add(underlay, value, options.seed)
    return underlay


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn an OSError while a file is written into an error about that file."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"{path}: expected a file that can be written, found: {error.strerror}; name another"
        ) from error


def _delay_us(option: str, text: str) -> int:
    try:
        return parse_delay(text, option)
    except TopologyError as error:
        raise UsageError(str(error)) from error


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _print_statistics(underlay: Underlay, statistics: UnderlayStatistics) -> None:
    """Print the statistics of an underlay, with the notes of its source."""
    print(f"routers      {statistics.routers:,}{_roles(statistics)}")
    print(f"hosts        {statistics.hosts:,}")
    print(f"links        {statistics.links:,} between routers")
    print(f"degree       mean {statistics.degree_mean:.2f}, max {statistics.degree_max}")
    if statistics.last_mile_min_us is not None and statistics.last_mile_max_us is not None:
        low_ms, high_ms = statistics.last_mile_min_us / 1000, statistics.last_mile_max_us / 1000
        print(f"last mile    {low_ms:.3f} to {high_ms:.3f} ms")
    if statistics.routers > 1:
        print(" " * 12 + "".join(f"{title:>10}" for title in _DISTRIBUTION_TITLES))
        print(_distribution_row("hops", statistics.hops, 1))
        print(_distribution_row("delay, ms", statistics.delay_us, 1000))
    if statistics.destinations < statistics.routers:
        print(f"note         hops and delays are those to {statistics.destinations:,} routers")
    for note in underlay.source.get("notes", ()):
        print(f"note         {note}")


def _roles(statistics: UnderlayStatistics) -> str:
    """The numbers of routers by role, in brackets, unless all are plain routers."""
    counts = {**statistics.routers_by_role, "anonymous": statistics.anonymous_routers}
    parts = [f"{count:,} {role}" for role, count in counts.items() if count and role != "router"]
    return f" ({', '.join(parts)})" if parts else ""


def _distribution_row(title: str, distribution: Distribution, divisor: float) -> str:
    values = [getattr(distribution, field.name) / divisor for field in fields(distribution)]
    return f"{title:12}" + "".join(f"{value:10.2f}" for value in values)


def _print_json(underlay: Underlay, statistics: UnderlayStatistics, file: Path) -> None:
    source = dict(underlay.source)
    print(json.dumps({"file": str(file), "source": source, **statistics.to_dict()}))
