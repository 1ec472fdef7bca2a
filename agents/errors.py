"""Errors of agents; `topologies.errors` has the root of the tree."""

from topologies.errors import TestbedError


class AgentFailed(TestbedError):
    """A protocol raised an exception: our bug, which ends the run."""

    @classmethod
    def blame(cls, host: str, now_us: int, error: Exception) -> "AgentFailed":
        """An error with the name of the agent and the time of the run."""
        return cls(f"agent {host} at {now_us / 1e6:.6f} s: {type(error).__name__}: {error}")
