"""Spark sessions as the testbed wants them: quiet, on loopback, with this very Python."""

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
_SHUFFLE_PARTITIONS = 8  # the tables of a run are small; Spark's own 200 cost more than they help
_MB = 1 << 20
_LEAST_MEMORY_MB, _MOST_MEMORY_MB = 1_024, 8_192
# Compile once, and not better the longer it runs; collect garbage without threads for that, and
# seldom, with room from the beginning: most of what is loaded is classes, and stays.
_BRIEF_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms1g -XX:MetaspaceSize=256m"
# Adapting a plan to what its stages found makes a job of every stage, and to sort into several
# parts takes a job that finds out where to cut. Queries go on beside each other anyway.
_LITTLE = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}
_QUIET = Path(__file__).with_name("log4j2.properties")


def open_session(
    master: str = "local[*]",
    app: str = "tdo",
    memory_mb: int | None = None,
    settings: dict[str, str] | None = None,
    is_brief: bool = False,
) -> SparkSession:
    """The process's Spark session, started if there is none; stop it, or use it in a `with`.

    One that is brief is quick to start and to do little, and slow to do much.

    A process can have one at a time: if one is running it is returned as it is, except that
    `settings` that may change while it runs do.
    """
    _require_java()
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if _stays_here(master) or "PYSPARK_PYTHON" not in os.environ:  # elsewhere it may be elsewhere
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
    except Exception as error:  # the JVM's, py4j's and PySpark's own have no root in common
        reason = " ".join(str(error).split()) or type(error).__name__
        raise AnalysisError(
            f"Spark with master {master}: expected a session, found {reason[:300]}; "
            "try --master 'local[*]'"
        ) from error
    spark.sparkContext.setLogLevel("ERROR")
    return spark


@contextmanager
def small_job_settings(spark: SparkSession) -> Iterator[None]:
    """Let the queries in this block be planned for few rows: without adapting, in few tasks."""
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
        # The whole results that come to the driver are tables of metrics; more is a mistake.
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
    """Spark looks in JAVA_HOME first and then in the path, and so do we."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else None
    if java is not None and not os.access(java, os.X_OK):
        raise AnalysisError(
            f"Spark: expected Java at {java} because JAVA_HOME says so, found none; "
            "unset JAVA_HOME or correct it"
        )
    if java is None and shutil.which("java") is None:
        raise AnalysisError(
            "Spark: expected Java 17 or newer, found no java in the path and no JAVA_HOME; "
            "run: apt-get install default-jre-headless"
        )


def driver_memory_mb() -> int:
    """A quarter of the machine: in local mode the driver does all the work."""
    total_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _MB
    return min(max(total_mb // 4, _LEAST_MEMORY_MB), _MOST_MEMORY_MB)
