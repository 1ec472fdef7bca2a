"""Sweeps: many runs of one experiment file."""
