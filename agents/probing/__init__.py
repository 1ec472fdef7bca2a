"""Route inference between hosts, as traceroute does it: probes, routes, and the map from routes."""
