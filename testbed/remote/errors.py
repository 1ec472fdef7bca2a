"""What goes wrong between machines."""

from topologies.errors import TestbedError


class RemoteError(TestbedError):
    """The other machine, or the way to it, said no."""


class Unreachable(RemoteError):
    """No connection came about; a machine that was there a moment ago may come back."""


class ConnectionLost(Exception):
    """The connection was cut; what was under way can be tried again on another."""
