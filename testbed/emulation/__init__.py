"""Underlays as real networks: Mininet nodes, delay links, and a ledger to clean up by."""
