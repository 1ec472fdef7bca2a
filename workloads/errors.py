"""The error of workloads that cannot be drawn."""


class WorkloadError(ValueError):
    """The settings, the hosts and the files given do not make a workload; its text is one line."""
