"""Measurements compared with common tools; `tdo bench NAME` runs one."""
