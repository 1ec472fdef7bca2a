"""`tdo bench`: a measurement from `benchmarks/`, compared with other tools."""

import argparse
import importlib
import json
from typing import Any

from analysis.numbers import read_number

_BENCHES = {
    "build": "time to build networks, compared with stock Mininet; requires root",
    "agents": "start-up, memory and idle load of 1,024 agents on 1,640 routers; requires root",
    "capture": "processor time of capturing every packet of 64 hosts; requires root",
    "discovery": "time to simulate a discovery overlay of 128 to 8,192 peers",
    "links": "delays and losses of links, idle and loaded; requires root",
    "matching": "events matched per second with 100 to 10,000 subscriptions, and by brute force",
    "pastry": "hops and delays of routes over the tables of Pastry's agents",
    "pcap": "packets read per second, compared with dpkt, tshark and Scapy, and in Spark",
    "probe": "route probing on 300 routers, compared with traceroute and scamper; requires root",
    "simulate": "messages per second and memory of the simulator, compared with SimPy",
    "topics": "drawing topics of 100,000 peers, overlays offline, and agents of Scribe",
}


def add_parser(commands: Any) -> None:
    """Add `bench` to the commands."""
    parser = commands.add_parser(
        "bench", help="measure the testbed, and compare it with other tools"
    )
    names = parser.add_subparsers(metavar="NAME", required=True)
    for name, text in _BENCHES.items():
        bench = names.add_parser(name, help=text)
        bench.add_argument(
            "--json", action="store_true", help="end the output with one JSON object"
        )
        bench.set_defaults(run=_run, bench=name)


def _run(options: argparse.Namespace) -> int:
    module = importlib.import_module(f"benchmarks.{options.bench}")
    figures = module.run()
    print()
    width = max(map(len, figures), default=0)
    for name, value in figures.items():
        print(f"{name:{width}}  {read_number(value)}")
    if options.json:
        print(json.dumps({"bench": options.bench, "figures": figures}))
    return 0
