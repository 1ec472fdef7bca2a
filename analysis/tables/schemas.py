"""The tables of a run: their columns and types (docs/tables.md explains them)."""

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from analysis.errors import AnalysisError

_MESSAGE = "kind short, kind_name string, message_id long, event_id long, hop_count short"
_LINK = "link string, direction string, from_node string, to_node string"
SCHEMAS = {
    "packets": f"time_us long, {_LINK}, source long, target long, source_host string, "
    "target_host string, protocol string, ttl short, bytes long, dropped boolean, "
    "is_first boolean, is_last boolean, is_ours boolean, is_probe boolean, is_icmp boolean, "
    f"{_MESSAGE}, flags short, sent_us long",
    "messages": f"sender string, receiver string, {_MESSAGE}, sent_us long, is_reliable boolean, "
    "first_us long, arrived_us long, copies long, copies_arrived long, links long, "
    "links_expected long, packets long, bytes long",
    "events": "event_id long, publisher string, published_us long, version long, point long, "
    "topic long, matching long, expected long, delivered long, duplicates long, received long, "
    "false_positives long, copies long, overhead long, packets long, links long, max_stress long",
    "matches": "event_id long, host string, publisher string, published_us long, is_own boolean, "
    "is_owed boolean, is_steady boolean, is_delivered boolean, unicast_us long, opt_us long",
    "receptions": "event_id long, host string, publisher string, from_host string, "
    "published_us long, time_us long, delay_us long, is_match boolean, hops long, link_us long, "
    "path_us long, path array<string>",
    "copies": "event_id long, host string, from_host string, publisher string, published_us long, "
    "time_us long, is_match boolean, hops long, is_first boolean",
    "deliveries": "event_id long, host string, publisher string, from_host string, "
    "published_us long, time_us long, delay_us long, unicast_us long, opt_us long, rdp double, "
    "hops long, path_us long, path array<string>, is_own boolean, is_matching boolean, copy long",
    "stress": f"event_id long, {_LINK}, copies long",
    "link_loads": f"{_LINK}, delay_us long, packets long, bytes long, message_packets long, "
    "probe_packets long, icmp_packets long, event_packets long, events long, max_stress long, "
    "dropped long",
    "traffic": "second long, what string, packets long, bytes long",
    "routes": "source string, target string, how string, routers array<string>, "
    "is_reached boolean, true_routers array<string>, is_true boolean",
    "overlay_edges": "a string, b string, is_distant boolean, delay_us long, delay_back_us long, "
    "crossings long",
    "tree_edges": "version long, a string, b string, added_us long, removed_us long, ends long, "
    "delay_us long, delay_back_us long",
    "routing_load": "from_host string, to_host string, load long, events long, delay_us long",
    "unicast": "source string, target string, delay_us long, crossings long, overlay_us long",
    "capture_errors": "file string, offset long, reason string, detail string",
}


def schema_of(table: str) -> StructType:
    """The columns of a table."""
    schema = StructType.fromDDL(SCHEMAS[table])
    assert isinstance(schema, StructType)
    return schema


def conform(frame: DataFrame, table: str) -> DataFrame:
    """A frame with the columns of a table in its order and types; a missing one is an error."""
    schema = schema_of(table)
    missing = [name for name in schema.names if name not in frame.columns]
    if missing:
        raise AnalysisError(
            f"table {table}: expected the columns {', '.join(missing)}, found "
            f"{', '.join(frame.columns)}"
        )
    return frame.select(*(F.col(f"`{c.name}`").cast(c.dataType).alias(c.name) for c in schema))


def empty_table(table: str) -> pa.Table:
    """A table without rows."""
    return to_arrow_schema(schema_of(table)).empty_table()


def arrow_table(frame: pd.DataFrame, table: str) -> pa.Table:
    """The columns of a table from a frame, which may have others, too."""
    schema = to_arrow_schema(schema_of(table))
    return pa.Table.from_pandas(frame[schema.names], schema, preserve_index=False)
