"""Packets read per second: one core compared with dpkt, tshark and Scapy, Spark, and large files.

Rates on one core are by processor time, so other programs affect all readers equally. The
environment variable TDO_BENCH_MB limits the largest file (default: 2,000 MB).
"""

import contextlib
import os
import shutil
import struct
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from random import Random

import pyarrow.compute as pc
from pyspark.sql import SparkSession

from agents.wire.codec import HEADER, MAGIC, PORT, VERSION
from analysis.captures import PACKETS_SCHEMA, Split, packets_schema, plan_splits, read_split
from analysis.captures.parquet import write_packets
from analysis.spark.session import open_session
from benchmarks.pcap_baselines import (
    FIELDS,
    Seen,
    read_with_dpkt,
    read_with_scapy,
    read_with_tshark,
)

_SEED, _PACKETS, _REPEATS = 1, 200_000, 5
_SPARK_PACKETS, _SPARK_REPEATS = 4_000_000, 3
_SIZES_MB, _LARGEST_MB = (10, 100, 500, 2_000), 2_000
_BODY_BYTES = (0, 12, 20, 20, 20, 64, 200)  # layout of the messages
_FILE_HEADER_BYTES, _ETHERNET, _INTERFACES = 24, 1, 9
_MB = 1 << 20


@dataclass(frozen=True, slots=True)
class Memory:
    """Time and memory of a process that reads a file."""

    file_mb: int
    packets_per_s: float
    base_mb: float
    peak_mb: float

    def __str__(self) -> str:
        return (
            f"{self.file_mb:5} MB: {self.packets_per_s / 1e6:.2f} M packets/s, "
            f"peak {self.peak_mb:.0f} MB, {self.peak_mb - self.base_mb:.0f} MB of it for reading"
        )


def run() -> dict[str, float]:
    """Print rates and memory, and return the measurements."""
    with tempfile.TemporaryDirectory(prefix="tdo-bench-") as folder:
        small = Path(folder, "small.pcap")
        _write_capture(small)
        figures = _compare(small)
        figures |= _grow(small)
        figures |= _in_spark(small)
    return figures


def _compare(path: Path) -> dict[str, float]:
    contestants: dict[str, tuple[Callable[[Path], Seen], int]] = {
        "ours": (_read_ours, _REPEATS),
        "ours, all columns": (_read_all_columns, _REPEATS),
        "dpkt": (read_with_dpkt, 2),
        "tshark": (read_with_tshark, 2),
        "scapy": (read_with_scapy, 1),
    }
    print(f"{_PACKETS} packets, {path.stat().st_size / _MB:.0f} MB, the best of some, one core")
    rates, sums = {}, set()
    for name, (read, repeats) in contestants.items():
        seen = [read(path) for _ in range(repeats)]
        rates[name] = _PACKETS / min(one.cpu_s for one in seen)
        sums |= {(one.packets, one.total) for one in seen}
        print(f"  {name:18} {rates[name]:10.0f} packets/s", flush=True)
    if len(sums) != 1:
        raise AssertionError(f"readers do not agree on packets and fields: {sorted(sums)}")
    ours = rates["ours"]
    return {
        "packets_per_s": ours,
        "packets_per_s_all_columns": rates["ours, all columns"],
        "speedup_vs_dpkt": ours / rates["dpkt"],
        "speedup_vs_tshark": ours / rates["tshark"],
        "speedup_vs_scapy": ours / rates["scapy"],
    }


def _read_ours(path: Path, columns: tuple[str, ...] = FIELDS) -> Seen:
    start_s = time.process_time()
    batches = list(read_split(Split(str(path)), packets_schema(columns)))
    cpu_s = time.process_time() - start_s
    added = ("captured_bytes", "wire_bytes", "ttl", "source_port", "target_port", "udp_length")
    total = sum(pc.sum(batch[name]).as_py() for batch in batches for name in added)
    return Seen(sum(batch.num_rows for batch in batches), total, cpu_s)


def _read_all_columns(path: Path) -> Seen:
    return _read_ours(path, tuple(PACKETS_SCHEMA.names))


