"""Finding routers between hosts, as traceroute does: probes, routes and the map they give."""
