"""Identification of processes: by id, start time and boot, because ids are reused."""

from pathlib import Path


def start_time(pid: int) -> int:
    """The start time of a process in the kernel's ticks; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return 0 if fields[0] == "Z" else int(fields[19])


def boot_id() -> str:
    """The identity of the present boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def is_running(pid: int, started: int, boot: str) -> bool:
    """Whether the process with this id, start time and boot is running."""
    return started > 0 and boot == boot_id() and start_time(pid) == started
