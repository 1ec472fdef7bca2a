"""`tdo analyze`: the tables and metrics of run directories, and of captures without a run."""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import nullcontext
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from analysis.agent_records import AgentRecord, read_agent_records
from analysis.captures import find_captures
from analysis.captures.parquet import ERRORS, PACKETS, write_packets
from analysis.errors import AnalysisError
from analysis.metrics import checks
from analysis.metrics import routing as metrics
from analysis.metrics.file import merge_metrics
from analysis.metrics.recorded_routing import measure_run
from analysis.metrics.recovery import is_failure, moments, recovery, recovery_document, why_unknown
from analysis.run_directory import RunFiles, open_run
from analysis.spark.session import small_job_settings
from analysis.tables.build import (
    Tables,
    build_tables,
    fingerprint,
    read_manifest,
    read_sources,
    write_manifest,
)
from analysis.tables.events import SETTLE_US
from analysis.tables.overlay import route_links
from topologies.underlay import Underlay

Metrics = dict[str, Any]
Rows = dict[str, list[dict[str, Any]]]
Say = Callable[[str], None]

_SUBJECT = "analysis"
_NO_EVENTS = "no event was published"
_NO_DELIVERIES = "no event was delivered to another host than its publisher"
_NO_PACKETS = "there are no packets of messages"


def analyze_run(
    spark: SparkSession,
    path: Path,
    kinds: Mapping[int, str] | None = None,
    again: bool = False,
    say: Say = lambda _: None,
) -> Metrics:
    """Make the tables of a run and add its metrics to `metrics.json`, which is returned."""
    run = open_run(path, kinds)
    with small_job_settings(spark) if run.is_small else nullcontext():
        tables = build_tables(spark, run, again, say)
        say("metrics and checks")
        found, notes = measure_tables(spark, run, tables)
    by_records = _measure_records(path, notes)
    found["events"] = by_records.get("events", {}) | found["events"]
    if found["rdp"] is None and by_records.get("overlay_rdp"):
        found["rdp"] = by_records["overlay_rdp"]
        notes["rdp"] = "of the discovery overlay, over all pairs of peers: " + notes["rdp"]
    merge_metrics(path, _SUBJECT, found, notes)
    document: Metrics = json.loads((path / "analysis" / "metrics.json").read_text())
    return document


def analyze_captures(
    spark: SparkSession, captures: list[Path], out: Path, again: bool = False
) -> Metrics:
    """Make the tables of captures that belong to no run; `out` gets `tables` and metrics.json."""
    files = find_captures(captures)
    folder = out / "tables"
    made_from = fingerprint([Path(file) for file in files])
    if again or read_manifest(folder, made_from) is None:
        _remove_tables(folder, {Path(file).name for file in files})
        out.mkdir(parents=True, exist_ok=True)
        write_packets(spark, files, folder)
        write_manifest(folder, made_from, {})
    packets = spark.read.parquet(str(folder / PACKETS))
    errors = spark.read.parquet(str(folder / ERRORS))
    rows = gather(
        {
            "packets": packets.agg(
                F.count("*").alias("total"),
                F.count("kind").alias("ours"),
                F.count_if(F.col("protocol").isin(1, 58)).alias("icmp"),
                F.sum("wire_bytes").alias("bytes"),
                F.min("time_ns").alias("first_ns"),
                F.max("time_ns").alias("last_ns"),
            ),
            "interfaces": packets.groupBy("interface").agg(F.count("*").alias("packets")),
            "by_kind": packets.groupBy("kind").agg(F.count("*").alias("packets")),
            "capture_errors": errors.groupBy("reason").agg(F.count("*").alias("count")),
        }
    )
    found: Metrics = {
        "files": len(files),
        "packets": rows["packets"][0],
        "interfaces": {r["interface"]: r["packets"] for r in _sorted(rows, "interfaces")},
        "packets_by_kind": {
            str(row["kind"]): row["packets"] for row in _sorted(rows, "by_kind") if "kind" in row
        },
        "capture_errors": {r["reason"]: r["count"] for r in _sorted(rows, "capture_errors")},
        "notes": {_SUBJECT: "captures without a run directory: only packets are counted"},
    }
    text = json.dumps(found, indent=1, sort_keys=True) + "\n"
    (out / "metrics.json").write_text(text)
    return dict(json.loads(text))


