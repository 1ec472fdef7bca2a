"""Topic-based workloads: a peer wants topics, and an event has one."""
