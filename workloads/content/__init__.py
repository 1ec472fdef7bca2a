"""Content-based workloads: subscriptions are boxes, events are points."""
