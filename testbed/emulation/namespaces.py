"""Network namespaces by direct system calls.

A namespace has no name in the file system: it exists as long as a process holds its
descriptor or runs in it. When the processes of a run end, in whatever way, the kernel
removes its namespaces with every device and route in them.
"""

import ctypes
import os
import socket
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_CLONE_NEWNET = 0x40000000
_SO_NETNS_COOKIE = 71
_OWN_NAMESPACE = "/proc/thread-self/ns/net"

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Namespace:
    """A network namespace that this process holds open."""

    descriptor: int
    cookie: int

    @property
    def path(self) -> str:
        """The path by which processes of this user find the namespace while it is open."""
        return f"/proc/{os.getpid()}/fd/{self.descriptor}"

    def close(self) -> None:
        """Close the namespace; the kernel removes it if no process uses it."""
        os.close(self.descriptor)


def create_namespaces(count: int) -> Generator[Namespace]:
    """New namespaces, one after another; the calling thread is in each when it is yielded.

    The thread returns to its namespace when the iterator is exhausted or closed.
    """
    with _returning_home():
        for _ in range(count):
            _check(_libc.unshare(_CLONE_NEWNET), "unshare")
            yield Namespace(os.open(_OWN_NAMESPACE, os.O_RDONLY | os.O_CLOEXEC), own_cookie())


@contextmanager
def entered(namespace: int) -> Iterator[None]:
    """Move the calling thread into the namespace of an open descriptor, and back at the end."""
    with _returning_home():
        enter(namespace)
        yield


def enter(namespace: int) -> None:
    """Move the calling thread permanently into the namespace of an open descriptor."""
    _check(_libc.setns(namespace, _CLONE_NEWNET), "setns")


def own_cookie() -> int:
    """The kernel's number for the calling thread's namespace, never given twice until reboot."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        return int.from_bytes(probe.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8), "little")


def write_sysctl(name: str, value: str) -> None:
    """Set a parameter below net/ in the calling thread's namespace."""
    Path("/proc/sys/net", name).write_text(value)


@contextmanager
def _returning_home() -> Iterator[None]:
    home = os.open(_OWN_NAMESPACE, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield
    finally:
        enter(home)
        os.close(home)


def _check(status: int, call: str) -> None:
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
