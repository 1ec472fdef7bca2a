"""What the faults of an experiment mean on its network: checked, and down to single links."""

from collections.abc import Iterable, Iterator

from testbed.errors import ExperimentError
from testbed.experiment.file import Fault
from topologies.underlay import Underlay

_ON_LINKS = {"partition": "link-down", "heal": "link-up"}


def plan_faults(faults: Iterable[Fault], underlay: Underlay) -> list[Fault]:
    """The faults to play; raises if one is about something that the underlay does not have.

    A partition takes down every link between the routers that it names and the others, hosts stay
    with their routers, and `heal` brings those links up again.
    """
    planned: list[Fault] = []
    for number, fault in enumerate(faults):
        if fault.action in _ON_LINKS:
            planned += _cut(f"fault[{number}]", fault, underlay)
        else:
            _check_target(f"fault[{number}]", fault, underlay)
            planned.append(fault)
    return planned


def _cut(where: str, fault: Fault, underlay: Underlay) -> Iterator[Fault]:
    routers, side = set(underlay.router_index), fault.target.split()
    wrong = [name for name in side if name not in routers]
    if wrong or not 0 < len(set(side)) < len(routers):
        found = repr(wrong[0]) if wrong else f"{len(set(side))} of {len(routers)}"
        raise ExperimentError(
            f"{where}.target: expected some of the routers of this network, not all, as in "
            f"'r1 r2'; found {found}"
        )
    for link in underlay.links:
        if {link.a, link.b} <= routers and (link.a in side) != (link.b in side):
            yield Fault(fault.at_s, _ON_LINKS[fault.action], link.name)


def _check_target(where: str, fault: Fault, underlay: Underlay) -> None:
    known: dict[str, set[str]] = {
        "agent": {host.name for host in underlay.hosts},
        "router": set(underlay.router_index),
        "link": {n for link in underlay.links for n in (link.name, f"{link.b}-{link.a}")},
    }
    kind = "link" if fault.action == "delay" else next(k for k in known if k in fault.action)
    if fault.target not in known[kind]:
        example = min(known[kind], key=len)
        raise ExperimentError(
            f"{where}.target: expected {'an' if kind == 'agent' else 'a'} {kind} of this network, "
            f"as in {example!r}; found {fault.target!r}"
        )
