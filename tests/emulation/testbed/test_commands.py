"""Commands that depend on the machine: `shell`, `doctor`, and errors if it lacks something."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.cli import main
from testbed.emulation.capacity import check_capacity
from testbed.emulation.links import has_netem
from testbed.errors import EmulationError
from tests.fixtures.diamond import diamond
from topologies.underlay import Link, Router, Underlay
from topologies.underlay_file import save_underlay

TDO = str(Path(sys.executable).with_name("tdo"))


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    """A topology file with the diamond."""
    path = tmp_path / "diamond.json"
    save_underlay(diamond(), path)
    return path


def tdo(
    *arguments: object, before: list[str] | None = None, typed: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run `tdo` as a user would, optionally within another command."""
    command = [*(before or []), TDO, *map(str, arguments)]
    return subprocess.run(
        command, input=typed, capture_output=True, text=True, timeout=60, check=False
    )


def test_the_prompt_has_the_nodes_and_true_routes(topology: Path) -> None:
    done = tdo(
        "shell", topology, typed="route h1 h2\nh1 ping -c 1 h2\nh1 traceroute -n h2\nr2 ip route\n"
    )
    assert done.returncode == 0, done.stderr
    assert "r2       10.0.2.1" in done.stdout
    assert "one way 6.200 ms" in done.stdout
    assert "1 packets transmitted, 1 received" in done.stdout
    assert "10.0.4.0/24 dev r2-r4" in done.stdout
    assert " 2  10.0.2.1" in done.stdout


def test_the_prompt_continues_after_an_error(topology: Path) -> None:
    done = tdo(
        "shell", topology, "-c", "link r1 r4 down", "-c", "route h1 mars", "-c", "route",
        "-c", "link r1 r2 down", "-c", "h1 traceroute -n h2",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "link r1-r4: expected a link of this network" in done.stdout
    assert "node mars: expected a router or host" in done.stdout
    assert "route: expected two nodes" in done.stdout
    assert " 2  10.0.3.1" in done.stdout


@pytest.mark.parametrize("command", ["shell", "clean", "bench"])
def test_without_root_one_line_has_the_command_to_type(command: str, topology: Path) -> None:
    arguments = {"shell": ["shell", topology], "clean": ["clean"], "bench": ["bench", "links"]}
    nobody = ["unshare", "--user"]  # without root, but with read access to the checkout
    done = tdo(*arguments[command], before=nobody)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "expected root, found user 65534; run `sudo" in done.stderr


def test_missing_tun_devices_are_reported_before_building(topology: Path) -> None:
    hide = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /dev/net && exec "$@"', "sh"]
    done = tdo("shell", topology, "--links", "delay-line", before=hide)
    assert done.returncode == 1
    assert "expected tun devices for delay-line links, found none; load them with" in done.stderr
    assert "namespaces" not in done.stdout


@pytest.mark.skipif(has_netem(), reason="this kernel has netem")
def test_missing_netem_is_reported_before_building(topology: Path) -> None:
    done = tdo("shell", topology, "--links", "netem")
    assert done.returncode == 1
    assert "expected netem in the kernel, found none; load it with" in done.stderr
    assert "namespaces" not in done.stdout


@pytest.mark.skipif(has_netem(), reason="this kernel has netem")
def test_a_machine_without_any_kind_of_links_is_reported_before_building(topology: Path) -> None:
    hide = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /dev/net && exec "$@"', "sh"]
    done = tdo("shell", topology, before=hide)
    assert done.returncode == 1
    assert "found neither; load one with `sudo modprobe tun`" in done.stderr
    assert "namespaces" not in done.stdout


def test_a_bad_file_has_the_exit_status_of_wrong_use(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text('{"routers": [], "links": []}')
    done = tdo("shell", bad)
    assert done.returncode == 2
    assert done.stderr == f"tdo: {bad}: empty topology: expected at least one router, found none\n"


def test_the_doctor_finds_no_problem_on_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["can_emulate"] is True
    assert {"root", "network namespaces", "tun devices", "netem", "Java"} <= {
        finding["name"] for finding in report["findings"]
    }


def test_the_doctor_names_the_remedy() -> None:
    hide = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /usr/sbin && exec "$@"', "sh"]
    done = tdo("doctor", before=hide)
    assert done.returncode == 1
    assert "Emulated runs are not possible yet." in done.stdout
    cures = [line for line in done.stdout.splitlines() if line.startswith("FAIL  nft ")]
    assert cures[0].endswith("sudo apt-get install -y --no-install-recommends nftables")


def test_too_little_memory_is_reported_before_building() -> None:
    routers = tuple(Router(f"r{number}") for number in range(1, 20_001))
    links = tuple(Link.symmetric(f"r{n}", f"r{n + 1}", 10) for n in range(1, 20_000))
    with pytest.raises(EmulationError, match=r"not enough memory for 20000 .* would fit"):
        check_capacity(Underlay(routers, links), 2)


def test_too_few_open_files_are_reported_before_building() -> None:
    script = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))
from testbed.emulation.capacity import check_capacity
from topologies.underlay import *
hosts = tuple(Host(f"h{n}") for n in range(200))
links = tuple(Link.symmetric(host.name, "r1", 10) for host in hosts)
check_capacity(Underlay((Router("r1"),), links, hosts), 2)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert "expected a limit of 600, found 300; raise it with `ulimit -Hn 600`" in done.stderr
