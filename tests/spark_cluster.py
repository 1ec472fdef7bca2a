"""A real standalone Spark cluster on loopback: a master and two workers of one core each."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

_DEPLOY = "org.apache.spark.deploy"
_START_S = 120.0
# Many short-lived JVMs on few cores: compile little.
QUICK_JAVA = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"}


@contextmanager
def standalone_cluster(folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """The address of a cluster whose two workers have registered; all of it ends with the block."""
    port = _free_port()
    master = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        log = folder / "master.log"
        at = ["--host", "127.0.0.1", "--webui-port", "0"]
        stack.enter_context(_daemon(["master.Master", *at, "--port", str(port)], log, environment))
        _wait_for(log, "started service 'Sparkmaster'", "I have been elected leader")
        for number in (1, 2):
            work = ["--work-dir", str(folder / f"work{number}"), "--cores", "1", "--memory", "1G"]
            arguments = ["worker.Worker", *at, *work, master]
            log = folder / f"worker{number}.log"
            stack.enter_context(_daemon(arguments, log, environment))
        for number in (1, 2):
            _wait_for(folder / f"worker{number}.log", "Successfully registered with master")
        yield master


@contextmanager
def _daemon(arguments: list[str], log: Path, environment: Mapping[str, str]) -> Iterator[None]:
    spark_home = Path(pyspark.__file__).parent
    with log.open("w") as output:
        process = subprocess.Popen(
            [str(spark_home / "bin" / "spark-class"), f"{_DEPLOY}.{arguments[0]}", *arguments[1:]],
            env=os.environ
            | {"SPARK_HOME": str(spark_home), "SPARK_LOCAL_IP": "127.0.0.1"}
            | {"SPARK_DAEMON_MEMORY": "256m", "PYSPARK_PYTHON": sys.executable}
            | QUICK_JAVA
            | dict(environment),
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)  # the executors too
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait_for(log: Path, *texts: str) -> None:
    deadline = time.monotonic() + _START_S
    while not any(text in log.read_text() for text in texts):
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"expected {texts[0]!r} within {_START_S} s, found {log.read_text()}"
            )
        time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
