"""The metrics of a run, each defined once."""
