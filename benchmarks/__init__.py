"""Measurements of the testbed, compared with common tools; `tdo bench NAME` runs one."""
