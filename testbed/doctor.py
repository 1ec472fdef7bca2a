"""Checks of this machine for the testbed, each with a command to fix a miss."""

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from testbed.emulation.capacity import available_mb, needed_mb
from testbed.emulation.links import has_netem
from testbed.emulation.namespaces import create_namespaces

_INSTALL = "sudo apt-get install -y --no-install-recommends"
_TOOLS = {
    "ip": "iproute2",
    "nft": "nftables",
    "mnexec": "mininet",
    "nsenter": "util-linux",
    "ping": "iputils-ping",
    "traceroute": "traceroute",
    "tcpdump": "tcpdump",
}
_SEARCH_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"  # of sudo, not always of users
_NEEDED_TOOLS = {"nft", "mnexec", "nsenter"}


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check; a miss of a needed thing makes emulated runs impossible."""

    name: str
    is_good: bool
    found: str
    is_needed: bool = True
    remedy: str = ""


def examine() -> list[Finding]:
    """All checks of this machine."""
    return [
        _python(),
        _root(),
        _namespaces(),
        _tun(),
        _netem(),
        *_tools(),
        _java(),
        _memory(),
        _open_files(),
        _processors(),
    ]


def can_emulate(findings: list[Finding]) -> bool:
    """Whether an emulated run has everything that it needs."""
    return all(finding.is_good for finding in findings if finding.is_needed)


def _python() -> Finding:
    good = sys.version_info >= (3, 11)
    remedy = "" if good else f"{_INSTALL} python3 python3-venv, then scripts/quickstart"
    return Finding("Python 3.11", good, sys.version.split()[0], remedy=remedy)


def _root() -> Finding:
    is_root = os.geteuid() == 0
    remedy = "" if is_root else "run it with sudo"
    return Finding("root", is_root, "root" if is_root else f"user {os.geteuid()}", remedy=remedy)


def _namespaces() -> Finding:
    try:
        for namespace in create_namespaces(1):
            namespace.close()
    except OSError as error:
        remedy = "run as root, outside containers that forbid it: sudo tdo doctor"
        return Finding("network namespaces", False, str(error), remedy=remedy)
    limit = Path("/proc/sys/user/max_net_namespaces").read_text().strip()
    return Finding("network namespaces", True, f"up to {int(limit):,}")


def _tun() -> Finding:
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError as error:
        remedy = "sudo modprobe tun; in a container, start it with --device /dev/net/tun"
        return Finding("tun devices", False, str(error), is_needed=not _can_netem(), remedy=remedy)
    return Finding("tun devices", True, "available")


def _netem() -> Finding:
    if _can_netem():
        return Finding("netem", True, "links use the kernel's netem", is_needed=False)
    remedy = "sudo modprobe sch_netem (optional)"
    return Finding("netem", False, "links use the delay line", is_needed=False, remedy=remedy)


def _can_netem() -> bool:
    return os.geteuid() == 0 and has_netem()


def _tools() -> Iterator[Finding]:
    for tool, package in _TOOLS.items():
        path = shutil.which(tool, path=_SEARCH_PATH)
        remedy = "" if path else f"{_INSTALL} {package}"
        yield Finding(tool, path is not None, path or "not found", tool in _NEEDED_TOOLS, remedy)


def _java() -> Finding:
    remedy = f"{_INSTALL} default-jre-headless"
    if shutil.which("java") is None:
        return Finding("Java", False, "not found; Spark needs it", is_needed=False, remedy=remedy)
    shown = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    first_line = (shown.stderr or shown.stdout).partition("\n")[0]
    return Finding("Java", shown.returncode == 0, first_line, is_needed=False)


def _memory() -> Finding:
    found_mb, quickstart_mb = available_mb(), needed_mb(20, 12, 52)
    paper_mb = needed_mb(1640, 1024, 4304)
    fits = "enough" if found_mb > paper_mb else "not enough"
    found = f"{found_mb:,.0f} MB available, {fits} for 1,640 routers and 1,024 hosts"
    remedy = "" if found_mb > quickstart_mb else f"free {quickstart_mb - found_mb:.0f} MB"
    return Finding("memory", found_mb > quickstart_mb, found, remedy=remedy)


def _open_files() -> Finding:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    good = hard >= 4096
    remedy = "" if good else "ulimit -Hn 20000 as root, in the shell that runs tdo"
    return Finding("open files", good, f"at most {hard:,} in a process", remedy=remedy)


def _processors() -> Finding:
    count = len(os.sched_getaffinity(0))
    remedy = "" if count > 1 else "give the machine a second processor; with one, packets are late"
    return Finding("processors", count > 1, str(count), is_needed=False, remedy=remedy)
