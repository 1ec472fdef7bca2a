"""The root of the testbed's errors, and the one for topologies."""


class TestbedError(Exception):
    """Something a person can mend; its text is one line: what, where, expected, found."""


class TopologyError(TestbedError):
    """A topology that cannot be: a bad file, a bad parameter, a network in pieces."""
