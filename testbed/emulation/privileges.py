"""Privileges of the processes of a run: used at the start, and dropped before it begins."""

import contextlib
import ctypes
import os
import pwd
import struct

# Links have priority over agents, and both over all other processes.
LINKS_FIRST, AGENTS_FIRST = 2, 1
_PR_SET_TIMERSLACK = 29


def hurry(priority: int) -> None:
    """Request precise wake-ups and real-time priority, if the system allows them."""
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1)
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(priority))


def keep_awake() -> None:
    """Keep processors from sleeping while this process runs, if the system allows it.

    A sleeping processor must be woken for the next packet, and the host of a virtual machine may
    take many milliseconds for that. It costs energy: an idle processor polls.
    """
    with contextlib.suppress(OSError):
        latency = os.open("/dev/cpu_dma_latency", os.O_WRONLY | os.O_CLOEXEC)
        os.write(latency, struct.pack("=i", 0))  # in effect until the file is closed


def become_nobody() -> None:
    """Become the user `nobody`; then no namespace can be entered and no file opened as root."""
    nobody = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(nobody.pw_gid)
    os.setuid(nobody.pw_uid)
