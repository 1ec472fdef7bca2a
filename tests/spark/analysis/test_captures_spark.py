"""Captures in Spark and in Parquet, with a real session."""

import os
import sys
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import spark_partition_id

from analysis.captures import PACKETS_SCHEMA, find_captures, plan_parts
from analysis.captures.data_source import read_options, register
from analysis.captures.parquet import Written, write_packets
from analysis.errors import AnalysisError, CaptureError
from analysis.spark.session import open_session
from tests.fixtures.capture_files import (
    NANO,
    PLAIN,
    RAW,
    ethernet,
    ipv4,
    ipv6,
    pcap,
    rows,
    udp,
)

OWN = ethernet(ipv4(udp(b"TD\1\5" + bytes(36), 7001, 7001)))
PACKETS = 12_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of some megabytes, a small one, a damaged one, and a file that is no capture."""
    made, chance = tmp_path_factory.mktemp("captures"), Random(8)
    sorts = [PLAIN, OWN, ethernet(ipv6(udp()), 0x86DD), ethernet(ipv4(udp(bytes(900))))]
    (made / "a.pcap").write_bytes(pcap(chance.choices(sorts, k=PACKETS)))
    (made / "b.pcap").write_bytes(pcap([ipv4(udp())] * 3, RAW, magic=NANO))
    (made / "c.pcapng").write_bytes(pcap([PLAIN, ethernet(ipv4(udp())[:10])]) + b"rest")
    (made / "notes.txt").write_text("not to be read")
    return made


@pytest.fixture(scope="module")
def reader(spark: SparkSession) -> SparkSession:
    register(spark)
    return spark


def table(frame: DataFrame) -> pa.Table:
    return in_order(frame.toArrow())


def in_order(found: pa.Table) -> pa.Table:
    return found.sort_by([("file", "ascending"), ("number", "ascending")]).combine_chunks()


def expected(folder: Path) -> list[dict[str, object]]:
    return [row for name in ("a.pcap", "b.pcap", "c.pcapng") for row in rows(folder / name)]


def test_spark_returns_the_rows_of_the_reader(reader: SparkSession, folder: Path) -> None:
    found = table(reader.read.format("pcap").load(str(folder)))
    assert found.to_pylist() == expected(folder)
    split = reader.read.format("pcap").option("split_mb", "1").load(str(folder))
    assert split.select(spark_partition_id()).distinct().count() > 2
    assert table(split).equals(found)


def test_a_schema_selects_columns(reader: SparkSession, folder: Path) -> None:
    pattern = str(folder / "?.pcap")
    frame = reader.read.format("pcap").schema("target_port int, source long").load(pattern)
    assert frame.columns == ["target_port", "source"]
    found = frame.toArrow()
    assert found.num_rows == PACKETS + 3
    assert set(found["target_port"].to_pylist()) == {53, 7001}


@pytest.mark.parametrize(
    ("schema", "message"),
    [("target_port long", "expected the nullable type int, found bigint"), ("size int", "size")],
)
def test_a_wrong_schema_is_refused(
    schema: str, message: str, reader: SparkSession, folder: Path
) -> None:
    with pytest.raises(Exception, match=f"CaptureError: column .*{message}"):
        reader.read.format("pcap").schema(schema).load(str(folder)).count()


def test_options_select_packets(reader: SparkSession, folder: Path) -> None:
    def count(**options: object) -> int:
        return reader.read.format("pcap").options(**options).load(str(folder / "a.pcap")).count()  # type: ignore[arg-type]

    every = rows(folder / "a.pcap")
    own = sum(row["kind"] is not None for row in every)
    assert 0 < own < PACKETS
    assert count(only_tdo=True) == count(port=7001) == own
    assert count(port=53) == PACKETS - own
    second = 10**9 + 1_000  # drift of the capture's clock from packet to packet
    assert count(from_ns=100 * second, until_ns=300 * second) == 200


def test_errors_are_rows(reader: SparkSession, folder: Path) -> None:
    frame = reader.read.format("pcap").option("errors", "true").load(str(folder))
    found = [(Path(row.file).name, row.offset, row.reason) for row in frame.collect()]
    assert found == [
        ("c.pcapng", 87, "packet ends within a header"),
        ("c.pcapng", 127, "cut short"),
    ]


def test_parquet_is_written_once_and_equal_for_all_splits(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    out, split = tmp_path / "out", tmp_path / "split"
    assert write_packets(spark, folder, out) == Written(PACKETS + 5, 2)
    with pytest.raises(CaptureError, match="expected no such folder, found one"):
        write_packets(spark, folder, out)
    write_packets(spark, sorted(folder.glob("*.pcap*")), split, split_bytes=1 << 20)
    parts = [len(list((place / "packets").iterdir())) for place in (out, split)]
    assert parts[0] < parts[1]
    found = table(spark.read.parquet(str(out / "packets")))
    assert found.schema.names == PACKETS_SCHEMA.names
    assert found.to_pylist() == expected(folder)
    again = pq.read_table(split / "packets").cast(PACKETS_SCHEMA)
    assert in_order(again).equals(found.cast(PACKETS_SCHEMA))
    for place in (out, split):
        assert pq.read_table(place / "capture_errors").num_rows == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "split"]


def test_parquet_of_captures_without_packets(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "empty.pcap").write_bytes(b"")
    assert write_packets(spark, tmp_path / "empty.pcap", tmp_path / "out") == Written(0, 1)
    assert spark.read.parquet(str(tmp_path / "out" / "packets")).columns == PACKETS_SCHEMA.names
    assert pq.read_table(tmp_path / "out" / "packets").num_rows == 0
    assert pq.read_table(tmp_path / "out" / "capture_errors").num_rows == 1


def test_paths_name_files_and_folders(folder: Path, tmp_path: Path) -> None:
    names = [Path(file).name for file in find_captures(folder)]
    assert names == ["a.pcap", "b.pcap", "c.pcapng"]
    assert find_captures(str(folder / "[ab].pcap")) == [str(folder / n) for n in names[:2]]
    assert find_captures(f"file://{folder}/notes.txt") == [str(folder / "notes.txt")]
    (tmp_path / "PACKED.PCAP.GZ").write_bytes(b"")
    assert find_captures(tmp_path) == [str(tmp_path / "PACKED.PCAP.GZ")]
    with pytest.raises(CaptureError, match="nowhere, found none; give a file"):
        find_captures("nowhere")


def test_small_files_share_a_part(folder: Path) -> None:
    files = find_captures(folder) * 2
    assert [len(part) for part in plan_parts(files)] == [6]
    sizes = [len(part) for part in plan_parts(files, 1 << 20)]
    assert sizes[0] == 1
    assert sum(sizes) > 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "expected a path"),
        ({"path": "x", "prot": "1"}, "option prot: expected one of errors"),
        ({"path": "x", "port": "http"}, "option port: expected a whole number"),
        ({"path": "x", "port": "70000"}, "option port: expected a whole number in range"),
        ({"path": "x", "errors": "maybe"}, "option errors: expected true or false"),
        ({"path": "x", "split_mb": "0"}, "option split_mb"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(CaptureError, match=message):
        read_options(options)


def test_missing_java_is_one_clear_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(AnalysisError, match=r"expected Java .* run: apt-get install \S+$"):
        open_session()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(AnalysisError, match="JAVA_HOME"):
        open_session()


def test_the_session_uses_this_python_on_loopback(spark: SparkSession) -> None:
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert os.environ["SPARK_LOCAL_IP"] == spark.conf.get("spark.driver.host") == "127.0.0.1"
    found = spark.sparkContext.parallelize([0]).map(lambda _: sys.executable).collect()
    assert found == [sys.executable]
