"""One prober in a separate process, for `benchmarks.probe`.

Its argument is the path of the links' clock, if they have one. It prints `ready`. For every line of
addresses on standard input it prints one line: the routes to them as JSON.
"""

import json
import sys
from ipaddress import IPv4Address

from agents.probing.route import Route
from agents.probing.route_probe import RouteProbe
from agents.runtime.held_clock import HeldClock
from agents.runtime.probe_sockets import Prober, monotonic_us, run_probers


def main() -> None:
    """Probe the targets on standard input until it ends."""
    held = HeldClock(sys.argv[1] if len(sys.argv) > 1 else None)
    prober = Prober(RouteProbe, held=held)
    print("ready", flush=True)
    for line in sys.stdin:
        for target in line.split():
            prober.probe(monotonic_us(), int(IPv4Address(target)))
        (routes,) = run_probers([prober])
        print(json.dumps([_plain(route) for route in routes]), flush=True)


def _plain(route: Route) -> tuple[int, list[int | None], list[int]]:
    """The target, the hops, and the round trips to the last hop."""
    return route.target, [hop.address for hop in route.hops], list(route.hops[-1].round_trips_us)


if __name__ == "__main__":
    main()
