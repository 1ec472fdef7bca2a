"""Figures of sweeps, and of overlays on their underlay."""
