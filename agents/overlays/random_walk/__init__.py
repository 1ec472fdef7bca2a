"""The topology discovery overlay built by random walks."""
