"""Runs without a terminal: start, supervision and status."""
