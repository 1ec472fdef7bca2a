"""Tables of a few literal rows, with null for what a test does not care about."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from analysis.table_schemas import schema_of


def literal(spark: SparkSession, table: str, *rows: Mapping[str, Any]) -> DataFrame:
    """A table with these rows; a column that a table does not have is an error."""
    schema = to_arrow_schema(schema_of(table))
    unknown = {name for row in rows for name in row} - set(schema.names)
    assert not unknown, f"{table} has no {unknown}"
    columns = {name: [row.get(name) for row in rows] for name in schema.names}
    return spark.createDataFrame(pa.table(columns, schema))


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows as plain data."""
    return [row.asDict(recursive=True) for row in frame.collect()]


def row_of(frame: DataFrame) -> dict[str, Any]:
    """The one row."""
    (row,) = rows_of(frame)
    return row
