"""Overlays computed offline: files, metrics, routes and dissemination of publications."""
