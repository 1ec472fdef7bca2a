"""Experiments on real networks: every record is written, and agents handle faults."""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from ipaddress import IPv4Address
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from scapy.utils import RawPcapNgReader

from agents.agent import Agent, Ping
from agents.overlays.hello import Hello, HelloProtocol, Welcome
from agents.protocol import Surroundings
from agents.wire.codec import PORT, Datagram, encode
from testbed.cli import main
from testbed.emulation.agents import AgentProcesses
from testbed.emulation.faults import EmulatedFaults
from testbed.emulation.network import EmulatedNetwork
from testbed.experiment.faults import Fault
from testbed.experiment.file import Experiment
from testbed.run.agents import assign_agents
from testbed.run.lifecycle import Outcome, run_experiment
from testbed.run.underlay import make_underlay
from topologies.routes import Routes
from topologies.topology import TopologySettings
from topologies.underlay_file import load_underlay

SMALL = Experiment(
    name="small",
    duration_s=3.0,
    contacts=2,
    start_over_s=0.3,
    topology=TopologySettings(routers=10, hosts=6),
    overlay={"kind": "hello", "greetings": 3, "period_us": 300_000},
)
UNFIT = ("malformed", "of_another_run", "misaddressed", "impostor", "unexpected")  # as counted


def perform(experiment: Experiment, folder: Path) -> Outcome:
    return run_experiment(experiment, "", folder, say=lambda _: None)


def records(run: Path) -> list[dict[str, Any]]:
    rows = pq.read_table(run / "agents" / "records.parquet").to_pylist()
    return [row | {"values": json.loads(row["values"])} for row in rows]


def of_kind(rows: list[dict[str, Any]], what: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["what"] == what]


@pytest.mark.parametrize("per_process", [1, 4])
def test_every_greeting_delay_and_route_is_recorded(per_process: int, tmp_path: Path) -> None:
    outcome = perform(replace(SMALL, agents_per_process=per_process), tmp_path)
    rows = records(outcome.path)
    underlay = load_underlay(outcome.path / "underlay.json")
    routes = Routes(underlay)
    assert len(of_kind(rows, "welcomed")) == 6 * 2 * 3
    inferred = of_kind(rows, "route_inferred")
    assert len(inferred) == 6 * 2
    for row in inferred:
        peer = underlay.name_at[str(IPv4Address(row["values"]["peer"]))]
        seen = [
            underlay.name_at[str(IPv4Address(int(router)))]
            for router in row["values"]["routers"].split()
        ]
        assert seen == routes.path(row["host"], peer)[1:-1]
    for row in of_kind(rows, "delay_measured"):
        peer = underlay.name_at[str(IPv4Address(row["values"]["peer"]))]
        there_us, back_us = (
            routes.path_delay_us(row["host"], peer),
            routes.path_delay_us(peer, row["host"]),
        )
        assert row["values"]["min_us"] >= there_us + back_us
    assert (tmp_path / "small" / "latest").resolve() == outcome.path
    assert json.loads((outcome.path / "verdict.json").read_text())["verdict"] == outcome.verdict
    assert list(tmp_path.rglob("*.partial")) == []


def test_both_backends_send_the_same_messages(tmp_path: Path) -> None:
    counts = {}
    for backend, time_scale in (("emulation", 4.0), ("simulation", 1.0)):
        wanted = replace(SMALL, backend=backend, time_scale=time_scale)
        rows = records(perform(wanted, tmp_path).path)
        ended = {row["host"]: row["values"] for row in of_kind(rows, "agent_ended")}
        welcomed = Counter((row["host"], row["values"]["by"]) for row in of_kind(rows, "welcomed"))
        routes = {
            (row["host"], row["values"]["peer"]): row["values"]["routers"]
            for row in of_kind(rows, "route_inferred")
        }
        sent = {host: (values["sent"], values["received"]) for host, values in ended.items()}
        counts[backend] = (sent, welcomed, routes)
    assert counts["emulation"] == counts["simulation"]


def test_a_time_scale_does_not_change_the_records(tmp_path: Path) -> None:
    outcome = perform(replace(SMALL, time_scale=3.0, duration_s=2.0), tmp_path)
    underlay = load_underlay(outcome.path / "underlay.json")
    routes = Routes(underlay)
    ratios = []
    for row in of_kind(records(outcome.path), "delay_measured"):
        peer = underlay.name_at[str(IPv4Address(row["values"]["peer"]))]
        there_us = routes.path_delay_us(row["host"], peer)
        back_us = routes.path_delay_us(peer, row["host"])
        ratios.append(row["values"]["min_us"] / (there_us + back_us))
    # Never early, and less than three times as long: otherwise the scale was not removed.
    assert 0.999 <= min(ratios) < 2.5


