"""The overlay of BeaConvey: a ring and fingers that a master plans from all interests."""
