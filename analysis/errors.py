"""Errors of an analysis, except damage of captures."""

from topologies.errors import TestbedError


class AnalysisError(TestbedError):
    """An analysis that is impossible: no Java, no such master, nothing to read."""


class NotARunError(AnalysisError):
    """A path that is neither a run directory nor, where that is accepted, a folder of runs."""


class CaptureError(AnalysisError):
    """A request for captures that is impossible: no such file, an unknown option."""
