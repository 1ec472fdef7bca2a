"""Faults: a row for each action, and the faults of an experiment on its network.

A row has the action's type of target, and the action on single links by which it is planned, if
any. Each backend has a method for each of the other actions: `testbed.simulation.faults` and
`testbed.emulation.faults`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from ipaddress import IPv4Address
from typing import Annotated, Any, Literal

from msgspec import Meta

from testbed.errors import ExperimentError
from testbed.experiment.settings import check_choice, read_settings
from topologies.underlay import Underlay

Target = Literal["agent", "link", "router", "routers"]
LOWEST_ADDRESS = "lowest-address"  # among all agents that no fault has ended
TARGET_FORMS: Mapping[Target, str] = {
    "agent": "name of the agent's host, as in 'h3'",
    "link": "the two ends of the link in either order, as in 'r1-r2'",
    "router": "name of the router, as in 'r4'",
    "routers": "names of some routers, not all, with spaces between, as in 'r1 r2'",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """A failure or a repair at a time of the run."""

    at_s: Annotated[float, Meta(description="time of the run, 0 to duration_s")]
    action: str
    target: Annotated[str, Meta(description="what the action applies to")]
    delay_us: Annotated[int, Meta(description="new delay of the link, above 0")] = 0


@dataclass(frozen=True, slots=True)
class FaultKind:
    """An action: its type of target, its effect, and keys that it requires beside time and target.

    An action that is `planned_as` another one is that action on every link between the named
    routers and the others. `ends_agent` and `is_repair` describe its effect for the analysis.
    """

    target: Target
    description: str
    needs: tuple[str, ...] = ()
    planned_as: str = ""
    ends_agent: bool = False
    is_repair: bool = False

    @property
    def target_form(self) -> str:
        """The form of a target."""
        form = TARGET_FORMS[self.target]
        if not self.ends_agent:
            return form
        return f"{form}, or '{LOWEST_ADDRESS}' for the running agent with the lowest address"


FAULTS: Mapping[str, FaultKind] = {
    "kill-agent": FaultKind(
        "agent", "ends an agent at once; other agents are not notified", ends_agent=True
    ),
    "stop-agent": FaultKind(
        "agent", "ends an agent after it has notified its peers", ends_agent=True
    ),
    "restart-agent": FaultKind(
        "agent", "starts an agent that was ended, or that has not started yet", is_repair=True
    ),
    "link-down": FaultKind("link", "cuts a link; routes avoid it"),
    "link-up": FaultKind("link", "restores a link; routes use it again", is_repair=True),
    "router-down": FaultKind("router", "switches a router off with all its links; routes avoid it"),
    "router-up": FaultKind("router", "switches a router on again", is_repair=True),
    "partition": FaultKind(
        "routers", "cuts all links between these routers and the others", planned_as="link-down"
    ),
    "heal": FaultKind(
        "routers",
        "restores all links between these routers and the others",
        planned_as="link-up",
        is_repair=True,
    ),
    "delay": FaultKind(
        "link", "changes the delay of a link in both directions; routes follow", ("delay_us",)
    ),
}


def read_fault(prefix: str, given: Any, end_s: float) -> Fault:
    """A fault from a table of an experiment file that ends at a time."""
    fault = read_settings(Fault, prefix, given)
    check_choice(f"{prefix}action", fault.action, FAULTS)
    for key in FAULTS[fault.action].needs:
        if (value := getattr(fault, key)) <= 0:
            raise ExperimentError(f"{prefix}{key}: expected microseconds above 0, found {value}")
    if not 0 <= fault.at_s <= end_s:
        raise ExperimentError(
            f"{prefix}at_s: expected a time within the {end_s} s of the run, found {fault.at_s}"
        )
    return fault


def describe_fault(fault: Fault) -> dict[str, Any]:
    """A planned fault as plain data, with the properties of its kind for the analysis."""
    kind = FAULTS[fault.action]
    return {
        **asdict(fault),
        "changes_network": kind.target != "agent",
        "ends_agent": kind.ends_agent,
        "is_repair": kind.is_repair,
    }


def carry_out(backend: object, fault: Fault) -> None:
    """Call the method of a backend that carries out a planned fault."""
    getattr(backend, method_of(fault.action))(fault)


def method_of(action: str) -> str:
    """The name of the method that carries out an action."""
    return action.replace("-", "_")


def plan_faults(faults: Iterable[Fault], underlay: Underlay) -> list[Fault]:
    """The faults to carry out; raises if one is about something that the underlay does not have.

    A partition takes down every link between the routers that it names and the others, hosts stay
    with their routers, and `heal` brings those links up again.
    """
    known = _known_targets(underlay)
    planned: list[Fault] = []
    for number, fault in enumerate(faults):
        kind, where = FAULTS[fault.action], f"fault[{number}].target"
        if kind.planned_as:
            planned += _cut(where, fault, kind.planned_as, underlay)
        elif kind.ends_agent and fault.target == LOWEST_ADDRESS:
            planned.append(fault)
        else:
            _check_target(where, kind.target, fault.target, known[kind.target])
            planned.append(fault)
    return planned


def name_agents(faults: Iterable[Fault], underlay: Underlay) -> list[Fault]:
    """All faults of a run in the order of time, with a host in place of `LOWEST_ADDRESS`."""
    hosts = [host.name for host in underlay.hosts]
    hosts.sort(key=lambda name: IPv4Address(underlay.address[name]))
    ended: set[str] = set()
    named: list[Fault] = []
    for fault in sorted(faults, key=lambda fault: fault.at_s):
        if fault.target == LOWEST_ADDRESS:
            running = [name for name in hosts if name not in ended]
            if not running:
                raise ExperimentError(
                    f"fault: expected an agent that runs at {fault.at_s} s, found none"
                )
            fault = replace(fault, target=running[0])
        if FAULTS[fault.action].ends_agent:
            ended.add(fault.target)
        elif FAULTS[fault.action].target == "agent":
            ended.discard(fault.target)
        named.append(fault)
    return named


def _known_targets(underlay: Underlay) -> Mapping[str, set[str]]:
    return {
        "agent": {host.name for host in underlay.hosts},
        "router": set(underlay.router_index),
        "link": {name for link in underlay.links for name in (link.name, f"{link.b}-{link.a}")},
    }


def _cut(where: str, fault: Fault, action: str, underlay: Underlay) -> Iterator[Fault]:
    routers, side = set(underlay.router_index), set(fault.target.split())
    wrong = [name for name in fault.target.split() if name not in routers]
    if wrong or not 0 < len(side) < len(routers):
        found = repr(wrong[0]) if wrong else f"{len(side)} of {len(routers)}"
        raise ExperimentError(
            f"{where}: expected some of the routers of this network, not all, as in "
            f"'r1 r2'; found {found}"
        )
    for link in underlay.links:
        if {link.a, link.b} <= routers and (link.a in side) != (link.b in side):
            yield Fault(fault.at_s, action, link.name)


def _check_target(where: str, kind: str, target: str, known: set[str]) -> None:
    if target not in known:
        raise ExperimentError(
            f"{where}: expected {'an' if kind == 'agent' else 'a'} {kind} of this network, "
            f"as in {min(known, key=len)!r}; found {target!r}"
        )
