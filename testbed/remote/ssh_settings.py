"""The address and the login of a host: the user's SSH configuration, read as `ssh` reads it.

`ssh -G` resolves a configuration with all it includes and matches; where there is no `ssh`,
Paramiko's reader does it, without `Include`.
"""

import getpass
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import paramiko

from testbed.errors import UsageError

_SSH_PORT = 22
_DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")
_DEFAULT_KNOWN_HOSTS = "~/.ssh/known_hosts ~/.ssh/known_hosts2"
_GLOBAL_KNOWN_HOSTS = "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2"
_NOTHING = ("/dev/null", "none")
_NO = ("no", "false", "off")


@dataclass(frozen=True, slots=True)
class Destination:
    """A machine as the configuration describes it."""

    name: str  # as typed
    host: str
    port: int
    user: str
    identity_files: tuple[Path, ...]
    identities_only: bool
    known_hosts: tuple[Path, ...]
    key_alias: str | None
    proxy_jump: str | None
    proxy_command: str | None
    is_unchecked_wanted: bool  # StrictHostKeyChecking no, and UserKnownHostsFile /dev/null
    config: Path | None = None

    @property
    def key_name(self) -> str:
        """The name under which `known_hosts` has this machine's key."""
        if self.key_alias:
            return self.key_alias
        return self.host if self.port == _SSH_PORT else f"[{self.host}]:{self.port}"


def find_destination(name: str, config: Path | None = None) -> Destination:
    """The machine of `HOST` or `USER@HOST`; `config` is read instead of the user's file."""
    if name.startswith("-") or not name:
        raise UsageError(f"{name or 'HOST'}: expected a host, as in me@example.org")
    if config is not None and not config.is_file():
        raise UsageError(f"--ssh-config {config}: expected a file, found none")
    found = _ask_ssh(name, config) if shutil.which("ssh") else _ask_paramiko(name, config)
    proxy_jump, proxy_command = _given(found, "proxyjump"), _given(found, "proxycommand")
    own_files = found.get("userknownhostsfile", _DEFAULT_KNOWN_HOSTS).split()
    remembers_nothing = all(file in _NOTHING for file in own_files)
    if remembers_nothing:  # so hosts that the user has verified before stay known
        own_files = _DEFAULT_KNOWN_HOSTS.split()
    known_files = (*own_files, *found.get("globalknownhostsfile", _GLOBAL_KNOWN_HOSTS).split())
    return Destination(
        name=name,
        host=found["hostname"],
        port=int(found.get("port", _SSH_PORT)),
        user=found.get("user") or getpass.getuser(),
        identity_files=_existing(found.get("identityfile", "").split("\n")),
        identities_only=found.get("identitiesonly", "no") not in _NO,
        known_hosts=_existing(known_files),
        key_alias=_given(found, "hostkeyalias"),
        proxy_jump=proxy_jump,
        proxy_command=None if proxy_jump else proxy_command,
        is_unchecked_wanted=remembers_nothing and found.get("stricthostkeychecking") in _NO,
        config=config,
    )


def _ask_ssh(name: str, config: Path | None) -> dict[str, str]:
    """The settings that `ssh` uses; all values of a key with several values, line by line."""
    chosen = [] if config is None else ["-F", str(config)]
    asked = subprocess.run(
        ["ssh", "-G", *chosen, "--", name], capture_output=True, text=True, check=False
    )
    if asked.returncode != 0:
        words = asked.stderr.strip().splitlines()
        raise UsageError(f"{name}: expected a host that ssh can resolve, found: {words[-1:]}")
    found: dict[str, str] = {}
    for line in asked.stdout.splitlines():
        key, _, value = line.partition(" ")
        found[key] = f"{found[key]}\n{value}" if key in found else value
    return found


def _ask_paramiko(name: str, config: Path | None) -> dict[str, str]:
    user, _, host = name.rpartition("@")
    path = config or Path("~/.ssh/config").expanduser()
    try:
        settings = paramiko.SSHConfig.from_path(str(path)) if path.exists() else None
    except paramiko.ConfigParseError as error:
        raise UsageError(f"{path}: expected an SSH configuration, found: {error}") from error
    found: dict[str, str] = {"hostname": host}
    for key, value in (settings.lookup(host) if settings else {}).items():
        if value is not None:
            found[key] = "\n".join(value) if isinstance(value, list) else value
    found.setdefault("identityfile", "\n".join(f"~/.ssh/{key}" for key in _DEFAULT_KEYS))
    return found | ({"user": user} if user else {})


def _given(found: dict[str, str], key: str) -> str | None:
    value = found.get(key)
    return None if value in (None, "", "none") else value


def _existing(files: tuple[str, ...] | list[str]) -> tuple[Path, ...]:
    paths = (Path(file).expanduser() for file in files if file)
    return tuple(path for path in paths if path.is_file())
