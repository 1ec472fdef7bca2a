"""The runtimes of agents: sockets and the simulator."""
