"""`scripts/vm`: errors before it begins, and the comparison of two runs; nothing is booted."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from analysis.agreement import main as compare

SCRIPT = Path(__file__).parents[3] / "scripts" / "vm"
TOOLS = ("qemu-system-x86_64", "debootstrap", "mke2fs", "ssh", "ssh-keygen", "unshare")
UNSHARE = str(shutil.which("unshare"))
METRICS: dict[str, Any] = {
    "peers": 8,
    "overlay_links": 7,
    "degree": {"max": 3},
    "events": {"published": 60, "in_vain": 85},
    "delivery": {"expected": 143, "delivered": 143, "duplicates": 0},
    "hops": {"count": 127},
    "link_stress": {"total": 792, "mean": 1.08, "max": 2},
    "messages": {"sent": 1_092},
    "messages_by_kind": {"Event": 212, "Ping": 42},
    "packets": {"total": 4_066, "dropped": 0},
    "rdp": {"mean": 2.76, "p50": 1.27, "p90": 5.15, "of_sums": 2.0},
    "rdp_of_paths": {"mean": 2.76},
    "checks": {"routes_whole": {"expected": 1_092, "found": 1_092, "ok": True}},
}


def vm(
    *arguments: str, folder: Path, before: tuple[str, ...] = (), **env: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*before, str(SCRIPT), *arguments],
        env={**os.environ, "TDO_VM_FOLDER": str(folder), **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def path_with(folder: Path, *tools: str) -> str:
    """A search path that has only these tools, which the script searches but never runs."""
    folder.mkdir()
    needed = "bash dirname cat sha256sum cut id uname mkdir flock rm df awk"
    for name in needed.split():
        (folder / name).symlink_to(str(shutil.which(name)))
    for tool in tools:
        (folder / tool).symlink_to("/bin/true")
    return str(folder)


def as_root() -> tuple[str, ...]:
    """A command prefix that makes the script see root if the tests do not run as root."""
    return () if os.geteuid() == 0 else (UNSHARE, "--user", "--map-root-user")


def test_help_describes_the_script_and_does_nothing(tmp_path: Path) -> None:
    done = vm("--help", folder=tmp_path / "vm")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: sudo scripts/vm [--clean]")
    assert "sudo env TDO_CPUS=4 scripts/vm" in done.stdout  # sudo drops earlier settings
    assert not (tmp_path / "vm").exists()


@pytest.mark.parametrize("arguments", [["--boot"], ["--clean", "now"], ["debian"]])
def test_a_wrong_argument_has_the_exit_status_of_wrong_use(
    arguments: list[str], tmp_path: Path
) -> None:
    done = vm(*arguments, folder=tmp_path / "vm")
    assert (done.returncode, done.stdout) == (2, "")
    found = " ".join(arguments)
    assert done.stderr == f"scripts/vm: expected no argument, --clean or --help, found {found}\n"


def test_a_size_that_is_no_number_has_the_exit_status_of_wrong_use(tmp_path: Path) -> None:
    done = vm(folder=tmp_path / "vm", TDO_MEMORY_MB="4G")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "scripts/vm: TDO_MEMORY_MB: expected a whole number above 0, found 4G\n"


def test_the_script_requires_root(tmp_path: Path) -> None:
    ordinary = ("setpriv", "--reuid=65534") if os.geteuid() == 0 else ()
    done = vm(folder=tmp_path / "vm", before=ordinary)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("scripts/vm: expected root, found user ")
    assert done.stderr.endswith("; run it with sudo\n")


def test_without_qemu_the_error_names_the_package(tmp_path: Path) -> None:
    path = path_with(tmp_path / "bin", *(tool for tool in TOOLS if "qemu" not in tool))
    done = vm(folder=tmp_path / "vm", before=as_root(), PATH=path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "scripts/vm: expected QEMU, debootstrap and their like, found no qemu-system-x86; "
        "apt-get install -y --no-install-recommends qemu-system-x86\n"
    )
    assert not (tmp_path / "vm").exists()


def test_a_disk_that_is_too_small_is_found_before_it_is_full(tmp_path: Path) -> None:
    folder = tmp_path / "vm"
    folder.mkdir()
    small = f'/bin/mount -t tmpfs -o size=1200m none {folder} && exec "$0" "$@"'
    before = (UNSHARE, "--mount", *as_root()[1:], "/bin/sh", "-c", small)
    done = vm(folder=folder, before=before, PATH=path_with(tmp_path / "bin", *TOOLS))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"scripts/vm: {folder}: expected 8 GB free, found 1 GB; make room, or set TDO_VM_FOLDER to "
        "a folder on another disk\n"
    )


def test_only_one_script_at_a_time_works_in_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "vm"
    folder.mkdir()
    before = (*as_root(), "flock", str(folder / "lock"))
    done = vm(folder=folder, before=before, PATH=path_with(tmp_path / "bin", *TOOLS))
    assert done.returncode == 1
    assert f"{folder}: expected no other scripts/vm using it, found one" in done.stderr


def test_cleaning_removes_only_files_of_the_script(tmp_path: Path) -> None:
    for name in ("machine-0123456789abcdef/etc", "machine-0123456789abcdef.partial", "mine"):
        (tmp_path / "vm" / name).mkdir(parents=True)
    (tmp_path / "vm" / "console.log").touch()
    done = vm("--clean", folder=tmp_path / "vm")
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.name for path in (tmp_path / "vm").iterdir()] == ["mine"]
    (tmp_path / "vm" / "mine").rmdir()
    assert vm("--clean", folder=tmp_path / "vm").returncode == 0
    assert not (tmp_path / "vm").exists()
    assert vm("--clean", folder=tmp_path / "vm").returncode == 0


def test_the_machine_of_another_running_script_is_not_removed(tmp_path: Path) -> None:
    folder = tmp_path / "vm"
    (folder / "machine-0123456789abcdef").mkdir(parents=True)
    done = vm("--clean", folder=folder, before=("flock", str(folder / "lock")))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"scripts/vm: {folder}: expected no other scripts/vm using it, found one; wait for "
        "it or stop it\n"
    )
    assert (folder / "machine-0123456789abcdef").exists()


def test_the_script_ends_if_results_cannot_be_kept(tmp_path: Path) -> None:
    ends = 'eval "$(sed -n "/^refuse()/p; /^keep_results()/,/^}/p" "$0")"; keep_results; echo on'
    done = subprocess.run(
        ["bash", "-c", f"set -euo pipefail; project=nowhere; {ends}", str(SCRIPT)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "scripts/vm: results/in-vm: expected room for both runs, found none" in done.stderr


def analysed_run(folder: Path, verdict: str = "valid", **changes: Any) -> str:
    (folder / "analysis").mkdir(parents=True)
    (folder / "analysis" / "metrics.json").write_text(json.dumps(METRICS | changes))
    figures = {"links": {"kind": folder.name}, "capture": {"dropped": 17}}
    reasons = [] if verdict == "valid" else ["late"]
    document = {"verdict": verdict, "reasons": reasons, "figures": figures}
    (folder / "verdict.json").write_text(json.dumps(document))
    return str(folder)


@pytest.mark.parametrize(
    "changes, status, line",
    [
        ({}, 0, "the same counts, and RDP within 5 %"),
        ({"rdp": {**METRICS["rdp"], "mean": 2.87}}, 0, "the same counts"),
        ({"rdp": {**METRICS["rdp"], "mean": 2.91}}, 1, "penalty, mean: expected at most 5 % apart"),
        ({"hops": {"count": 126}}, 1, "differs: hops: expected the same in both, found {'count': "),
        ({"messages_by_kind": {"Event": 213}}, 1, "events sent: expected the same in both"),
        ({"messages_by_kind": {"Event": 212, "Ping": 40}}, 0, "the same counts"),
        ({"checks": {"copies": {"expected": 2, "found": 1, "ok": False}}}, 1, "check copies:"),
        ({"verdict": "degraded"}, 3, "netem: late"),
        ({"rdp": None}, 1, "expected events delivered in both runs, found 2.76 and none"),
        ({"rdp": {"count": 0}}, 1, "expected events delivered in both runs, found 2.76 and none"),
        ({"link_stress": None, "packets": None, "messages_by_kind": None}, 1, "differs: events se"),
    ],
)
def test_runs_agree_or_differences_are_printed(
    changes: dict[str, Any],
    status: int,
    line: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    runs = [analysed_run(tmp_path / "delay-line"), analysed_run(tmp_path / "netem", **changes)]
    assert compare(runs) == status
    assert line in capsys.readouterr().out


def test_packets_that_links_dropped_are_not_reported_as_missing_in_the_capture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lossy = {"packets": {"total": 4_066, "dropped": 9}}
    compare([analysed_run(tmp_path / name, **lossy) for name in ("delay-line", "netem")])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["packets", "not", "captured", "17", "17"] in rows


def test_only_analysed_runs_can_be_compared(tmp_path: Path) -> None:
    assert compare([str(tmp_path), str(tmp_path)]) == 2
    assert compare([str(tmp_path)]) == 2
