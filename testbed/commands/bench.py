"""`tdo bench`: a measurement from `benchmarks/`, beside the tools people use today."""

import argparse
import importlib
import json
from typing import Any

_BENCHES = {
    "build": "building networks, beside stock Mininet and up to the paper's size (root)",
    "agents": "1,024 agents on 1,640 routers: until they are up, and idle (root)",
    "capture": "what capturing every packet of 64 hosts costs (root)",
    "discovery": "building a discovery overlay, simulated, of 128 to 8,192 peers",
    "links": "delays and losses of links, idle and loaded (root)",
    "matching": "events a second matched with 100 to 10,000 subscriptions, beside brute force",
    "pcap": "reading captures, beside dpkt, tshark and Scapy, in Spark, and up to 2 GB",
    "probe": "route probing beside traceroute and scamper on 300 routers (root)",
    "simulate": "messages a second and memory of the simulator, beside SimPy",
    "topics": "drawing the topics of up to 100,000 peers",
}


def add_parser(commands: Any) -> None:
    """Add `bench` to the commands."""
    parser = commands.add_parser("bench", help="measure the testbed beside other tools")
    names = parser.add_subparsers(metavar="NAME", required=True)
    for name, text in _BENCHES.items():
        bench = names.add_parser(name, help=text, description=text)
        bench.add_argument("--json", action="store_true", help="end with one JSON object")
        bench.set_defaults(run=_run, bench=name)


def _run(options: argparse.Namespace) -> int:
    module = importlib.import_module(f"benchmarks.{options.bench}")
    figures = module.run()
    print()
    for name, value in figures.items():
        print(f"{name:22} {value:.6g}")
    if options.json:
        print(json.dumps({"bench": options.bench, "figures": figures}))
    return 0
