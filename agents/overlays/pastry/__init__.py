"""Pastry: prefix routing with a routing table and a leaf set for each peer.

It follows Rowstron and Druschel, "Pastry: Scalable, decentralized object location, and routing for
large-scale peer-to-peer systems", Middleware 2001. `topologies.overlays.pastry_routes` routes in
the same way over the tables of a finished run.
"""
