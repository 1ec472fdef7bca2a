"""One seed gives the same bytes with any seed of Python's hashes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import hashlib, sys
from collections import Counter
from ipaddress import IPv4Address
from pathlib import Path
from random import Random
import pyarrow.parquet as pq
from agents.kinds import make_agent
from agents.protocol import Surroundings
from agents.runtime.packet_log import PacketLog
from agents.runtime.simulator import Simulator
from dataclasses import replace
from testbed.experiment.file import experiment_from_dict
from workloads.kinds import draw_workload
from topologies.hosts import attach_hosts, make_anonymous
from topologies.waxman import generate_waxman

folder, seed = Path(sys.argv[1]), int(sys.argv[2])
content = {"kind": "content-zipf", "events": 40, "start_s": 30.0, "match": 0.5}
cores = {"kind": "cores", "strategy": "spotent", "first_selection_s": 12.0, "cores": 2}
stacks = [
    {"overlay": {"kind": "hello"}},
    {"overlay": {"kind": "gossip"}},
    {"overlay": {"kind": "tdo-walk"}, "routing": cores, "workload": content},
    {"overlay": {"kind": "tdo-landmark"}, "routing": {"kind": "opt"}, "workload": content},
]
stacks = [experiment_from_dict({"name": "stack", **stack}, "test") for stack in stacks]
shares = draw_workload(stacks[2].workload, seed, [f"p{n}" for n in range(6)]).shares(6)
underlay = make_anonymous(attach_hosts(generate_waxman(20, seed=1), 24, seed=1), 0.2, seed=1)
lossy = replace(underlay.links[3].ab, loss_percent=10.0, rate_mbit=1.0)
links = (*underlay.links[:3], replace(underlay.links[3], ab=lossy), *underlay.links[4:])
underlay = replace(underlay, links=links)
records, kinds = hashlib.sha256(), Counter()
with Simulator(
    underlay,
    seed=seed,
    notes=PacketLog(folder, underlay),
    record=lambda *row: (records.update(repr(row).encode()), kinds.update([row[2]])),
) as simulator:
    addresses = [int(IPv4Address(underlay.address[host.name])) for host in underlay.hosts]
    for number, host in enumerate(underlay.hosts):
        me, stack = addresses[number], stacks[number % 4]
        contacts = tuple(a for a in addresses[number % 4 :: 4] if a != me)
        given = Surroundings(
            me, contacts, Random(f"{seed}/{host.name}"), number=number // 4, peers=6, run_seed=seed,
            workload=shares[number // 4],
        )
        make = lambda given=given, stack=stack: make_agent(stack.layers, 1, given)
        simulator.add_agent(host.name, make)
        simulator.start_agent(number * 1000, host.name)
    simulator.set_router(5_000_000, "r3", up=False)
    simulator.set_router(9_000_000, "r3", up=True)
    simulator.kill_agent(7_000_000, "h4")
    simulator.run(50_000_000)
rows = pq.read_table(folder / "packets.parquet")
print(records.hexdigest(), hashlib.sha256(repr(rows.to_pylist()).encode()).hexdigest(),
      hashlib.sha256((folder / "packets.parquet").read_bytes()).hexdigest(),
      kinds["delivered"], rows.num_rows)
"""


def digest(folder: Path, hash_seed: str, seed: int = 1) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder), str(seed)],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
    )
    return done.stdout


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> str:
    return digest(tmp_path_factory.mktemp("reference"), "0")


@pytest.mark.parametrize("hash_seed", ["1", "4711"])
def test_the_same_seed_gives_the_same_bytes(reference: str, hash_seed: str, tmp_path: Path) -> None:
    deliveries, packets = map(int, reference.split()[-2:])
    assert deliveries > 40 and packets > 1_000
    assert digest(tmp_path, hash_seed) == reference


def test_another_seed_gives_different_bytes(reference: str, tmp_path: Path) -> None:
    other = digest(tmp_path, "0", seed=2).split()
    assert all(a != b for a, b in zip(other[:3], reference.split()[:3], strict=True))
