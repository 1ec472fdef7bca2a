"""Figures: of sweeps, and of overlays over their underlay."""
