"""A ring of peers: positions, neighbours, fingers, and routes to keys."""