def measure_tables(
    spark: SparkSession, run: RunFiles, tables: Tables
) -> tuple[Metrics, dict[str, str]]:
    """All metrics of event routing with their checks, and notes on what is null."""
    notes = {_SUBJECT: "; ".join(tables.notes.values())} if tables.notes else {}
    has_packets = "packets" not in tables.notes or bool(tables["packets"].take(1))
    lasting = _lasting_agents(run)
    counted = {host: record.values for host, record in lasting.items()}
    rows = gather(_summaries(spark, run, tables, lasting, has_packets))
    found = _read_metrics(rows, counted) if has_packets else _without_packets(rows, counted)
    if not has_packets:
        why = tables.notes.get("packets", _NO_PACKETS)
        notes |= dict.fromkeys(("link_stress", "messages", "packets", "rdp_of_packets"), why)
        if found["control_efficiency"] is not None:
            notes["control_efficiency"] = "of what agents counted that lived once and to the end"
    elif run.has_changing_network:
        notes["rdp_of_packets"] = "faults changed the network: when packets arrived is not known"
    if found["recovery"] is None:
        notes["recovery"] = why_unknown(run.faults)
    notes |= _reasons(found, notes)
    found["checks"] = {
        name.removeprefix("check "): checks.judge_check(some[0])
        for name, some in rows.items()
        if name.startswith("check ") and some
    }
    if broken := checks.failing(found["checks"]):
        notes["checks"] = broken
    return found, notes


def gather(frames: Mapping[str, DataFrame]) -> Rows:
    """The rows of some small frames, fetched in one job."""
    if not frames:
        return {}
    texts = [
        frame.select(F.lit(name).alias("name"), F.to_json(F.struct(*frame.columns)).alias("row"))
        for name, frame in frames.items()
    ]
    rows: Rows = {name: [] for name in frames}
    for name, text in reduce(DataFrame.union, texts).collect():
        rows[name].append(json.loads(text))
    return rows


def _summaries(
    spark: SparkSession,
    run: RunFiles,
    tables: Tables,
    lasting: Mapping[str, AgentRecord],
    has_packets: bool,
) -> dict[str, DataFrame]:
    t = tables
    frames = {
        "rdp": metrics.relative_delay(t["deliveries"]),
        "rdp_of_paths": metrics.relative_delay(t["deliveries"], "path_us"),
        "hops": metrics.delivery_hops(t["deliveries"]),
        "false_positives": metrics.false_positives(t["receptions"], t["deliveries"]),
        "routing_cost": metrics.routing_cost(t["deliveries"]),
        "delivery": metrics.delivery(t["matches"], t["deliveries"]),
        "events": metrics.event_counts(t["events"], t["receptions"], t["deliveries"]),
        "control": metrics.control_efficiency(t["messages"], t["receptions"]),
        "check matches_agree": checks.agreed_matches(
            t["receptions"], t["matches"], _unsteady(spark, run, t)
        ),
    }
    if any(map(is_failure, run.faults)):
        when = moments(spark, run.faults)
        frames["recovery"] = recovery(t["matches"], t["deliveries"], when)
    if not has_packets:
        return frames
    frames |= {
        "stress": metrics.stress_summary(t["stress"]),
        "distribution": metrics.stress_distribution(t["stress"]),
        "messages": metrics.message_counts(t["messages"]),
        "packets": metrics.packet_counts(t["link_loads"]),
        "errors": t["capture_errors"].agg(F.count("*").alias("count")),
        "check packets_belong_to_messages": checks.packets_of_messages(
            t["messages"], t["link_loads"]
        ),
    }
    if lasting:
        frames |= _count_checks(spark, t, lasting, bool(run.kinds))
    if not run.has_changing_network:
        frames |= _route_checks(spark, run, t) | _delays(run, t)
    if lasting and not run.has_changing_network:
        frames["check arrivals_received"] = checks.arrivals_received(
            t["messages"], t["receptions"], t["events"], _taking_hosts(spark, run, lasting)
        )
    return frames


