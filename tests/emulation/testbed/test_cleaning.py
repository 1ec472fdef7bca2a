"""After a network ends in any way, nothing of it remains, and nothing else is touched."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.cli import main
from testbed.emulation.ledger import LEDGERS, RUN_VARIABLE, Ledger, clean
from testbed.emulation.network import EmulatedNetwork
from tests.fixtures.diamond import diamond
from topologies.hosts import attach_hosts
from topologies.underlay_file import save_underlay
from topologies.waxman import generate_waxman


def processes_of(run_id: str) -> list[str]:
    """The command lines of all processes with a run's id in their environment."""
    marker = f"{RUN_VARIABLE}={run_id}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if marker in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return found


def test_leaving_a_network_ends_its_processes() -> None:
    with EmulatedNetwork(diamond()) as network:
        run_id = network.ledger.run_id
        network["h1"].cmd("sleep 1000 &")
        network["h2"].cmd("env -i setsid sleep 1001 &")
        marked = processes_of(run_id)
        carriers = [command for command in marked if "delay_line" in command]
        assert len(carriers) == {"delay-line": 1, "netem": 0}[network.link_layer.kind]
        assert any("sleep" in command for command in marked)
        assert network.ledger.path.exists()
    assert processes_of(run_id) == []
    assert "sleep\x001001\x00" not in [_read_command(p) for p in Path("/proc").glob("[0-9]*")]
    assert not network.ledger.path.exists()


def _read_command(process: Path) -> str:
    try:
        return (process / "cmdline").read_text()
    except OSError:
        return ""


def test_stopping_twice_is_harmless() -> None:
    with EmulatedNetwork(diamond()) as network:
        network.stop()
    network.stop()


def test_a_failed_build_leaves_nothing() -> None:
    network = EmulatedNetwork(diamond())
    network.link_layer.build = lambda *_: 1 / 0  # type: ignore[method-assign]
    with pytest.raises(ZeroDivisionError), network:
        pass
    assert processes_of(network.ledger.run_id) == []
    assert not network.ledger.path.exists()


def test_the_file_of_a_network_of_an_earlier_boot_is_removed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ledger = Ledger.begin()
    ledger.boot, ledger.owner = "another", 1
    ledger.write()
    assert main(["clean"]) == 0
    assert ledger.run_id in capsys.readouterr().out
    assert not ledger.path.exists()


def test_a_process_that_was_starting_is_ended_too() -> None:
    ledger = Ledger.begin()
    ledger.owner_started = 0  # as if the network had ended
    ledger.write()
    late = f"sleep 0.05; {RUN_VARIABLE}={ledger.run_id} exec sleep 1000"
    starting = subprocess.Popen(["sh", "-c", late])
    clean()
    assert starting.wait(timeout=10) == -signal.SIGTERM


def test_cleaning_leaves_a_running_network_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with EmulatedNetwork(diamond()) as network:
        assert main(["clean"]) == 0
        assert f"still running: network {network.ledger.run_id}" in capsys.readouterr().out
        assert ", 0% packet loss" in network["h1"].cmd("ping -c 1", network["h2"].IP())


def _ledgers() -> list[str]:
    """The files of all networks, including other networks on this machine."""
    return [ledger.read_text() for ledger in LEDGERS.glob("*.json")]


@pytest.fixture
def strangers() -> Iterator[subprocess.Popen[bytes]]:
    """A namespace, a bridge and a process of another program, which cleaning must not touch."""
    subprocess.run(["ip", "netns", "add", "stranger"], check=True)
    subprocess.run(["ip", "link", "add", "stranger0", "type", "bridge"], check=True)
    process = subprocess.Popen(["ip", "netns", "exec", "stranger", "sleep", "1000"])
    yield process
    process.kill()
    process.wait()
    subprocess.run(["ip", "link", "del", "stranger0"], check=True)
    subprocess.run(["ip", "netns", "del", "stranger"], check=True)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_network_killed_at_any_moment_can_be_cleaned_up(
    how: signal.Signals, strangers: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    topology = tmp_path / "topology.json"
    save_underlay(attach_hosts(generate_waxman(30, seed=1), 10, seed=1), topology)
    chance = random.Random(how)
    for sixth in range(6):
        victim = subprocess.Popen(
            [sys.executable, "-c", _BUILD_AND_STOP, str(topology)], stdout=subprocess.PIPE
        )
        assert victim.stdout is not None
        victim.stdout.readline()  # Imports are done; the rest takes about 0.5 s.
        time.sleep((sixth + chance.random()) * 0.1)
        victim.send_signal(how)
        run_id = victim.communicate()[0].decode().strip()
        clean()
        assert not any(f'"owner": {victim.pid},' in ledger for ledger in _ledgers())
        assert run_id == "" or processes_of(run_id) == []
    assert strangers.poll() is None
    assert "stranger" in subprocess.run(["ip", "netns"], capture_output=True, text=True).stdout
    subprocess.run(["ip", "link", "show", "stranger0"], check=True, capture_output=True)


_BUILD_AND_STOP = """
import sys
from pathlib import Path
from testbed.emulation.network import EmulatedNetwork
from topologies.underlay_file import load_underlay
underlay = load_underlay(Path(sys.argv[1]))
print("ready", flush=True)
network = EmulatedNetwork(underlay)
print(network.ledger.run_id, flush=True)
with network:
    for router in network.routers[:3]:
        router.cmd("sleep 1000 &")
"""


def test_a_network_leaves_no_open_files() -> None:
    with EmulatedNetwork(diamond()):
        pass
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        with EmulatedNetwork(diamond()) as network:
            network["h1"].cmd("true")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
