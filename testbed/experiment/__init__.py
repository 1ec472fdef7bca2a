"""Experiment files: reading, checking and defaults."""
