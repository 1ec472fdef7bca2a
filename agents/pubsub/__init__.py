"""Publish/subscribe: what forwards events over an overlay or its trees."""
