"""SkipNet's routing by numeric identifier (Harvey et al., USITS 2003) on the rings of a skip graph.

The numeric identifier of a peer is its membership vector. `topologies.overlays.skip_net` routes in
the same way over the tables of a finished run.
"""
