"""Routing: trees on the links of an overlay."""
