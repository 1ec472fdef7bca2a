"""Commands that make namespaces need root; the others must not ask for it."""

import os

from testbed.errors import EmulationError


def require_root(command: str) -> None:
    """Say which command to type when the user is not root."""
    if os.geteuid() != 0:
        raise EmulationError(
            f"tdo {command}: expected root, found user {os.geteuid()}; run `sudo .venv/bin/tdo "
            f"{command}`"
        )
