"""Underlays in the simulator: setting the stage for `agents.runtime.simulator`."""
