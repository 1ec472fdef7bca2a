"""What can go wrong in an analysis, other than what the captures themselves show."""

from topologies.errors import TestbedError


class AnalysisError(TestbedError):
    """An analysis that cannot be done: no Java, no such master, nothing to read."""


class NotARunError(AnalysisError):
    """A path that is neither a run directory nor, where that will do, a folder of runs."""


class CaptureError(AnalysisError):
    """A request for captures that cannot be met: no such file, an option that means nothing."""
