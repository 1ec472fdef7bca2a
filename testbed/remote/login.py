"""Login with the user's keys and agent, or else with a password typed in the terminal."""

import getpass
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import paramiko

from testbed.remote.connection import CONNECT_S, Connection
from testbed.remote.errors import RemoteError
from testbed.remote.host_keys import KeyCheck, changed_key
from testbed.remote.keys import Keys, is_locked
from testbed.remote.ssh_settings import Destination

_KEEPALIVE_S = 15
_SSH_PORT = 22
_TYPED = {"password", "keyboard-interactive"}

OpenLink = Callable[[], tuple[Any, str | None]]  # the transport, and the peer's address

logging.getLogger("paramiko").addHandler(
    logging.NullHandler()
)  # its errors are reported in one line


@dataclass
class Secrets:
    """Passwords that the user typed, kept while the command runs, so that each is typed once."""

    known: dict[str, str] = field(default_factory=dict)

    def ask(self, what: str) -> str | None:
        """The answer of the user, or None without a terminal."""
        if what not in self.known and sys.stdin.isatty():
            self.known[what] = getpass.getpass(f"{what}: ")
        return self.known.get(what)


def log_in(
    destination: Destination, open_link: OpenLink, keys: KeyCheck, secrets: Secrets
) -> Connection:
    """A connection on which the user is logged in, to the machine that has the right key."""
    password_name = f"password of {destination.user} on {destination.host}"
    while True:
        password = secrets.known.get(password_name)
        client = paramiko.SSHClient()
        try:
            _connect(client, destination, open_link(), keys, password)
        except paramiko.AuthenticationException as error:
            _ask_for_password(client, destination, error, secrets, password_name)
        except BaseException:
            client.close()
            raise
        else:
            client.get_transport().set_keepalive(_KEEPALIVE_S)
            return Connection(client, destination)


def _connect(
    client: Any,
    destination: Destination,
    link: tuple[Any, str | None],
    keys: KeyCheck,
    password: str | None,
) -> None:
    carrier, address = link
    keys.apply(client, destination, address)
    typed = {"password": password, "allow_agent": False, "look_for_keys": False}
    try:
        client.connect(
            hostname=destination.key_alias or destination.host,
            port=_SSH_PORT if destination.key_alias else destination.port,
            username=destination.user,
            sock=carrier,
            timeout=CONNECT_S,
            banner_timeout=CONNECT_S,
            auth_timeout=CONNECT_S,
            **({"auth_strategy": Keys(destination)} if password is None else typed),
        )
    except paramiko.BadHostKeyException as error:
        raise changed_key(destination, error.key) from error


def _ask_for_password(
    client: Any, destination: Destination, error: Exception, secrets: Secrets, name: str
) -> None:
    """Ask the user for a password for the next attempt; raise if the server accepts none."""
    who = f"{destination.name}: expected to log in as {destination.user}"
    taken = _ways_in(client, destination.user)
    client.close()
    if name in secrets.known:
        raise RemoteError(f"{who}, found: the password is wrong") from error
    hint = "; a key is locked: unlock it with ssh-add" if is_locked(error) else ""
    ways = ", ".join(taken) or "nothing more"
    if not _TYPED & set(taken) or secrets.ask(name) is None:
        raise RemoteError(
            f"{who}, found: no key was accepted (the server accepts: {ways}){hint}; add yours with "
            "ssh-copy-id, name it with IdentityFile, or run the command in a terminal to type the "
            "password"
        ) from error


def _ways_in(client: Any, user: str) -> list[str]:
    """The login methods that a server accepts for a user."""
    try:
        client.get_transport().auth_none(user)
    except paramiko.BadAuthenticationType as answer:
        return list(answer.allowed_types)
    except (paramiko.SSHException, EOFError, OSError, AttributeError):
        return []
    return []
