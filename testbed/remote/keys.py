"""The keys that are offered, in order: those of files, then those of the agent.

As with OpenSSH, a key that the configuration names and that is locked, or exists only as a `.pub`
file, is used from the agent; under `IdentitiesOnly` the agent's other keys are not offered.
"""

import base64
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import paramiko
from paramiko.auth_strategy import AuthFailure, AuthStrategy, InMemoryPrivateKey, PrivateKey

from testbed.remote.ssh_settings import Destination


class Keys(AuthStrategy):  # type: ignore[misc]  # Paramiko has no types
    """The keys to try on a server, one after the other."""

    def __init__(self, destination: Destination) -> None:
        super().__init__(ssh_config=None)
        self._destination = destination

    def get_sources(self) -> Iterator[PrivateKey]:
        """The keys to try; whether a file is usable is known afterwards."""
        held, tried = _agent_keys(), set()
        for path in self._destination.identity_files:
            file = _KeyFile(self._destination.user, path)
            yield file
            public = _public_part(path) if file.pkey is None else file.pkey.asbytes()
            tried.add(public)
            if file.pkey is None:
                yield from self._held([key for key in held if key.asbytes() == public])
        if not self._destination.identities_only:
            yield from self._held([key for key in held if key.asbytes() not in tried])

    def authenticate(self, transport: Any) -> Any:
        """Try the keys; the user answers further prompts of the server in the terminal."""
        result = super().authenticate(transport)
        if result[-1].result:
            transport.auth_interactive_dumb(self._destination.user)
        return result

    def _held(self, keys: Sequence[Any]) -> Iterator[PrivateKey]:
        return (InMemoryPrivateKey(self._destination.user, key) for key in keys)


def is_locked(error: Exception) -> bool:
    """Whether one of the keys that were refused is locked."""
    tried = error.result if isinstance(error, AuthFailure) else ()
    return any(isinstance(each.result, paramiko.PasswordRequiredException) for each in tried)


class _KeyFile(PrivateKey):  # type: ignore[misc]  # Paramiko has no types
    """A key in a file; `pkey` is None until it was read."""

    def __init__(self, user: str, path: Path) -> None:
        super().__init__(user)
        self.pkey: Any = None
        self._path = path

    def authenticate(self, transport: Any) -> Any:
        try:
            self.pkey = paramiko.PKey.from_path(self._path)
        except TypeError as error:  # error of `cryptography` for a missing passphrase
            raise paramiko.PasswordRequiredException(f"{self._path} is locked") from error
        return super().authenticate(transport)


def _agent_keys() -> Sequence[Any]:
    with suppress(paramiko.SSHException, OSError):
        keys: Sequence[Any] = paramiko.Agent().get_keys()
        return keys
    return ()


def _public_part(path: Path) -> bytes | None:
    """The public key in a `.pub` file, or None without one."""
    public = path if path.suffix == ".pub" else path.with_name(f"{path.name}.pub")
    with suppress(OSError, ValueError, IndexError):
        return base64.b64decode(public.read_text().split()[1])
    return None
