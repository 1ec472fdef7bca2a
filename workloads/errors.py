"""The error of workloads that cannot be drawn."""


class WorkloadError(ValueError):
    """Settings, hosts or files from which no workload can be drawn; its text is one line."""
