"""The check for root of commands that create namespaces."""

import os

from testbed.errors import EmulationError


def require_root(command: str) -> None:
    """Raise an error with the right command if the user is not root."""
    if os.geteuid() != 0:
        raise EmulationError(
            f"tdo {command}: expected root, found user {os.geteuid()}; run `sudo .venv/bin/tdo "
            f"{command}`"
        )
