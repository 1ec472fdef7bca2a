"""A real OpenSSH server on loopback, with keys of its own, and a way to it that can be cut."""

import contextlib
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
_PRIVILEGE_SEPARATION = Path("/run/sshd")  # sshd insists on it
_PATIENCE_S = 60.0
_PIECE = 16_384
_LOGIN_BYTES = 2_000


@dataclass(frozen=True)
class SshServer:
    """Where the server listens, and the files that a client needs."""

    folder: Path
    port: int

    def write_config(
        self,
        name: str = "config",
        port: int | None = None,
        key: str = "client",
        known: str = "known_hosts",
        more: str = "",
    ) -> Path:
        """An SSH configuration in which the server is called `far`."""
        path = self.folder / name
        path.write_text(
            f"Host far\n  HostName 127.0.0.1\n  Port {port or self.port}\n"
            f"  IdentityFile {self.folder / key}\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {self.folder / known}\n{more}"
        )
        return path

    def know(self, port: int, key: str = "host", known: str = "known_hosts") -> None:
        """Put the public part of a key into a file of known hosts."""
        public = (self.folder / f"{key}.pub").read_text()
        with (self.folder / known).open("a") as file:
            file.write(f"[127.0.0.1]:{port} {public}")


def make_key(path: Path, kind: str = "ed25519", passphrase: str = "") -> None:
    """Make a pair of keys."""
    words = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "test", "-f", str(path)]
    subprocess.run(words, check=True)


@contextlib.contextmanager
def serving(folder: Path, more: str = "", before: tuple[str, ...] = ()) -> Iterator[SshServer]:
    """A server that lets in whoever has the key `client`; `before` is put before its command."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("host", "other_host", "client", "stranger"):
        make_key(folder / name)
    shutil.copy(folder / "client.pub", folder / "authorized_keys")
    port = free_port()
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\n"
        f"AuthorizedKeysFile {folder}/authorized_keys\nStrictModes no\nUsePAM no\n"
        f"KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nMaxStartups 100\n"
        f"Subsystem sftp internal-sftp\n{more}"
    )
    is_ours = not _PRIVILEGE_SEPARATION.exists()
    _PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
    log = folder / "sshd.log"
    assert SSHD is not None
    words = [*before, SSHD, "-D", "-f", str(folder / "sshd_config"), "-E", str(log)]
    daemon = subprocess.Popen(words)
    server = SshServer(folder, port)
    try:
        _wait_for(port, daemon, log)
        server.know(port)
        server.write_config()
        yield server
    finally:
        daemon.terminate()
        daemon.wait(_PATIENCE_S)
        if is_ours:
            with contextlib.suppress(OSError):
                _PRIVILEGE_SEPARATION.rmdir()


def free_port() -> int:
    """A port on loopback that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def _wait_for(port: int, daemon: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while daemon.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port)).close()
            return
        time.sleep(0.02)
    raise AssertionError(f"sshd does not answer: {log.read_text() if log.exists() else 'no log'}")


class FrailWay:
    """A way to a port that can be cut: at once, or each time after so many bytes from there."""

    def __init__(self, to_port: int) -> None:
        self._to_port = to_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.cuts = 0
        self.carried = 0  # bytes from there, on the connection made last
        self.total = 0  # and on all
        self._bytes_left: int | None = None
        self._cut_every: tuple[int, int] = (0, 0)  # how often still, after how many bytes
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Cut every connection there is."""
        self.cuts += 1
        self.carried = 0
        for pair in self._pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        self._pairs.clear()

    def wait_for_login(self) -> None:
        """Wait until a connection carries more than it takes to get in."""
        deadline = time.monotonic() + _PATIENCE_S
        while self.carried < _LOGIN_BYTES:
            assert time.monotonic() < deadline, "nobody connects again"
            time.sleep(0.01)

    def cut_every(self, amount: int, times: int) -> None:
        """Cut so many times, each time after an amount of bytes has come from there."""
        self._cut_every, self._bytes_left = (times, amount), amount

    def close(self) -> None:
        """Stop."""
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._to_port))
                self._pairs.append((near, far))
                self.carried = 0
                for source, target in ((near, far), (far, near)):
                    carrier = threading.Thread(
                        target=self._carry, args=(source, target, source is far), daemon=True
                    )
                    carrier.start()

    def _carry(self, source: socket.socket, target: socket.socket, is_from_far: bool) -> None:
        with contextlib.suppress(OSError), source, target:
            while piece := source.recv(_PIECE):
                target.sendall(piece)
                if is_from_far:
                    self.carried += len(piece)
                    self.total += len(piece)
                if is_from_far and self._bytes_left is not None:
                    self._count(len(piece))

    def _count(self, size: int) -> None:
        times, amount = self._cut_every
        self._bytes_left = (self._bytes_left or 0) - size
        if self._bytes_left <= 0:
            self._bytes_left = amount if times > 1 else None
            self._cut_every = (times - 1, amount)
            self.cut()
