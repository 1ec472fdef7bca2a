"""Measurements beside the tools people use today; `tdo bench NAME` runs one."""
