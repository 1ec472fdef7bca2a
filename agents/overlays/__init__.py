"""Overlays: which peers an agent links to."""
