"""What runs agents: sockets, or the simulator."""
