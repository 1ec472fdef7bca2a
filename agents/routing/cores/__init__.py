"""Trees through core peers, and the minimum spanning tree as a baseline."""
