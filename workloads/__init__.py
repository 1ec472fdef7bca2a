"""Workloads as data: who wants what, who publishes what and when, and who comes and goes."""
