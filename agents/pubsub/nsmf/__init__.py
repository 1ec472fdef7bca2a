"""NSMF: events to ranges of a ring, divided at nearest subscribers and matched fingers."""