def _delays(run: RunFiles, t: Tables) -> dict[str, DataFrame]:
    """Delays of deliveries by their packets; on changing links they are not known."""
    delays = metrics.packet_delays(t["deliveries"], t["messages"], t["link_loads"])
    return {
        "rdp_of_packets": metrics.relative_delay(delays, "packets_us"),
        "check delays_agree": checks.delays_agree(delays, run.agents_us),
    }


def _route_checks(spark: SparkSession, run: RunFiles, t: Tables) -> dict[str, DataFrame]:
    pairs = t["receptions"].where("from_host IS NOT NULL").select("from_host", "host").distinct()
    known = route_links(run.underlay, ((row[0], row[1]) for row in pairs.collect()))
    links = F.broadcast(spark.createDataFrame(known))
    return {
        "check deliveries_have_packets": checks.receptions_on_links(
            t["receptions"], t["packets"], links
        ),
        "check routes_whole": checks.whole_routes(t["messages"]),
    }


def _count_checks(
    spark: SparkSession, t: Tables, lasting: Mapping[str, AgentRecord], are_named: bool
) -> dict[str, DataFrame]:
    copies = [
        {"sender": host, "copies_counted": _transmissions(record.values)}
        for host, record in lasting.items()
    ]
    frame = spark.createDataFrame(pa.Table.from_pylist(copies))
    found = {"check copies_sent": checks.copies_sent(t["messages"], frame)}
    by_kind = [
        {
            "sender": host,
            "kind_name": name.removeprefix("sent_"),
            "sent": count,
            "unsent": record.values.get("unsent", 0),
        }
        for host, record in lasting.items()
        for name, count in record.values.items()
        if name.startswith("sent_")
    ]
    if by_kind and are_named:
        frame = spark.createDataFrame(pa.Table.from_pylist(by_kind))
        found["check sent_by_kind"] = checks.sent_by_kind(t["messages"], frame)
    return found


def _unsteady(spark: SparkSession, run: RunFiles, t: Tables) -> DataFrame:
    """Hosts whose agents did not live through the run, as far as the tables and faults tell."""
    ended = pa.table({"host": pa.array([host for _, host in run.ends], pa.string())})
    return spark.createDataFrame(ended).union(
        t["matches"].where("NOT is_steady").select("host").distinct()
    )


def _taking_hosts(
    spark: SparkSession, run: RunFiles, lasting: Mapping[str, AgentRecord]
) -> DataFrame:
    """Hosts, and until when their agents took what came: not in the last moments of the run."""
    # Of a captured packet nobody knows whether it came out of the link that it entered.
    lossy = set(_lossy_ends(run.underlay)) if run.is_emulated else set()
    lossy |= {host for host, record in lasting.items() if record.values.get("too_old")}
    processes = run.figures.get("processes", ())
    lags = [
        one[key]["max_us"] for one in processes for key in ("lag", "datagram_lag") if key in one
    ]
    before_us = max([SETTLE_US, *lags])
    rows = [
        {"host": host, "until_us": None if host in lossy else record.time_us - before_us}
        for host, record in lasting.items()
    ]
    schema = pa.schema({"host": pa.string(), "until_us": pa.int64()})
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema))


def _lossy_ends(underlay: Underlay) -> Iterator[str]:
    """The ends of channels that lose packets, by chance or for want of room."""
    for link in underlay.links:
        for end, channel in ((link.b, link.ab), (link.a, link.ba)):
            if channel.loss_percent or channel.rate_mbit is not None:
                yield end


