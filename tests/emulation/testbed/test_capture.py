"""Captures have every packet once for each link that it crosses, according to Wireshark's tools."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.cli import main
from testbed.emulation.capture import Capture
from testbed.emulation.ledger import clean
from testbed.emulation.network import EmulatedNetwork
from testbed.errors import EmulationError
from testbed.run.reasons import emulation_reasons
from tests.fixtures.diamond import diamond
from topologies.underlay import Channel
from topologies.underlay_file import save_underlay

from .test_cleaning import processes_of
from .test_runs import SMALL, perform


def tshark(path: Path, *fields: str) -> list[tuple[str, ...]]:
    """Some fields of every packet in a capture, read by tshark."""
    wanted = [word for field in fields for word in ("-e", field)]
    done = subprocess.run(
        ["tshark", "-r", str(path), "-T", "fields", *wanted],
        capture_output=True,
        text=True,
        check=True,
    )
    return [tuple(line.split("\t")) for line in done.stdout.splitlines()]


def capinfos(path: Path) -> str:
    """The output of capinfos for a capture; capinfos fails if the file is damaged."""
    done = subprocess.run(["capinfos", "-M", str(path)], capture_output=True, text=True, check=True)
    return done.stdout


def packets_in(folder: Path) -> int:
    """The packets in all files of a capture."""
    counts = [
        re.search(r"Number of packets: +(\d+)", capinfos(file)) for file in folder.glob("*.pcapng")
    ]
    return sum(int(count[1]) for count in counts if count)


def send(network: EmulatedNetwork, count: int, size: int = 64) -> None:
    """Let h1 send datagrams to h2, slowly enough for the links."""
    with network.inside("h1"):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for number in range(count):
        sender.sendto(bytes(size), (network.underlay.address["h2"], 9))
        if number % 20 == 0:
            time.sleep(0.002)
    sender.close()
    await_quiet(network)


def await_quiet(network: EmulatedNetwork) -> None:
    """Wait until links carry no more packets; this takes longer on a busy machine."""
    before, deadline = -1, time.monotonic() + 30
    while carried(network) != before:
        assert time.monotonic() < deadline
        before = carried(network)
        time.sleep(0.2)


def carried(network: EmulatedNetwork) -> int:
    return int(network.counts()["forwarded"])


def test_a_ping_is_once_on_every_link_and_direction_of_its_route(
    network: EmulatedNetwork, tmp_path: Path
) -> None:
    start = time.time() - network.clock.held_ns / 1e9
    with Capture(network, tmp_path / "captures") as capture:
        assert "1 received" in network["h1"].cmd("ping -n -c 1", network["h2"].IP())
        figures = capture.finish()
    (file,) = (tmp_path / "captures").iterdir()
    rows = tshark(file, "frame.interface_name", "icmp.type", "ip.ttl", "frame.time_epoch")
    there, back = "8", "0"
    assert [row[:3] for row in rows] == [
        ("h1-r1", there, "64"),
        ("r1-r2", there, "63"),
        ("r2-r4", there, "62"),
        ("r4-h2", there, "61"),
        ("h2-r4", back, "64"),
        ("r4-r2", back, "63"),
        ("r2-r1", back, "62"),
        ("r1-h1", back, "61"),
    ]
    times = [float(row[3]) for row in rows]
    assert start < times[0] < times[-1] < time.time()
    assert figures["packets"] == 8
    assert figures["dropped"] == figures["unwritten"] == 0
    assert (figures["bytes"], figures["files"]) == (file.stat().st_size, 1)


def test_capture_times_of_a_packet_differ_by_the_delays_of_links(
    network: EmulatedNetwork, tmp_path: Path
) -> None:
    if network.link_layer.kind != "delay-line":
        pytest.skip("netem's packets are captured as they leave the link")
    with Capture(network, tmp_path / "captures"):
        network["h1"].cmd("ping -n -c 20 -i 0.02", network["h2"].IP())
    (file,) = (tmp_path / "captures").iterdir()
    rows = tshark(file, "frame.interface_name", "icmp.type", "icmp.seq", "frame.time_epoch")
    time_at = {(name, seq): float(at) for name, kind, seq, at in rows if kind == "8"}
    for before, after, delay_s in (
        ("h1-r1", "r1-r2", 0.0005), ("r1-r2", "r2-r4", 0.002), ("r2-r4", "r4-h2", 0.003),
    ):  # fmt: skip
        took = sorted(time_at[after, str(n)] - time_at[before, str(n)] for n in range(1, 21))
        assert took[10] == pytest.approx(delay_s, abs=0.0005)


def test_packet_counts_equal_those_of_the_links(network: EmulatedNetwork, tmp_path: Path) -> None:
    with Capture(network, tmp_path / "captures") as capture:
        send(network, 5_000)
        figures = capture.finish()
    assert figures["packets"] == packets_in(tmp_path / "captures") == carried(network)
    assert figures["dropped"] == 0
    (file,) = (tmp_path / "captures").iterdir()
    seen = Counter(name for (name,) in tshark(file, "frame.interface_name"))
    for link, (ab, ba) in network.counts()["by_link"].items():
        a, b = link.split("-")
        assert (seen[link], seen[f"{b}-{a}"]) == (ab, ba)


def test_every_link_end_is_an_interface_with_its_counts(
    network: EmulatedNetwork, tmp_path: Path
) -> None:
    with Capture(network, tmp_path / "captures"):
        send(network, 10)
    (file,) = (tmp_path / "captures").iterdir()
    shown = capinfos(file)
    ends = {link.name for link in network.underlay.links}
    ends |= {f"{link.b}-{link.a}" for link in network.underlay.links}
    assert set(re.findall(r"Name = (\S+)", shown)) == ends
    assert shown.count("Number of stat entries = 1") == len(ends)
    assert set(re.findall(r"Time precision = (\S+)", shown)) == {"nanoseconds"}
    assert "Capture application: tdo-testbed" in shown


def test_packets_that_a_link_loses_are_captured_at_the_sender(tmp_path: Path) -> None:
    with (
        EmulatedNetwork(diamond(h1_r1=Channel(500, loss_percent=50))) as network,
        Capture(network, tmp_path / "captures") as capture,
    ):
        if network.link_layer.kind != "delay-line":
            pytest.skip("netem's packets are captured as they leave the link")
        send(network, 200)
        figures = capture.finish()
        counts = network.counts()
    assert counts["lost"] > 50
    assert figures["packets"] == counts["forwarded"] + counts["lost"]


def test_headers_are_cut_and_lengths_are_true(network: EmulatedNetwork, tmp_path: Path) -> None:
    with Capture(network, tmp_path / "captures", "headers"):
        send(network, 10, size=1_000)
        send(network, 10, size=10)
    (file,) = (tmp_path / "captures").iterdir()
    rows = tshark(file, "frame.interface_name", "frame.cap_len", "frame.len", "udp.length")
    lengths = Counter(row[1:] for row in rows if row[0] == "h1-r1")
    assert lengths == {("96", "1028", "1008"): 10, ("38", "38", "18"): 10}


def test_large_packets_are_complete(network: EmulatedNetwork, tmp_path: Path) -> None:
    with Capture(network, tmp_path / "captures"):
        send(network, 10, size=1_472)
    (file,) = (tmp_path / "captures").iterdir()
    assert set(tshark(file, "frame.cap_len", "frame.len")) >= {("1500", "1500")}


def test_each_rotated_file_is_complete(network: EmulatedNetwork, tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    with Capture(network, folder, file_bytes=50_000) as capture:
        send(network, 1_000)
        figures = capture.finish()
    files = sorted(folder.iterdir())
    assert [file.name for file in files[:2]] == ["packets-000.pcapng", "packets-001.pcapng"]
    assert len(files) == figures["files"] > 8
    assert max(file.stat().st_size for file in files[:-1]) <= 50_000
    assert sum(file.stat().st_size for file in files) == figures["bytes"]
    assert packets_in(folder) == figures["packets"] == carried(network)
    for file in files:
        assert "Name = r2-r4" in capinfos(file)


def test_files_stay_below_the_disk_limit_and_missing_packets_are_counted(
    network: EmulatedNetwork, tmp_path: Path
) -> None:
    folder = tmp_path / "captures"
    with Capture(network, folder, max_mb=1, file_bytes=300_000) as capture:
        send(network, 4_000)
        figures = capture.finish()
    assert figures["bytes"] == sum(file.stat().st_size for file in folder.iterdir())
    assert 900_000 < figures["bytes"] <= 1_000_000
    assert figures["packets"] == packets_in(folder)
    assert figures["packets"] + figures["unwritten"] == carried(network)
    (reason,) = judge_capture(figures)
    assert f"{figures['unwritten']:,} packets are not in the capture" in reason
    assert "the limit of 1 MB was reached" in reason


def judge_capture(figures: dict[str, Any]) -> list[str]:
    """The reasons in the verdict of a run whose only possible fault is the capture."""
    capture = {"vanished": 0, **figures}
    found = emulation_reasons({"links": {"forwarded": 1}, "processes": [], "capture": capture})
    return [reason.text for reason in found]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], check=True)
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_ends_the_capture_but_not_the_run(
    network: EmulatedNetwork, small_disk: Path
) -> None:
    folder = small_disk / "captures"
    with Capture(network, folder, max_mb=1_000) as capture:
        send(network, 4_000)
        figures = capture.finish()
    assert figures["unwritten"] > 0
    assert figures["packets"] == packets_in(folder) > 1_000
    assert figures["packets"] + figures["unwritten"] == carried(network)
    (reason,) = judge_capture(figures)
    assert "No space left on device" in reason


def test_dropped_packets_are_a_reason_of_the_verdict() -> None:
    whole = {"packets": 10, "dropped": 0, "unwritten": 0, "full": None}
    assert judge_capture(whole) == []
    (reason,) = judge_capture(whole | {"dropped": 3})
    assert reason.startswith("3 packets are not in the capture")
    (reason,) = judge_capture(whole | {"vanished": 5})
    assert reason.startswith("5 of 10 captured packets are unknown")
    (reason,) = judge_capture({"error": "it broke"})
    assert "it broke" in reason


def test_a_link_that_fails_and_recovers_is_still_captured(
    network: EmulatedNetwork, tmp_path: Path
) -> None:
    with Capture(network, tmp_path / "captures") as capture:
        send(network, 10)
        network.set_link("r2", "r4", up=False)
        send(network, 10)
        network.set_link("r2", "r4", up=True)
        send(network, 10)
        figures = capture.finish()
    (file,) = (tmp_path / "captures").iterdir()
    seen = Counter(name for (name,) in tshark(file, "frame.interface_name"))
    assert (seen["h1-r1"], seen["r2-r4"], seen["r3-r4"]) == (30, 20, 10)
    assert figures["packets"] == carried(network)


def test_the_capture_process_and_its_files_do_not_belong_to_root(
    network: EmulatedNetwork, tmp_path: Path
) -> None:
    tmp_path.chmod(0o700)  # not readable by others, like /root, where results may be
    with Capture(network, tmp_path / "captures") as capture:
        (process,) = capture.processes
        status = Path(f"/proc/{process}/status").read_text()
        assert re.search(r"^Uid:\s+65534\s+65534\s+65534", status, re.MULTILINE)
        assert processes_of(network.ledger.run_id)
    owned = (tmp_path / "captures", *(tmp_path / "captures").iterdir())
    assert {path.stat().st_uid for path in owned} == {0}


def test_an_existing_folder_is_refused(network: EmulatedNetwork, tmp_path: Path) -> None:
    with (
        pytest.raises(EmulationError, match="expected to make a new folder"),
        Capture(network, tmp_path),
    ):
        pass
    assert tmp_path.stat().st_uid == 0


def test_a_capture_that_dies_does_not_end_the_run(network: EmulatedNetwork, tmp_path: Path) -> None:
    with Capture(network, tmp_path / "captures") as capture:
        os.kill(capture.processes[0], signal.SIGKILL)
        figures = capture.finish()
    assert "status -9" in figures["error"]
    assert ", 0% packet loss" in network["h1"].cmd("ping -c 1", network["h2"].IP())


@pytest.mark.parametrize("victim", ["run", "capture"])
def test_after_a_kill_no_process_is_left_and_the_file_is_readable(
    victim: str, tmp_path: Path
) -> None:
    topology, folder = tmp_path / "topology.json", tmp_path / "captures"
    save_underlay(diamond(), topology)
    run = subprocess.Popen(
        [sys.executable, "-c", _CAPTURE_PINGS, str(topology), str(folder)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    run_id, process = run.stdout.readline().split()
    time.sleep(1.5)
    os.kill(run.pid if victim == "run" else int(process), signal.SIGKILL)
    if victim == "capture":
        time.sleep(0.2)
        run.kill()
    run.wait()
    deadline = time.monotonic() + 10
    while any("capture_process" in command for command in processes_of(run_id)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    clean()
    assert processes_of(run_id) == []
    (file,) = folder.iterdir()
    assert len(tshark(file, "ip.ttl")) > 8


_CAPTURE_PINGS = """
import sys, time
from pathlib import Path
from testbed.emulation.capture import Capture
from testbed.emulation.network import EmulatedNetwork
from topologies.underlay_file import load_underlay
with EmulatedNetwork(load_underlay(Path(sys.argv[1]))) as network:
    with Capture(network, Path(sys.argv[2])) as capture:
        network["h1"].sendCmd("ping -i 0.05", network["h2"].IP())
        print(network.ledger.run_id, *capture.processes, flush=True)
        time.sleep(60)