@pytest.mark.parametrize("per_process", [1, 64])
def test_a_killed_agent_is_reported_missing_and_a_restarted_one_greets_again(
    per_process: int, tmp_path: Path
) -> None:
    faults = (
        Fault(0.5, "kill-agent", "h2"),
        Fault(1.0, "stop-agent", "h2"),  # A killed agent sends no goodbye.
        Fault(1.5, "restart-agent", "h2"),
    )
    outcome = perform(
        replace(SMALL, agents_per_process=per_process, duration_s=4.0, faults=faults), tmp_path
    )
    by_h2 = [row for row in of_kind(records(outcome.path), "welcomed") if row["host"] == "h2"]
    assert any(row["time_us"] < 700_000 for row in by_h2)
    assert not any(700_000 < row["time_us"] < 1_500_000 for row in by_h2)
    assert sum(row["time_us"] > 1_500_000 for row in by_h2) == 2 * 3


@pytest.mark.parametrize("backend", ["emulation", "simulation"])
def test_faults_at_the_same_time_are_all_injected(backend: str, tmp_path: Path) -> None:
    kills = tuple(Fault(1.0, "kill-agent", host) for host in ("h1", "h2", "h3"))
    outcome = perform(replace(SMALL, backend=backend, faults=kills), tmp_path)
    ended = {row["host"] for row in of_kind(records(outcome.path), "agent_ended")}
    assert ended == {"h4", "h5", "h6"}


@pytest.mark.parametrize("per_process", [1, 64])
def test_a_running_agent_can_be_restarted(per_process: int, tmp_path: Path) -> None:
    faults = (Fault(1.5, "restart-agent", "h2"),)
    outcome = perform(replace(SMALL, agents_per_process=per_process, faults=faults), tmp_path)
    by_h2 = [row for row in of_kind(records(outcome.path), "welcomed") if row["host"] == "h2"]
    assert len(by_h2) == 2 * 2 * 3


def test_a_run_that_overloads_the_machine_ends(tmp_path: Path) -> None:
    overlay = {"kind": "hello", "greetings": 10_000_000, "period_us": 1}
    outcome = perform(replace(SMALL, duration_s=1.0, overlay=overlay), tmp_path)
    assert len(of_kind(records(outcome.path), "agent_ended")) == 6


