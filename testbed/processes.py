"""Which process is meant: ids come again, an id with its start and the machine's boot does not."""

from pathlib import Path


def start_time(pid: int) -> int:
    """When a process started, in the kernel's ticks; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return 0 if fields[0] == "Z" else int(fields[19])


def boot_id() -> str:
    """What tells this boot of the machine from every other."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def is_running(pid: int, started: int, boot: str) -> bool:
    """Whether the very process is there that had this id, start and boot."""
    return started > 0 and boot == boot_id() and start_time(pid) == started
