"""The topology discovery overlay built by landmark trees."""
