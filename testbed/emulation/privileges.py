"""Giving up root once everything that needs it is open."""

import os
import pwd


def become_nobody() -> None:
    """From here on, no namespace can be entered and no file opened as root."""
    nobody = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(nobody.pw_gid)
    os.setuid(nobody.pw_uid)
