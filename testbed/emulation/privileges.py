"""What the processes of a run ask of the system while they may, and give up before they begin."""

import contextlib
import ctypes
import os
import pwd
import struct

# Links come before agents, and both before whatever else the machine has to do.
LINKS_FIRST, AGENTS_FIRST = 2, 1
_PR_SET_TIMERSLACK = 29


def hurry(priority: int) -> None:
    """Ask for precise wake-ups, at once, before others; do without where the system refuses."""
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1)
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(priority))


def keep_awake() -> None:
    """Let no processor sleep while this process lives, where the system can be asked for that.

    One that sleeps has to be woken for the next packet, and the host of a virtual machine may take
    many milliseconds to do so. What it costs is energy: an idle processor waits busily.
    """
    with contextlib.suppress(OSError):
        latency = os.open("/dev/cpu_dma_latency", os.O_WRONLY | os.O_CLOEXEC)
        os.write(latency, struct.pack("=i", 0))  # holds until the file is closed


def become_nobody() -> None:
    """From here on, no namespace can be entered and no file opened as root."""
    nobody = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(nobody.pw_gid)
    os.setuid(nobody.pw_uid)
