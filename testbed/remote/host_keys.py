"""Trust: a machine is accepted if its key is in a `known_hosts` file.

An unknown or changed key is refused, whatever `StrictHostKeyChecking` says. There is one exception,
for Vagrant, whose machines are often created again: its configuration has `StrictHostKeyChecking
no` and `UserKnownHostsFile /dev/null`. Both together are accepted, with a message, if the
connection is to this machine's loopback address, which cannot be intercepted. The key must stay the
same while the command runs.
"""

import base64
import hashlib
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

import paramiko

from testbed.remote.errors import RemoteError
from testbed.remote.ssh_settings import Destination


def fingerprint(key: Any) -> str:
    """A key's fingerprint as `ssh-keygen -l` prints it."""
    digest = base64.b64encode(hashlib.sha256(key.asbytes()).digest()).decode()
    return f"{key.get_name()} SHA256:{digest.rstrip('=')}"


class KeyCheck:
    """The check of host keys; one object for all connections of a command."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._accepted: dict[str, Any] = {}

    def apply(self, client: Any, destination: Destination, address: str | None) -> None:
        """Give a client the known keys and the rule for others; `address` is the peer's."""
        for path in destination.known_hosts:
            try:
                client.load_system_host_keys(str(path))
            except (paramiko.SSHException, paramiko.hostkeys.InvalidHostKey, ValueError) as error:
                raise RemoteError(f"{path}: expected known host keys, found: {error}") from error
        client.set_missing_host_key_policy(_Unknown(self, destination, address))

    def judge_unknown(self, destination: Destination, address: str | None, key: Any) -> None:
        """Raise, unless the exception described in the module's docstring applies."""
        name = destination.key_name
        if destination.is_unchecked_wanted and _is_loopback(address):
            accepted = self._accepted.setdefault(name, key)
            if accepted != key:
                raise changed_key(destination, key)
            if accepted is key:
                self._say(
                    f"{name}: its key {fingerprint(key)} is not checked: the SSH configuration "
                    "turns the check off, and the address is loopback"
                )
            return
        raise RemoteError(
            f"{destination.name}: unknown host key {fingerprint(key)}; compare it with `ssh-keygen "
            f"-lf /etc/ssh/ssh_host_ed25519_key.pub` run there, then add it: ssh-keyscan -p "
            f"{destination.port} {destination.host} >> ~/.ssh/known_hosts"
        )


class _Unknown:
    """The policy that Paramiko calls for an unknown key."""

    def __init__(self, check: KeyCheck, destination: Destination, address: str | None) -> None:
        self._check, self._destination, self._address = check, destination, address

    def missing_host_key(self, _client: Any, _hostname: str, key: Any) -> None:
        """Raise if the key is not to be accepted."""
        self._check.judge_unknown(self._destination, self._address, key)


def changed_key(destination: Destination, key: Any) -> RemoteError:
    """The error for a machine whose key has changed."""
    return RemoteError(
        f"{destination.name}: the host key CHANGED and is now {fingerprint(key)}; someone may "
        f"intercept the connection. Only if the machine was reinstalled: ssh-keygen -R "
        f"'{destination.key_name}', and add the new key"
    )


def _is_loopback(address: str | None) -> bool:
    try:
        return address is not None and ip_address(address).is_loopback
    except ValueError:
        return False
