"""Work on another machine that continues after the connection is cut."""

import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import paramiko

from testbed.remote.connection import CONNECT_S, Connection
from testbed.remote.errors import ConnectionLost, RemoteError, Unreachable
from testbed.remote.host_keys import KeyCheck
from testbed.remote.login import Secrets, log_in
from testbed.remote.ssh_settings import Destination, find_destination

_DEAD_AFTER_MS = 60_000  # a peer that acknowledges nothing for this time is lost
_PAUSES_S = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 30.0)
_MOST_JUMPS = 8

Say = Callable[[str], None]
T = TypeVar("T")


class Session:
    """Work on another machine that continues after the connection is cut."""

    def __init__(self, destination: Destination, say: Say) -> None:
        self.destination = destination
        self.secrets = Secrets()
        self._say = say
        self._keys = KeyCheck(say)
        self._connection: Connection | None = None
        self._jumps: list[Connection] = []
        self._failures = 0

    def __enter__(self) -> "Session":
        """Connect; an unreachable machine is an error at once."""
        self._connection = self._connect()
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self._drop()

    def persist(self, action: Callable[[Connection], T]) -> T:
        """The result of an action, which is repeated on a new connection when one is cut.

        It fails when several connections in a row have made no progress.
        """
        self.note_progress()
        while True:
            try:
                if self._connection is None:
                    self._connection = self._connect()
                return action(self._connection)
            except (ConnectionLost, Unreachable) as lost:
                self._drop()
                self._pause(lost)

    def note_progress(self) -> None:
        """Reset the count of failures: an action has made progress."""
        self._failures = 0

    def _pause(self, lost: Exception) -> None:
        if self._failures == len(_PAUSES_S):
            raise RemoteError(
                f"{self.destination.name}: the connection is lost ({lost}), and {self._failures} "
                f"attempts made no progress; runs there continue, see `tdo remote status "
                f"{self.destination.name}`"
            ) from lost
        if self._failures == 0:
            self._say(f"connection lost ({lost}); connecting again")
        time.sleep(_PAUSES_S[self._failures])
        self._failures += 1

    def _drop(self) -> None:
        for connection in (self._connection, *reversed(self._jumps)):
            if connection is not None:
                connection.close()
        self._connection = None
        self._jumps.clear()

    def _connect(self) -> Connection:
        return self._reach(self.destination, _MOST_JUMPS)

    def _reach(self, destination: Destination, most_jumps: int) -> Connection:
        def open_link() -> tuple[Any, str | None]:
            return self._open_link(destination, most_jumps)

        try:
            return log_in(destination, open_link, self._keys, self.secrets)
        except (EOFError, paramiko.SSHException, OSError) as error:
            raise Unreachable(
                f"{destination.name}: expected an SSH server at {destination.host} port "
                f"{destination.port}, found: {error or type(error).__name__}"
            ) from error

    def _open_link(self, destination: Destination, most_jumps: int) -> tuple[Any, str | None]:
        """The transport, and the peer's address if it is a direct socket."""
        if destination.proxy_jump:
            if most_jumps == 0:
                raise RemoteError(
                    f"{destination.name}: expected ProxyJumps without a cycle, found one"
                )
            before, _, last = destination.proxy_jump.rpartition(",")
            jump = _find_jump(last, before, destination.config)
            self._jumps.append(self._reach(jump, most_jumps - 1))
            return self._jumps[-1].open_tunnel(destination.host, destination.port), None
        if destination.proxy_command:
            return paramiko.ProxyCommand(destination.proxy_command), None
        try:
            link = socket.create_connection((destination.host, destination.port), CONNECT_S)
        except OSError as error:
            raise Unreachable(
                f"{destination.name}: expected to reach {destination.host} port "
                f"{destination.port}, found: {error}"
            ) from error
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _DEAD_AFTER_MS)
        return link, str(link.getpeername()[0])


def _find_jump(text: str, before: str, config: Path | None) -> Destination:
    """The machine to go through, as in `user@host:port`, itself reached through those before."""
    name, colon, port = text.rpartition(":")
    has_port = bool(colon) and port.isdigit()
    found = find_destination(name if has_port else text, config)
    jump = replace(found, port=int(port)) if has_port else found
    return replace(jump, proxy_jump=before) if before else jump
