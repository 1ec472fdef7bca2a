"""Protocols and the runtimes that run them on sockets or in the simulator."""
