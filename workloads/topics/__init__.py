"""Topic-based workloads: a peer subscribes to topics, and an event has one."""
