"""Experiments, emulated and simulated networks, and the command `tdo`."""
