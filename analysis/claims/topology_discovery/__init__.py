"""Claims T1 to T12: topology discovery and content-based routing (DEBS 2013)."""
