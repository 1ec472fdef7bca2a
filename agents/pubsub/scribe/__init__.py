"""Scribe and iScribe: a tree for each topic, rooted at the topic's rendezvous point."""
