"""Runs on another machine over SSH: sending the project, running there, bringing results back.

`jobs` has what the commands do; the rest serves it: `ssh_settings` and `host_keys` (whom to
trust), `connection` (one connection, and going on when it is cut), `parcels` (what is sent),
`far_machine` (what is done there), `far_side` (the script that does it), `fetching`.
"""
