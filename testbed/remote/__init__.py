"""Runs on another machine over SSH: sending the project, running there, fetching results.

`jobs` implements the commands, with: `ssh_settings` and `host_keys` (trust), `connection` and
`session` (connections, and reconnecting), `parcels` (what is sent), `far_machine` (actions on the
other machine), `far_side` (the script for them), `fetching`.
"""
