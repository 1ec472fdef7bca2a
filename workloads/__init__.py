"""Workloads as data: interests, publications and churn."""