def _grow(small: Path) -> dict[str, float]:
    """The memory to read files of growing size, each in a separate process."""
    largest_mb = min(
        int(os.environ.get("TDO_BENCH_MB", _LARGEST_MB)),
        shutil.disk_usage(small.parent).free // _MB // 2,
    )
    sizes = [size for size in _SIZES_MB if size <= largest_mb] or [_SIZES_MB[0]]
    print("memory as files grow, all columns")
    found = []
    for size_mb in sizes:
        path = small.with_name(f"{size_mb}.pcap")
        _repeat(small, path, size_mb * 1_000_000 // small.stat().st_size + 1)
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            found.append(process.submit(_read_apart, str(path), size_mb).result())
        path.unlink()
        print(f"  {found[-1]}", flush=True)
    return {
        "largest_file_mb": float(found[-1].file_mb),
        "peak_mb_at_smallest": found[0].peak_mb,
        "peak_mb_at_largest": found[-1].peak_mb,
    }


def _read_apart(path: str, size_mb: int) -> Memory:
    base_mb, start_s = _peak_mb(), time.process_time()
    packets = sum(batch.num_rows for batch in read_split(Split(path)))
    rate = packets / (time.process_time() - start_s)
    return Memory(size_mb, rate, base_mb, _peak_mb())


def _in_spark(small: Path) -> dict[str, float]:
    figures: dict[str, float] = {}
    with open_session("local[2]", "tdo bench pcap") as spark:
        write_packets(spark, small, small.with_name("warm"), split_bytes=8 * _MB)
        newer = small.with_suffix(".pcapng")
        head = _write_pcapng(small, newer)
        for path, begin, ending in ((small, _FILE_HEADER_BYTES, ""), (newer, head, "_pcapng")):
            large = path.with_stem("large")
            _repeat(path, large, _SPARK_PACKETS // _PACKETS, begin)
            found = _to_parquet(spark, large)
            large.unlink()
            figures |= {f"{name}{ending}": figure for name, figure in found.items()}
    return figures


def _to_parquet(spark: SparkSession, large: Path) -> dict[str, float]:
    start_s = time.perf_counter()
    plan_splits(str(large))
    plan_s = time.perf_counter() - start_s
    rates, cpu_s = [], []
    for turn in range(_SPARK_REPEATS):
        out = large.with_name(f"{large.name}.{turn}")
        start_s, start_cpu_s = time.perf_counter(), _cpu_s_of_all()
        written = write_packets(spark, large, out)
        rates.append(written.packets / (time.perf_counter() - start_s))
        cpu_s.append(_cpu_s_of_all() - start_cpu_s)
        if written.packets != _SPARK_PACKETS or written.errors:
            raise AssertionError(f"expected {_SPARK_PACKETS} packets, found {written}")
    parts = list((out / "packets").iterdir())
    print(
        f"Spark local[2], {_SPARK_PACKETS} packets of {large.stat().st_size / _MB:.0f} MB "
        f"{large.suffix[1:]} to Parquet: {max(rates) / 1e6:.2f} M packets/s "
        f"by the clock, {min(cpu_s):.1f} s of processors, {len(parts)} parts, "
        f"{sum(part.stat().st_size for part in parts) / _SPARK_PACKETS:.1f} bytes a packet, "
        f"walked over in {plan_s:.2f} s; {os.getloadavg()[0]:.1f} processes wanted "
        f"{os.cpu_count()} cores",
        flush=True,
    )
    return {
        "spark_packets_per_s": max(rates),
        "spark_packets_per_core_s": _SPARK_PACKETS / min(cpu_s),  # more reliable on a busy machine
        "plan_packets_per_s": _SPARK_PACKETS / plan_s,
    }


def _cpu_s_of_all() -> float:
    """The processor time of this process and all its descendants, such as Java and its workers."""
    parents, ticks = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # The process may have ended meanwhile.
            fields = stat.read_text().rpartition(")")[2].split()
            parents[int(stat.parent.name)] = int(fields[1])
            ticks[int(stat.parent.name)] = sum(map(int, fields[11:15]))
    family = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(ticks[process] for process in family) / os.sysconf("SC_CLK_TCK")


def _write_capture(path: Path) -> None:
    """Datagrams of agents on Ethernet, of mixed sizes."""
    chance = Random(_SEED)
    content = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, _ETHERNET)]
    for index in range(_PACKETS):
        packet = _packet(index, chance)
        times = 1_700_000_000 + index // 50_000, index * 20 % 1_000_000
        content.append(struct.pack("<IIII", *times, len(packet), len(packet)) + packet)
    path.write_bytes(b"".join(content))


def _packet(index: int, chance: Random) -> bytes:
    body = bytes(chance.choice(_BODY_BYTES))
    source, target = (0x0A000001 + chance.randrange(100) for _ in range(2))
    event = chance.getrandbits(63)
    own = HEADER.pack(
        MAGIC, VERSION, chance.randrange(1, 9), 1, chance.randrange(6), len(body), 77, source,
        target, index, event, index * 20,
    )  # fmt: skip
    datagram = struct.pack(">HHHH", PORT, PORT, 8 + len(own) + len(body), 0) + own + body
    ttl = chance.randrange(50, 65)
    total, number = 20 + len(datagram), index & 0xFFFF
    head = struct.pack(">BBHHHBBHII", 0x45, 0, total, number, 0x4000, ttl, 17, 0, source, target)
    return bytes(12) + b"\x08\0" + head + datagram


def _write_pcapng(small: Path, path: Path) -> int:
    """Write the packets of a pcap file as pcapng; returns the offsets of the packets."""
    content, at = small.read_bytes(), _FILE_HEADER_BYTES
    head = _block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    head += _block(1, struct.pack("<HHI", _ETHERNET, 0, 0)) * _INTERFACES
    blocks = [head]
    while at < len(content):
        seconds, fraction, *sizes = struct.unpack_from("<IIII", content, at)
        ticks, packet = seconds * 1_000_000 + fraction, content[at + 16 : at + 16 + sizes[0]]
        times = ticks >> 32, ticks & 0xFFFFFFFF
        fields = struct.pack("<IIIII", len(blocks) % _INTERFACES, *times, *sizes)
        blocks.append(_block(6, fields + packet))
        at += 16 + sizes[0]
    path.write_bytes(b"".join(blocks))
    return len(head)


def _block(kind: int, content: bytes) -> bytes:
    content += bytes(-len(content) % 4)
    length = struct.pack("<I", len(content) + 12)
    return struct.pack("<I", kind) + length + content + length


def _repeat(small: Path, large: Path, times: int, head: int = _FILE_HEADER_BYTES) -> None:
    content = small.read_bytes()
    with large.open("wb") as file:
        file.write(content[:head])
        for _ in range(times):
            file.write(content[head:])


def _peak_mb() -> float:
    # `getrusage` is no alternative: a process inherits its value from its parent.
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / _MB
