"""Runs that go on without a terminal: starting them, keeping them, finding out about them."""
