"""Errors of the testbed; `topologies.errors` has the root of the tree."""

from topologies.errors import TestbedError


class UsageError(TestbedError):
    """The command or a file given to it is wrong; the exit status is 2."""


class EmulationError(TestbedError):
    """The machine refused something, or cannot do what was asked."""


class ExperimentError(UsageError):
    """The experiment file is wrong."""
