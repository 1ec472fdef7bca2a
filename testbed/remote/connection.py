"""One SSH connection: commands and files on another machine."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import paramiko

from testbed.remote.errors import ConnectionLost
from testbed.remote.ssh_settings import Destination

CONNECT_S = 20.0
_SETTLE_S = 1.0
_PIECE = 32_768


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a command on the other machine."""

    status: int
    output: str
    errors: str

    @property
    def last_words(self) -> str:
        """The last line of its output, usually the cause of a failure."""
        lines = [line for line in (self.errors or self.output).splitlines() if line.strip()]
        return lines[-1].strip() if lines else f"exit status {self.status}"


class Connection:
    """An open SSH connection; a cut connection raises ConnectionLost."""

    def __init__(self, client: Any, destination: Destination) -> None:
        self.destination = destination
        self._client = client
        self._sftp: Any = None

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Distinguish a cut connection from an error of the other machine."""
        try:
            yield
        except (EOFError, paramiko.SSHException, ConnectionError, TimeoutError) as error:
            raise ConnectionLost(str(error) or type(error).__name__) from error
        except OSError as error:
            transport = self._client.get_transport()
            if str(error) == "Socket is closed" or transport is None or not transport.is_active():
                raise ConnectionLost(str(error)) from error
            raise

    @property
    def sftp(self) -> Any:
        """Its file transfer; use it within `guarded`."""
        if self._sftp is None:
            self._sftp = self._client.open_sftp()
        return self._sftp

    def run(self, command: str, given: str = "") -> Done:
        """Run a command to its end, with a text as its input."""
        with self.guarded():
            channel = self._start(command)
            _feed(channel, given)
            output = b"".join(_pieces(channel.recv))
            errors = b"".join(_pieces(channel.recv_stderr))
            status = _status_of(channel)
        return Done(status, output.decode(errors="replace"), errors.decode(errors="replace"))

    def stream(self, command: str, on_output: Callable[[bytes], None]) -> int:
        """Run a command, pass on its output as it arrives, and return its exit status."""
        with self.guarded():
            channel = self._start(command)
            channel.set_combine_stderr(True)
        while piece := self._receive(channel):
            on_output(piece)  # not guarded: its errors are not errors of the connection
        return _status_of(channel)

    def converse(
        self, command: str, prompt: str, answer: str, on_output: Callable[[bytes], None]
    ) -> int:
        """Run a command on a terminal, and send the answer whenever the prompt appears."""
        with self.guarded():
            channel = self._start(command, terminal=True)
        waiting = b""
        while piece := self._receive(channel):
            waiting += piece
            while prompt.encode() in waiting:
                _, _, waiting = waiting.partition(prompt.encode())
                with self.guarded():
                    channel.sendall(answer.encode() + b"\n")
            said, newline, waiting = waiting.rpartition(b"\n")
            on_output(said + newline)
        on_output(waiting)
        return _status_of(channel)

    def open_tunnel(self, host: str, port: int) -> Any:
        """A channel to a machine that is reached through this one; it is used like a socket."""
        with self.guarded():
            transport = self._client.get_transport()
            return transport.open_channel("direct-tcpip", (host, port), ("127.0.0.1", 0))

    def _receive(self, channel: Any) -> bytes:
        with self.guarded():
            piece: bytes = channel.recv(_PIECE)
            return piece

    def _start(self, command: str, terminal: bool = False) -> Any:
        channel = self._client.get_transport().open_session(timeout=CONNECT_S)
        if terminal:
            channel.get_pty(width=200)
        channel.exec_command(command)
        return channel


def _pieces(receive: Callable[[int], bytes]) -> Iterator[bytes]:
    while piece := receive(_PIECE):
        yield piece


def _feed(channel: Any, given: str) -> None:
    try:
        channel.sendall(given.encode())
        channel.shutdown_write()
    except OSError as error:
        if str(error) != "Socket is closed" or channel.exit_status < 0:  # it ignores the answer
            raise


def _status_of(channel: Any) -> int:
    """The exit status of a command, -1 if a signal ended it; raise if the connection was cut."""
    status: int = channel.recv_exit_status()
    deadline = time.monotonic() + _SETTLE_S
    while status == -1 and time.monotonic() < deadline:
        if not channel.get_transport().is_active():
            raise ConnectionLost("the connection was cut")
        time.sleep(0.05)
    return status
