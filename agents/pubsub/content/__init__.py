"""Content-based publish/subscribe along trees."""
