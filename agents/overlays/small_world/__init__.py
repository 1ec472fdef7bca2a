"""Small-world overlays: a full ring of ranks, with fingers by interests or not."""
