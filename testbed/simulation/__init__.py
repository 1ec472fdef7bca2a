"""Simulated runs: experiments on `agents.runtime.simulator`."""
