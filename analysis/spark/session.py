"""Spark sessions of the testbed: little output, on loopback, with this Python."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from analysis.errors import AnalysisError
from analysis.spark.java_output import without_greetings

_LOOPBACK = "127.0.0.1"
_SHUFFLE_PARTITIONS = 8  # the tables of a run are small; Spark's default of 200 is slower
_MB = 1 << 20
_LEAST_MEMORY_MB, _MOST_MEMORY_MB = 1_024, 8_192
# Compile only once; collect garbage without extra threads, and
# seldom, with a large initial heap: most of it is classes, which stay.
_BRIEF_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms1g -XX:MetaspaceSize=256m"
# Adaptive plans make a job of every stage, and sorting into several
# parts takes a job to find the bounds. Queries run in parallel in any case.
_LITTLE = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}
_QUIET = Path(__file__).with_name("log4j2.properties")


def open_session(
    master: str = "local[*]",
    app: str = "tdo",
    memory_mb: int | None = None,
    settings: dict[str, str] | None = None,
    is_brief: bool = False,
) -> SparkSession:
    """The process's Spark session, started if there is none; stop it, or use it in a `with` block.

    A brief session starts fast and is fast for small jobs, and slow for large ones.

    A process has one session at a time: an existing one is returned unchanged, except that
    `settings` that may change while it runs do.
    """
    _require_java()
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if (
        _stays_here(master) or "PYSPARK_PYTHON" not in os.environ
    ):  # on other machines it may have another path
        os.environ["PYSPARK_PYTHON"] = sys.executable
    # A driver with remote workers must be reachable; all others should not be.
    local = _settings_on_loopback() if _stays_here(master) else {}
    builder = SparkSession.Builder().master(master).appName(app)
    wanted = _settings(memory_mb or driver_memory_mb(), is_brief) | local | (settings or {})
    for key, value in wanted.items():
        builder = builder.config(key, value)
    try:
        with without_greetings():
            spark = builder.getOrCreate()
    except Exception as error:  # exceptions of the JVM, py4j and PySpark have no common base class
        reason = " ".join(str(error).split()) or type(error).__name__
        raise AnalysisError(
            f"Spark with master {master}: expected a session, found {reason[:300]}; "
            "try --master 'local[*]'"
        ) from error
    spark.sparkContext.setLogLevel("ERROR")
    return spark


@contextmanager
def small_job_settings(spark: SparkSession) -> Iterator[None]:
    """Plan the queries in this block for few rows: without adaptive plans, in few tasks."""
    before = {key: spark.conf.get(key) for key in _LITTLE}
    for key, value in _LITTLE.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, kept in before.items():
            if kept is not None:
                spark.conf.set(key, kept)


def _settings(memory_mb: int, is_brief: bool) -> dict[str, str]:
    java = f"-Dlog4j2.configurationFile={_QUIET.as_uri()}"
    return {
        "spark.driver.memory": f"{memory_mb}m",
        # Results that are collected on the driver are small tables of metrics; larger ones are a
        # mistake.
        "spark.driver.maxResultSize": f"{memory_mb // 2}m",
        "spark.sql.shuffle.partitions": str(_SHUFFLE_PARTITIONS),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"{java} {_BRIEF_JAVA}" if is_brief else java,
    }


def _settings_on_loopback() -> dict[str, str]:
    os.environ["SPARK_LOCAL_IP"] = _LOOPBACK
    return {"spark.driver.host": _LOOPBACK, "spark.driver.bindAddress": _LOOPBACK}


def _stays_here(master: str) -> bool:
    host = master.partition("://")[2].rpartition(":")[0]
    return master.startswith("local") or host in (_LOOPBACK, "localhost")


def _require_java() -> None:
    """Raise unless Java is in JAVA_HOME or, without that, in the path; Spark has the same order."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else None
    if java is not None and not os.access(java, os.X_OK):
        raise AnalysisError(
            f"Spark: expected Java at {java} because JAVA_HOME is set, found none; "
            "unset JAVA_HOME or correct it"
        )
    if java is None and shutil.which("java") is None:
        raise AnalysisError(
            "Spark: expected Java 17 or newer, found no java in the path and no JAVA_HOME; "
            "run: apt-get install default-jre-headless"
        )


def driver_memory_mb() -> int:
    """A quarter of the machine's memory: in local mode the driver does all the work."""
    total_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _MB
    return min(max(total_mb // 4, _LEAST_MEMORY_MB), _MOST_MEMORY_MB)
