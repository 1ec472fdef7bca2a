"""Errors of remote runs."""

from topologies.errors import TestbedError


class RemoteError(TestbedError):
    """The other machine, or the way to it, refused something."""


class Unreachable(RemoteError):
    """No connection could be opened; a machine that was reachable before may become so again."""


class ConnectionLost(Exception):
    """The connection was cut; the action can be repeated on another connection."""