def test_the_clock_stands_still_with_the_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Greetings are 20 ms of run time apart although the delay line is stopped for a second."""

    def stop_links(self: EmulatedFaults, _fault: Fault) -> None:
        network = self._network
        if network.link_layer.kind != "delay-line":
            pytest.skip("netem's clock is the system's")
        (line,) = network.link_layer.processes
        os.kill(line, signal.SIGSTOP)
        time.sleep(1.0)
        os.kill(line, signal.SIGCONT)

    monkeypatch.setattr(EmulatedFaults, "restart_agent", stop_links)
    greeting = {"kind": "hello", "greetings": 100, "period_us": 20_000}
    faults = (Fault(1.5, "restart-agent", "h2"),)
    outcome = perform(replace(SMALL, overlay=greeting, faults=faults, capture="headers"), tmp_path)
    assert 0.9 < outcome.figures["held_s"] < 2.0
    welcomed_us = sorted(row["time_us"] for row in of_kind(records(outcome.path), "welcomed"))
    assert len(welcomed_us) == 6 * 2 * 100
    assert max(later - earlier for earlier, later in pairwise(welcomed_us)) < 500_000
    (capture,) = (outcome.path / "captures").iterdir()
    with RawPcapNgReader(str(capture)) as packets:
        times_s = [((at.tshigh << 32) + at.tslow) / at.tsresol for _, at in packets]
    assert len(times_s) == outcome.figures["capture"]["packets"]
    assert max(later - earlier for earlier, later in pairwise(times_s)) < 0.5


def test_a_run_can_be_repeated_from_its_directory(tmp_path: Path) -> None:
    first = perform(replace(SMALL, backend="simulation"), tmp_path / "first").path
    moved = first.rename(tmp_path / "moved")
    assert main(["rerun", str(moved), "--no-report", "--out", str(tmp_path / "again")]) == 0
    again = (tmp_path / "again" / "small" / "latest").resolve()
    assert records(again) == records(moved)
    assert (again / "underlay.json").read_bytes() == (moved / "underlay.json").read_bytes()


def test_results_written_with_sudo_belong_to_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_UID", "1234")
    monkeypatch.setenv("SUDO_GID", "1234")
    outcome = perform(replace(SMALL, backend="simulation"), tmp_path)
    owned = [outcome.path, *outcome.path.rglob("*"), tmp_path / "small", tmp_path / "small/latest"]
    assert {path.lstat().st_uid for path in owned} == {1234}
    assert tmp_path.stat().st_uid == 0


def test_reliable_greetings_survive_a_link_cut_of_ten_seconds(tmp_path: Path) -> None:
    overlay = {"kind": "hello", "greetings": 3, "period_us": 1_500_000}
    underlay = make_underlay(SMALL)
    access = underlay.access_router["h1"]
    faults = (
        Fault(0.9, "link-down", f"h1-{access}"),
        Fault(10.9, "link-up", f"{access}-h1"),
    )
    # Retransmissions are at most 8 s apart.
    experiment = replace(SMALL, duration_s=20.0, overlay=overlay, faults=faults)
    outcome = perform(experiment, tmp_path)
    h1 = int(IPv4Address(underlay.address["h1"]))
    sent_during_the_cut = [
        (spec.host, contact, number)
        for spec in assign_agents(experiment, underlay, None)
        for contact in spec.contacts
        if spec.host == "h1" or contact == h1
        for number in (1, 0)  # counted down by the loop
    ]
    answered_after_it = [
        (row["host"], row["values"]["by"], row["values"]["number"])
        for row in of_kind(records(outcome.path), "welcomed")
        if row["time_us"] > 10_900_000 and row["values"]["number"] < 2
    ]
    assert sorted(answered_after_it) == sorted(sent_during_the_cut)


def test_a_fault_with_an_unknown_target_is_refused_before_building(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text('[[fault]]\nat_s = 1\naction = "kill-agent"\ntarget = "h99"\n')
    assert main(["run", str(path), "--out", str(tmp_path / "results")]) == 2
    assert not (tmp_path / "results").exists()


def test_an_interrupted_run_leaves_a_partial_directory(tmp_path: Path) -> None:
    path = tmp_path / "long.toml"
    path.write_text("duration_s = 60\n[topology]\nrouters = 10\nhosts = 6\n")
    run = subprocess.Popen(
        [Path(sys.executable).with_name("tdo"), "run", str(path), "--out", str(tmp_path)]
    )
    deadline = time.monotonic() + 30
    logs = tmp_path / "long"
    while not any(log.stat().st_size for log in logs.rglob("*.jsonl")):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    run.terminate()
    assert run.wait(30) == 1
    (partial,) = logs.glob("*.partial")
    assert (partial / "underlay.json").exists()


def test_an_agent_without_privileges_drops_and_counts_junk(tmp_path: Path) -> None:
    experiment = replace(SMALL, agents_per_process=64, duration_s=6.0)
    underlay = make_underlay(experiment)
    with EmulatedNetwork(underlay) as network:
        agents = AgentProcesses(
            network, experiment, assign_agents(experiment, underlay, None), tmp_path
        )
        try:
            agents.start()
            origin_ns = agents.go()
            time.sleep((origin_ns - network.clock.now_ns()) / 1e9 + 0.5)  # h1's agent is up
            for process in agents.processes:
                status = Path(f"/proc/{process}/status").read_text()
                assert re.search(r"^Uid:\s+65534\s+65534\s+65534", status, re.MULTILINE)
                assert os.sched_getscheduler(process) == os.SCHED_RR
            unfit = _send_junk(network, 8_000)
            agents.finish()
        finally:
            agents.stop()
    rows = [json.loads(line) for log in tmp_path.glob("*.jsonl") for line in log.open()]
    ended = {row["host"]: row["values"] for row in of_kind(rows, "agent_ended")}
    assert sum(ended["h1"].get(reason, 0) for reason in UNFIT) == unfit
    assert ended["h1"]["malformed"] > 0
    assert ended["h1"]["of_another_run"] > 0
    welcomed = Counter(row["host"] for row in of_kind(rows, "welcomed"))
    assert welcomed["h1"] > 500 and welcomed["h2"] > 500  # Valid datagrams reached the protocol.
    assert [welcomed[f"h{number}"] for number in range(3, 7)] == 4 * [2 * 3]


def _send_junk(network: EmulatedNetwork, count: int) -> int:
    """Send h1 random and mutated datagrams from h2; returns how many of them an agent drops."""
    chance = random.Random(1)
    address, run_id = network.underlay.address, int(network.ledger.run_id, 16)
    h1, h2 = (int(IPv4Address(address[name])) for name in ("h1", "h2"))
    like_h1 = Agent(h1, run_id, HelloProtocol(Surroundings(h1, (), chance)))
    contents = (Ping(1), Hello(1), Welcome(1))
    good = [encode(Datagram(content, 0, run_id, h2, h1, 1, 0)) for content in contents]
    with network.inside("h2"):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for number in range(count):
        junk = bytearray(chance.choice(good))
        for _ in range(chance.randrange(4)):
            junk[chance.randrange(len(junk))] = chance.randrange(256)
        data = bytes(junk) if number % 3 else chance.randbytes(chance.randrange(200))
        sender.sendto(data, (address["h1"], PORT))
        like_h1.on_bytes(0, h2, data)
        if number % 20 == 0:
            time.sleep(0.005)  # slower than the receive buffer fills
    sender.close()
    return sum(like_h1.counts[reason] for reason in UNFIT)
