"""Underlays as real networks: Mininet nodes, delay links, and a ledger for cleaning up."""
