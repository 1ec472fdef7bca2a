"""The root of the testbed's errors, and the one for topologies."""


class TestbedError(Exception):
    """An error that the user can correct; its text is one line: what, where, expected, found."""


class TopologyError(TestbedError):
    """An impossible topology: a bad file, a bad parameter, a disconnected network."""