def _lasting_agents(run: RunFiles) -> dict[str, AgentRecord]:
    """How agents ended that lived once and to the end, with what they counted, by host."""
    try:
        records = read_agent_records(run.path, ("agent_started", "agent_ended", "agent_left"))
    except AnalysisError:
        return {}  # the tables have a note about that
    lives = Counter(row.host for row in records.rows if row.what == "agent_started")
    ended: dict[str, AgentRecord] = {r.host: r for r in records.rows if r.what == "agent_ended"}
    gone = {host for _, host in run.ends} | {r.host for r in records.rows if r.what == "agent_left"}
    return {host: record for host, record in ended.items() if lives[host] <= 1 and host not in gone}


def _transmissions(figures: Mapping[str, int]) -> int:
    return figures.get("sent", 0) + figures.get("resent", 0) - figures.get("unsent", 0)


def _read_metrics(rows: Rows, counted: Mapping[str, Mapping[str, int]]) -> Metrics:
    found = _without_packets(rows, counted)
    stress, packets, kinds = rows["stress"][0], rows["packets"][0], _sorted(rows, "messages")
    if stress.get("count"):
        distribution = {str(row["copies"]): row["times"] for row in _sorted(rows, "distribution")}
        found["link_stress"] = {**stress, "distribution": distribution}
    found["packets"] = packets | {"capture_errors": rows["errors"][0]["count"]}
    found["messages"] = {
        name: sum(row[name] for row in kinds) for name in ("sent", "copies", "arrived")
    } | {"by_kind": {row["kind"]: row["sent"] for row in kinds}}
    found["control_efficiency"] = rows["control"][0].get("ratio")
    found["rdp_of_packets"] = _spread(rows.get("rdp_of_packets", []))
    return found


def _without_packets(rows: Rows, counted: Mapping[str, Mapping[str, int]]) -> Metrics:
    """The metrics that records alone can give."""
    cost, control = rows["routing_cost"][0], rows["control"][0]
    sent = sum(map(_transmissions, counted.values()))
    delivered, events = rows["delivery"][0], rows["events"][0]
    return {
        "link_stress": None,
        "rdp": _spread(rows["rdp"]),
        "rdp_of_paths": _spread(rows["rdp_of_paths"]),
        "rdp_of_packets": None,
        "hops": rows["hops"][0] if rows["hops"][0].get("count") else None,
        "false_positives": rows["false_positives"][0].get("share"),
        "routing_cost": _seconds(cost.get("cost_us")),
        "routing_cost_opt": _seconds(cost.get("opt_us")),
        "routing_efficiency": cost.get("efficiency"),
        "control_efficiency": sent / control["matching"] if control["matching"] else None,
        "delivery": delivered if events["published"] else None,
        "events": events,
        "recovery": recovery_document(rows.get("recovery", ())),
        "messages": None,
        "packets": None,
    }


def _reasons(found: Metrics, known: Mapping[str, str]) -> dict[str, str]:
    """Why metrics are null that are not explained yet."""
    reason = _NO_DELIVERIES if found["events"]["published"] else _NO_EVENTS
    empty = (name for name, value in found.items() if value is None and name not in known)
    return dict.fromkeys(empty, reason)


def _measure_records(path: Path, notes: dict[str, str]) -> Metrics:
    """What is measured without Spark, which `metrics.json` then has as well."""
    try:
        return measure_run(path)
    except AnalysisError as error:
        notes["overlay"] = str(error)
        return {}


def _spread(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    return rows[0] if rows and rows[0].get("count") else None


def _seconds(time_us: int | None) -> float | None:
    return None if time_us is None else time_us / 1e6


def _sorted(rows: Rows, name: str) -> Iterable[dict[str, Any]]:
    return sorted(rows[name], key=lambda row: [str(value).rjust(20) for value in row.values()])


def _remove_tables(folder: Path, captures: Set[str]) -> None:
    """Remove tables of some of these captures, which are out of date; all else is the user's."""
    if not folder.exists():
        return
    if not (folder / "tables.json").exists():
        raise AnalysisError(f"{folder}: expected tables of ours or nothing, found something else")
    others = sorted(read_sources(folder) - captures)
    if others:
        raise AnalysisError(
            f"{folder}: expected tables of these captures or nothing, found those of {others[0]}; "
            "give another folder with --out, or remove that one"
        )
    shutil.rmtree(folder)
