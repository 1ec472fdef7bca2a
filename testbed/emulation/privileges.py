"""What the processes of a run ask of the system while they may, and give up before they begin."""

import contextlib
import ctypes
import os
import platform
import pwd
import struct

# Links come before agents, and both before whatever else the machine has to do.
_LINKS_FIRST, _AGENTS_FIRST = 2, 1
_PR_SET_TIMERSLACK = 29
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
_SCHED_DEADLINE, _CHILDREN_ARE_ORDINARY = 6, 1
_RESERVED_NS, _PERIOD_NS = 9_000_000, 10_000_000


def hurry_agents() -> None:
    """Ask for precise wake-ups, before others but links; do without where the system refuses."""
    _hurry(_AGENTS_FIRST)


def hurry_links() -> None:
    """Ask for precise wake-ups, before all others, and for most of a processor as a reservation.

    The kernel lets processes of real-time priority that leave nothing to others stand still for 50
    ms in a second, and packets would be that late. It does not do so with a reservation. Where the
    system refuses one, as to a third network on two processors, priority has to do.
    """
    _hurry(_LINKS_FIRST)
    call = _SCHED_SETATTR.get(platform.machine())
    if call is not None:
        form = "=IIQiIQQQ"  # size, policy, flags, nice, priority; runtime, deadline and period
        wish = (_SCHED_DEADLINE, _CHILDREN_ARE_ORDINARY, 0, 0, _RESERVED_NS, _PERIOD_NS, _PERIOD_NS)
        attributes = struct.pack(form, struct.calcsize(form), *wish)
        ctypes.CDLL(None).syscall(call, 0, attributes, 0)


def become_nobody() -> None:
    """From here on, no namespace can be entered and no file opened as root."""
    nobody = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(nobody.pw_gid)
    os.setuid(nobody.pw_uid)


def _hurry(priority: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1)
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(priority))
