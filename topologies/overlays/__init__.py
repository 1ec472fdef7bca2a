"""Overlays computed offline: their files, metrics, routes and the walks of publications on them."""
