"""Spark sessions, and work that Spark distributes."""
