"""Errors of agents; `topologies.errors` has the root of the tree."""

from topologies.errors import TestbedError


class AgentFailed(TestbedError):
    """A protocol raised an exception: our bug, which ends the run."""