"""


@pytest.mark.parametrize("what", ["all", "headers"])
def test_a_run_has_its_packets_with_their_times(what: str, tmp_path: Path) -> None:
    outcome = perform(replace(SMALL, capture=what), tmp_path)
    figures = outcome.figures["capture"]
    folder = outcome.path / "captures"
    assert figures["packets"] == packets_in(folder) == outcome.figures["links"]["forwarded"]
    assert figures["dropped"] == figures["vanished"] == 0
    clock = json.loads((outcome.path / "verdict.json").read_text())["figures"]["clock"]
    start_s = (clock["origin_ns"] + clock["realtime_offset_ns"]) / 1e9
    (file,) = folder.iterdir()
    run_times = [float(at) - start_s for (at,) in tshark(file, "frame.time_epoch")]
    assert 0 <= min(run_times) < 1.0
    assert SMALL.duration_s - 2 < max(run_times) < SMALL.duration_s + 1


def test_a_run_without_capture_has_no_folder_for_captures(tmp_path: Path) -> None:
    outcome = perform(replace(SMALL, duration_s=1.0, capture="none"), tmp_path)
    assert not (outcome.path / "captures").exists()
    assert "capture" not in outcome.figures


def test_the_disk_limit_of_the_experiment_is_that_of_the_capture(tmp_path: Path) -> None:
    overlay = {"kind": "hello", "greetings": 400, "period_us": 5_000}
    outcome = perform(replace(SMALL, overlay=overlay, capture_max_mb=1), tmp_path)
    assert outcome.verdict == "degraded"
    assert outcome.figures["capture"]["bytes"] <= 1_000_000
    assert any("the limit of 1 MB was reached" in reason for reason in outcome.reasons)


def test_the_shell_captures_packets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topology = tmp_path / "topology.json"
    save_underlay(diamond(), topology)
    folder = tmp_path / "captures"
    options = ["--capture", str(folder), "-c", "h1 ping -c 1 h2"]
    assert main(["shell", str(topology), *options]) == 0
    assert f"8 packets in {folder}, 0 dropped" in capsys.readouterr().out
    assert packets_in(folder) == 8
